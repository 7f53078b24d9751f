"""`dpaa debias`: the best trade-off between accuracy and popularity for a dataset, in one call.

    FOLDER/models/NAME     the models, a run each; kept, so that another goal costs seconds
    FOLDER/frontier.json   every point, the frontier, the choice and why
    FOLDER/frontier.csv    the points as a table
    FOLDER/run             the choice as a run like any other
    FOLDER/recipe.json     the same as a recipe, where it is the baseline's model with another dial or re-ranker

All of it looks at validation alone; the test split is not opened.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpaa import _io
from dpaa._text import finite
from dpaa.auditing import Check
from dpaa.data.dataset import Dataset
from dpaa.debiasing._choice import EVERYBODY, Choice, Chooser, divide, goal_scores, most_accurate, pareto, without_each
from dpaa.debiasing._models import MODELS, REMEDY, ModelStore, Watch, default_methods, unwatched
from dpaa.debiasing._points import (
    EXPOSURES,
    MEASURED,
    MOST_USERS,
    Accuracy,
    Candidate,
    Measurer,
    Point,
    parse_goals,
    plausible_powers,
)
from dpaa.debiasing._statement import Statement, state
from dpaa.errors import InputError, need_type, need_whole
from dpaa.evaluation.dial_curve import BY_DEBIAS, NO_CURVE
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import exposures
from dpaa.evaluation.offpolicy import ValidationExposure, validation_exposure
from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import Reranker
from dpaa.ranking.rerankers._greedy import Grouped
from dpaa.runs._foreign import RECIPE, recipe_of
from dpaa.runs.folder import CHOSEN, FRONTIER, RunFolder, hold_folder, save_model
from dpaa.runs.model import Model

KIND, FORMAT = "frontier", 2
TABLE, PAGE = "frontier.csv", "frontier.html"
OWN = (MODELS, CHOSEN, FRONTIER, TABLE, PAGE, RECIPE)
TRAINING = 0.7
"""Share of a budget after which no training continues, so that there is time to measure."""
WORTH = 0.8
"""Share of the best model's accuracy, under the estimate that speaks most for it, below which a model is not swept."""


class OutOfReachError(InputError):
    """No point meets the target, although the call is valid."""


@dataclass(frozen=True, eq=False)
class Debiased:
    """The frontier of a dataset, and the chosen point.

    Parameters
    ----------
    data : the dataset
    measurer : validation users, goals and the estimates of accuracy
    validation : where validation pairs come from
    points : every model with every re-ranker
    chooser : compares them with the baseline
    choice : index of a point, why, and what is confirmed
    statement : baseline and choice on held-out users
    notes : what was left out
    """

    data: Dataset
    measurer: Measurer
    validation: ValidationExposure
    points: Sequence[Point]
    chooser: Chooser
    choice: Choice
    statement: Statement
    notes: Sequence[str] = ()

    @property
    def point(self) -> Point:
        """The chosen point."""
        return self.points[self.choice.index]

    @property
    def base(self) -> Point:
        """The baseline point."""
        return self.points[self.chooser.base]

    @property
    def confirmed(self) -> bool:
        """Whether a promise was asked for and a point is confirmed to keep it; also where there was no promise."""
        return self.choice.promise is None or self.point is not self.base

    @cached_property
    def line(self) -> list[int]:
        """Indices of the points that no other beats on all validation users, the most accurate first."""
        goals, k = self.measurer.goals, self.statement.k
        values = [[point.metrics[goal.key(k)] for goal in goals] for point in self.points]
        return pareto(self.chooser.relative(), goal_scores(values, goals, self.chooser.base))

    def headline(self) -> str:
        """Describe gain and cost on held-out users in a line.

        Returns
        -------
        such as `niche-recall 0.7% → 5.8%, popular-item recall 22.0% → 18.1%, NDCG@20 0.0820 → 0.0803`
        """
        if self.point is self.base:
            return f"nothing changes: {self.base.candidate.name} is kept"
        return self.statement.headline(self.measurer.goals)

    def sentences(self) -> list[str]:
        """Describe what changes for whom, and what is confirmed.

        Returns
        -------
        plain sentences
        """
        base, choice, k = self.base.candidate.name, self.choice, self.statement.k
        if self.point is self.base:
            return [f"{base} is kept: {choice.why}", *self._guessed()]
        lines = [
            f"{self.point.candidate.name} instead of {base}: {choice.why}",
            f"{self.statement.measured_on()}: {self.headline()}",
        ]
        if self.statement.agreeing < self.statement.folds:  # the line above is then of other points, too
            point = self._by_all(choice.index)
            lines.append(f"{self.point.candidate.name} itself, on the users it was selected on (optimistic): {point}")
        if choice.promise is not None:
            pairs = zip(choice.kept, self.measurer.estimates, strict=True)
            kept = " and ".join(f"{share:.1%} ({one.name})" for share, one in pairs)
            sure = f"confirmed at {choice.confidence:.0%} (one-sided): at least {kept}"
            lines.append(f"promised: at least {choice.promise:.1%} of NDCG@{k}; {sure}")
        return lines + self.statement.sentences()

    def _guessed(self) -> list[str]:
        """Describe the best guess if nothing is confirmed."""
        guess = self.choice.guess
        if guess is None:
            return ["no point keeps the promise even on average: ask for less, or add models with --methods"]
        users, name = len(self.base.accuracy[0]), self.points[guess.index].candidate.name
        enough = f"about {guess.users:,.0f} validation users would confirm it, there are {users:,}"
        return [
            f"best guess, not confirmed: {name} (on the users it was selected on: {self._by_all(guess.index)}); a "
            f"choice that breaks the promise looks as good by chance in {guess.risk:.0%} of samples; "
            f"{enough if np.isfinite(guess.users) else 'no number of users like these would confirm it'}"
        ]

    def _by_all(self, index: int) -> str:
        """Goals and accuracy of a point on all validation users, against the baseline."""
        sides = [one.values[EVERYBODY] for one in (self.base, self.points[index])]
        goals = zip(self.measurer.goals, *sides, strict=True)
        gains = [f"{goal.name} {old:.4g} → {new:.4g}" for goal, old, new in goals]
        return f"{', '.join(gains)}, NDCG × {self.chooser.relative()[index]:.3f}"

    def record(self, index: int) -> dict[str, Any]:
        """Describe a point of the frontier for files.

        Parameters
        ----------
        index : of the point

        Returns
        -------
        its candidate, accuracy under each estimate, change where that is smallest, and metrics
        """
        point = self.points[index]
        names = [estimate.name for estimate in self.measurer.estimates]
        return {
            **point.candidate.as_json(),
            "plain": point.candidate.plain,
            "on_frontier": index in self.line,
            "accuracy": dict(zip(names, point.means.tolist(), strict=True)),
            "accuracy_change": float((point.means / self.base.means).min()) - 1,
            "metrics": point.metrics,
        }

    def as_json(self) -> dict[str, Any]:
        """Describe the result for `frontier.json`, the page and the command.

        Returns
        -------
        plain data
        """
        choice, names = self.choice, [estimate.name for estimate in self.measurer.estimates]
        points = [self.record(index) for index in range(len(self.points))]
        promise: dict[str, Any] | None = None
        if choice.promise is not None:
            kept = dict(zip(names, choice.kept, strict=False))  # empty where nothing is confirmed
            promise = {"share": choice.promise, "confidence": choice.confidence, "confirmed": self.confirmed}
            promise |= {"kept": kept, "tested": choice.tested}
        guess = None if choice.guess is None else asdict(choice.guess) | {"name": points[choice.guess.index]["name"]}
        content = {
            "kind": KIND,
            "format": FORMAT,
            "dataset": self.data.identity,
            "k": self.statement.k,
            "users": {"all": len(self.base.accuracy[0]), "folds": len(self.chooser.folds)},
            "goals": [goal.as_json(self.statement.k) for goal in self.measurer.goals],
            "estimates": [estimate.as_json() for estimate in self.measurer.estimates],
            "validation": self.validation.as_json(),
            "base": points[self.chooser.base],
            "chosen": points[choice.index],
            "why": choice.why,
            "headline": self.headline(),
            "sentences": self.sentences(),
            "promise": promise,
            "guess": guess,
            "held_out": self.statement.as_json(),
            "points": points,
            "frontier": [points[index]["name"] for index in self.line],
            "notes": list(self.notes),
        }
        return dict(finite(content))


def debias(
    folder: str | Path,
    data: Dataset,
    *,
    methods: Sequence[str] | None = None,
    runs: Sequence[str | Path] = (),
    base: str | Path | None = None,
    goals: Sequence[str] = ("niche-recall",),
    keep_accuracy: float | None = None,
    targets: Sequence[str] = (),
    exposure: str = EXPOSURES[0],
    rerank: Sequence[str] | None = None,
    k: int = 20,
    budget: float | None = None,
    confidence: float = 0.95,
    settings: Mapping[str, object] | None = None,
    seed: int = 0,
    overwrite: bool = False,
    watch: Watch = unwatched,
    say: Callable[[str], None] = lambda _line: None,
) -> Debiased:
    """Train or take models, sweep the dial and re-rankers over each, and choose one point on validation.

    Parameters
    ----------
    folder : where models, frontier and the chosen run are written; what was trained before is reused
    data : the dataset; needs a validation split
    methods : what to train; default: closed forms and LightGCN, or with `runs` none
    runs : folders of finished runs on the same dataset, or such files
    base : the run in production, or a file with another system's lists or vectors (`dpaa.given`); default: of the
        models as they are, the one that loses least to the best under any estimate of accuracy
    goals : what lists shall gain: niche-recall, coverage, arp, gini, calibration, or a metric's name
    keep_accuracy : share of the baseline's accuracy that must be kept, confirmed on held-out users
    targets : such as "coverage>=0.8", or "exposure/publisher>=0.8 of merit" for groups of items, for the least
        accuracy; without either, the point where returns diminish
    exposure : how items will be exposed: `as-logged`, `shifted` (more evenly than in the log), or `unknown`, where the
        promise must hold under both; where validation comes from unbiased exposure, that alone counts
    rerank : names of re-rankers to sweep; default: all that can be
    k : length of the lists
    budget : minutes after which the call ends with what has been trained and measured by then
    confidence : one-sided, with which `keep_accuracy` is confirmed
    settings : hyperparameters, for every method that has them
    seed : random seed of trainings, and of the folds of users
    overwrite : whether to train models again
    watch, say : callbacks of trainings, and who gets lines of progress

    Returns
    -------
    Debiased
    """
    need_type(data, Dataset, "data", "read one with dpaa.read_dataset")
    need_whole(seed, "seed", 0)
    _check(data, keep_accuracy, targets, confidence, budget)
    runs, wanted = _several(runs), parse_goals(_several(goals))
    names = default_methods() if methods is None and not runs else _several(methods or [])
    validation = validation_exposure(data)
    powers = plausible_powers(exposure, data, validation.biased)
    column = _exposure_column(_several(targets))
    users = Evaluator(data, k, "valid", "drop", group_by=column).sample(MOST_USERS)
    folds = divide(len(users.users), seed)
    estimates = tuple(Accuracy(users.truth, k, power) for power in powers)
    measurer = Measurer(users, wanted, estimates, without_each(folds))
    if any(goal.niche for goal in wanted) and not users.truth.relevant_per_row(~users.truth.popular).any():
        raise InputError("no validation pair has a niche item, so niche recall has no value; choose another goal")
    checks = [_parse_target(text, measurer) for text in _several(targets)]
    sweeps = _sweeps(RERANKERS if rerank is None else _several(rerank), column)
    with _begun(folder) as home:
        clock = _Clock(budget)
        store = ModelStore(home, data, settings or {}, seed, clock.at(TRAINING), overwrite, watch, say, k)
        paths = store.read([*runs, *([] if base is None else [base])], names)
        store.train(names, required=methods is not None)
        in_production = None if base is None else paths[_io.resolve_path(RunFolder(base).path)]
        models = store.models | store.taken
        points, base_index = _plain_points(models, in_production, measurer, say)
        points += _swept_points(models, points, in_production, measurer, sweeps, clock, say, store.notes)
        chooser = Chooser.of(points, wanted, folds, base_index)
        baseline = points[base_index]
        if not (baseline.means > 0).all():
            nothing = f"{baseline.candidate.name}, the baseline, has no hits on validation"
            raise InputError(f"{nothing}; check the dataset, or name others")
        if keep_accuracy is not None:
            choice = chooser.within(keep_accuracy, confidence)
        else:
            choice = _reaching(points, chooser, checks) if checks else chooser.knee()
        named = {name: model.method for name, model in models.items()}
        before, chosen, *picks = (points[index].candidate for index in (base_index, choice.index, *choice.picks))
        statement = state(users, folds, named, before, chosen, picks)
        result = Debiased(data, measurer, validation, points, chooser, choice, statement, store.notes)
        _write(home, result, models[result.point.candidate.model])
    return result


class _Clock:
    """The rest of a budget of minutes; unlimited without a budget."""

    def __init__(self, minutes: float | None) -> None:
        self._start, self._seconds = time.monotonic(), None if minutes is None else 60 * minutes

    def at(self, share: float) -> float | None:
        """The time (`time.monotonic`) at which a share of the budget is used up."""
        return None if self._seconds is None else self._start + share * self._seconds

    def allows(self, seconds: float) -> bool:
        """Whether the share of the budget is not yet used up."""
        end = self.at(1.0)
        return end is None or time.monotonic() + seconds <= end


def _several(given: Any) -> list[Any]:
    """Make a list of a name or path that stands alone."""
    return [given] if isinstance(given, str | Path) else list(given)


def _check(data: Dataset, keep: float | None, targets: object, confidence: float, budget: float | None) -> None:
    if not len(data.valid):
        raise InputError(f"{data.name} has no validation split to choose on; make one: dpaa data log FILE --valid 0.1")
    if keep is not None and not 0 < keep <= 1:
        raise InputError(f"the accuracy to keep is a share above 0 and up to 1, such as 0.99, got {keep!r}")
    if keep is not None and targets:
        raise InputError("--keep-accuracy and --target choose differently; give one of them")
    if not 0.5 <= confidence < 1:
        raise InputError(f"the confidence must be from 0.5 to below 1, got {confidence!r}")
    if budget is not None and not budget > 0:
        raise InputError(f"the budget is a number of minutes above 0, got {budget!r}")


def _exposure_column(targets: Iterable[str]) -> str | None:
    """Column of items whose exposure the targets are on, such as `exposure@20/label=indie>=0.1`."""
    matches = (re.match(r"\s*exposure[^/]*/([^\s=<>!]+)", target) for target in targets)
    columns = {match[1] for match in matches if match}
    if len(columns) > 1:
        raise InputError(f"targets on exposure must be of one column, got {' and '.join(sorted(columns))}")
    return next(iter(columns), None)


def _sweeps(names: Iterable[str], column: str | None) -> list[Sequence[Reranker]]:
    """Rerankers of each sweep: those of every name, then the grouped ones by the column of items."""
    sweeps: list[Sequence[Reranker]] = [RERANKERS.find(name).sweep() for name in names]
    if column is not None:  # fa-ir would need one of the column's values
        grouped = [[r for r in sweep if isinstance(r, Grouped) and r.name != "fa-ir"] for sweep in sweeps]
        sweeps += [[r.model_copy(update={"by": column}) for r in sweep] for sweep in grouped if sweep]
    return sweeps


def _parse_target(text: str, measurer: Measurer) -> Check:
    """`coverage>=0.8`: a goal's or a metric's name, with or without its @k."""
    try:
        check = Check.parse(text)
    except InputError:
        raise InputError(f'the target {text!r} is not NAME OP NUMBER; write for example "coverage>=0.8"') from None
    k = measurer.estimates[0].k
    known = (*MEASURED, *measurer.goals)
    names = {name: goal.key(k) for goal in known for name in (goal.name, goal.key(k))}
    by_group = exposures(measurer.evaluator.truth.context(np.full((len(measurer.evaluator.users), k), -1)), k)
    names |= {name: key for key in by_group for name in (key, key.replace(f"@{k}", ""))}
    if check.name not in names:
        raise InputError(f"there is no metric {check.name!r} to aim at; choose one of {', '.join(names)}")
    return replace(check, name=names[check.name])


def _reaching(points: Sequence[Point], chooser: Chooser, targets: Sequence[Check]) -> Choice:
    """The most accurate point that meets all targets."""
    meeting = list(range(len(points)))
    for target in targets:
        values = np.array([point.metrics[target.name] for point in points])
        # A check "fails" where its comparison holds, and also without a value, which meets nothing here.
        meeting = [i for i in meeting if np.isfinite(values[i]) and target.apply(points[i].metrics).failed]
        if not meeting:
            raise OutOfReachError(
                f"no point reaches {' and '.join(map(str, targets))}: {target.name} runs from {np.nanmin(values):.4g} "
                f"to {np.nanmax(values):.4g}; choose a lower target"
            )
    chosen = meeting[int(np.argmax(chooser.relative()[meeting]))]
    return Choice(chosen, f"the most accurate of all points with {' and '.join(map(str, targets))} on validation")


@contextmanager
def _begun(folder: str | Path) -> Iterator[Path]:
    """The folder, locked against other calls; one of other things is refused, one that stays empty is removed."""
    home = _io.check_folder_name(folder)
    with hold_folder(folder):
        entries = {entry.name for entry in home.iterdir() if entry.name[0] != "."} if home.is_dir() else set()
        if home.is_file() or not entries <= set(OWN):
            raise InputError(f"{folder} holds something other than a frontier; choose another folder with --out")
        _io.check_within(home / CHOSEN, home)
        try:
            yield _io.own_folder(home, REMEDY)
        finally:
            _io.remove_empty([home / MODELS])


def _plain_points(
    models: Mapping[str, Model], in_production: str | None, measurer: Measurer, say: Callable[[str], None]
) -> tuple[list[Point], int]:
    """Every model as it is, with its dial at 0 and no re-ranker, and the index of the baseline.

    That is the run in production with its dial and re-ranker, or the most accurate of the models.
    """
    if not models:
        raise InputError("there is no model to choose from; name methods with --methods or runs with --runs")
    points: list[Point] = []
    for name in sorted(models, key=lambda name: name != in_production):
        say(f"measuring {name}")
        method = models[name].method
        if name == in_production:
            kappa, reranker = models[name].kappa(), models[name].reranker()
            if kappa or reranker:
                lists = measurer.evaluator.lists(method, kappa, reranker)
                points.append(measurer.point(Candidate(name, reranker, kappa), lists))
        points.append(measurer.plain(name, method))
    return points, 0 if in_production is not None else most_accurate(points)


def _swept_points(
    models: Mapping[str, Model],
    points: Sequence[Point],
    in_production: str | None,
    measurer: Measurer,
    sweeps: Sequence[Sequence[Reranker]],
    clock: _Clock,
    say: Callable[[str], None],
    notes: list[str],
) -> list[Point]:
    """Every model that can still win with every re-ranker, the most accurate model first, while there is time."""
    plain = {point.candidate.model: point.means for point in points if point.candidate.plain}
    best = np.maximum(np.max(list(plain.values()), axis=0), 1e-12)
    share = {name: (values / best).max() for name, values in plain.items()}
    order = sorted(plain, key=lambda name: (name != in_production, -share[name]))
    few = [name for name in order if share[name] < WORTH and name != in_production]
    if few:
        notes.append(
            f"no dial or re-ranker was tried over {', '.join(few)}: accuracy below {WORTH:.0%} of the best model's"
        )
    swept: list[Point] = []
    # One pass over the scores serves all re-rankers; with a budget each has its own, so that the call can end in time.
    groups = [[r for sweep in sweeps for r in sweep]] if clock.at(1) is None else sweeps
    longest = 0.0
    for name in (name for name in order if name not in few):
        for group in groups:
            if swept and not clock.allows(longest):
                notes.append(f"the time was up before all re-rankers were measured over {name}")
                return swept
            say(f"measuring {name} with {len(group)} dials and re-rankers")
            begun = time.monotonic()
            swept += measurer.swept(name, models[name].method, group)
            longest = max(longest, time.monotonic() - begun)
    return swept


def _write(home: Path, result: Debiased, model: Model) -> None:
    """The choice as a run, then the files that describe it."""
    content, chosen = result.as_json(), result.point.candidate
    manifest = dict(model.manifest)
    if chosen.kappa != model.kappa():
        curve = model.dial_curve
        active: dict[str, Any] = {"kappa": chosen.kappa, "chosen_for": BY_DEBIAS}
        manifest["dial"] = finite(replace(curve, **active).as_json()) if curve else NO_CURVE | active
    manifest["rerank"] = None if chosen.reranker is None else chosen.reranker.as_json()
    kept = ("goals", "estimates", "base", "chosen", "why", "sentences", "promise")
    manifest["debias"] = {name: content[name] for name in kept}
    history = RunFolder(model.path).history() if model.path else []
    save_model(replace(model, manifest=manifest), home / CHOSEN, overwrite=True, history=history)
    rows = [
        {key: value for key, value in point.items() if key not in ("metrics", "accuracy")}
        | {f"accuracy {name}": value for name, value in point["accuracy"].items()}
        | point["metrics"]
        | {"rerank": point["rerank"] and point["rerank"]["name"]}
        for point in content["points"]
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    contents: dict[str, _io.Content] = {FRONTIER: _io.as_json(content), TABLE: table.write_csv}
    if chosen.model == result.base.candidate.model:
        contents[RECIPE] = _io.as_json(recipe_of(content, model))
    else:  # there is none over the baseline, and an earlier choice's would mislead
        (home / RECIPE).unlink(missing_ok=True)
    _io.write_files(home, contents, REMEDY)
