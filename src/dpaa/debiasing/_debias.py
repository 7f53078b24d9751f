"""`dpaa debias`: the best trade-off between accuracy and popularity for a dataset, in one call.

    FOLDER/models/NAME     the models, a run each; kept, so that another goal costs seconds
    FOLDER/frontier.json   every point, the frontier, the choice and why
    FOLDER/frontier.csv    the points as a table
    FOLDER/run             the choice as a run like any other
    FOLDER/recipe.json     the same as a recipe, where it is the baseline's model with another dial or re-ranker

All of it looks at validation alone; the test split is not opened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from dpaa.debiasing._choice import Change, Choice, Chooser, relative_change
from dpaa.debiasing._models import MODELS, REMEDY, ModelStore, Watch, default_methods, unwatched
from dpaa.debiasing._points import ESTIMATES, MEASURED, MOST_USERS, Accuracy, Candidate, Measurer, Point, parse_goals
from dpaa.errors import InputError, need_type, need_whole
from dpaa.evaluation.dial_curve import BY_DEBIAS, NO_CURVE
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.offpolicy import ValidationExposure, validation_exposure
from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import Reranker
from dpaa.runs._foreign import RECIPE, recipe_of
from dpaa.runs.folder import CHOSEN, FRONTIER, RunFolder, hold_folder, save_model
from dpaa.runs.model import Model

KIND, FORMAT = "frontier", 1
TABLE, PAGE = "frontier.csv", "frontier.html"
OWN = (MODELS, CHOSEN, FRONTIER, TABLE, PAGE, RECIPE)
AUTO = "auto"


class OutOfReachError(InputError):
    """No point meets the target: the answer is no, and nothing is wrong with the call."""


def percent(share: float) -> str:
    """Format a relative change.

    Parameters
    ----------
    share : 0.58 is +58%

    Returns
    -------
    with its sign, such as `+58%` or `−1.1%`
    """
    return f"{share:+.{0 if abs(share) >= 0.1 else 1}%}".replace("-", "−")


def times(before: float, after: float) -> str:
    """Format the change from one value to another.

    Parameters
    ----------
    before, after : the values

    Returns
    -------
    such as `× 3.6`, `+12%` below × 1.5, or both values where the first is not positive
    """
    if not before > 0:
        return f"{before:.4g} → {after:.4g}"
    return f"× {after / before:.1f}" if after / before >= 1.5 else percent(after / before - 1)


@dataclass(frozen=True, eq=False)
class Debiased:
    """The frontier of a dataset, and the chosen point.

    Parameters
    ----------
    data : the dataset
    measurer : validation users, goals and the estimate of accuracy
    exposure : where validation pairs come from
    points : every model with every re-ranker
    chooser : compares them with the baseline
    choice : index of a point, why, and what held-out users say
    notes : what was left out
    """

    data: Dataset
    measurer: Measurer
    exposure: ValidationExposure
    points: Sequence[Point]
    chooser: Chooser
    choice: Choice
    notes: Sequence[str] = ()

    @property
    def point(self) -> Point:
        """The chosen one."""
        return self.points[self.choice.index]

    @property
    def base(self) -> Point:
        """What the others are compared with."""
        return self.points[self.chooser.base]

    @cached_property
    def line(self) -> list[int]:
        """Indices of the points that no other beats, the most accurate first."""
        return self.chooser.frontier()

    @property
    def accuracy_change(self) -> Change:
        """Of the choice against the baseline; on held-out users where there were some."""
        confirmation = self.choice.confirmation
        return confirmation.change if confirmation else relative_change(self.point.accuracy, self.base.accuracy)

    def headline(self) -> str:
        """Describe the result in a line.

        Returns
        -------
        such as `niche-recall × 3.6, accuracy −0.5%`
        """
        if self.point is self.base:
            return f"nothing changes: {self.base.candidate.name} stays"
        pairs = zip(self.measurer.goals, self.base.values, self.point.values, strict=True)
        gains = [f"{goal.name} {times(before, after)}" for goal, before, after in pairs]
        return ", ".join([*gains, f"accuracy {percent(self.accuracy_change.estimate)}"])

    def sentences(self) -> list[str]:
        """Describe what changes for whom: the goal, the accuracy, the users.

        Returns
        -------
        plain sentences
        """
        base, k, why = self.base.candidate.name, self.measurer.accuracy.k, self.choice.why
        if self.point is self.base:
            return [f"{base} stays as it is: {why}"]
        change, confirmation = self.accuracy_change, self.choice.confirmation
        users = f" on {confirmation.users:,} held-out users" if confirmation else ""
        gained = self.point.accuracy - self.base.accuracy
        goals = zip(self.measurer.goals, self.base.values, self.point.values, strict=True)
        moved = [f"{one.name} {times(old, new)}: {one.key(k)} {old:.4g} → {new:.4g}" for one, old, new in goals]
        interval = f"95% interval {percent(change.low)} to {percent(change.high)}"
        return [
            f"{self.point.candidate.name} instead of {base}: {why}",
            *moved,
            f"accuracy (NDCG@{k}, {self.measurer.accuracy.estimate}) {percent(change.estimate)} ({interval}){users}; "
            f"{(gained > 0).mean():.0%} of the users get a more accurate list, {(gained < 0).mean():.0%} a worse one",
        ]

    def record(self, index: int) -> dict[str, Any]:
        """Describe a point of the frontier for files.

        Parameters
        ----------
        index : of the point

        Returns
        -------
        its candidate, accuracy with interval, and metrics
        """
        point = self.points[index]
        change = relative_change(point.accuracy, self.base.accuracy)
        return {
            **point.candidate.as_json(),
            "plain": point.candidate.plain,
            "on_frontier": index in self.line,
            "accuracy": float(point.accuracy.mean()),
            "accuracy_change": change.estimate,
            "accuracy_change_low": change.low,
            "accuracy_change_high": change.high,
            "metrics": point.metrics,
        }

    def as_json(self) -> dict[str, Any]:
        """Describe the result for `frontier.json`, the page and the command.

        Returns
        -------
        plain data
        """
        accuracy, confirmation = self.measurer.accuracy, self.choice.confirmation
        points = [self.record(index) for index in range(len(self.points))]
        content = {
            "kind": KIND,
            "format": FORMAT,
            "dataset": {"name": self.data.name, "fingerprint": self.data.fingerprint},
            "k": accuracy.k,
            "users": len(self.base.accuracy),
            "goals": [goal.as_json(accuracy.k) for goal in self.measurer.goals],
            "estimate": accuracy.as_json(),
            "exposure": self.exposure.as_json(),
            "base": points[self.chooser.base],
            "chosen": points[self.choice.index],
            "why": self.choice.why,
            "headline": self.headline(),
            "sentences": self.sentences(),
            "confirmation": None if confirmation is None else asdict(confirmation),
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
    estimate: str = AUTO,
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
    methods : what to train; default: fast closed forms, LightGCN, DPAA and cheap debiasing methods, or with `runs` none
    runs : folders of finished runs on the same dataset, or such files
    base : the run in production, or a file with another system's lists or vectors (`dpaa.given`); default: the most
        accurate model as it is
    goals : what lists shall gain: niche-recall, coverage, arp, gini, calibration, or a metric's name
    keep_accuracy : share of the baseline's accuracy that must be kept, confirmed on held-out users
    targets : such as "coverage>=0.8", for the least accuracy; without either, the point where returns diminish
    estimate : logged, ips, balanced, or auto by where validation comes from
    rerank : names of re-rankers to sweep; default: all that can be
    k : length of the lists
    budget : minutes after which no training begins, once there is a model
    confidence : one-sided, with which `keep_accuracy` is confirmed
    settings : hyperparameters, for every method that has them
    seed : random seed of trainings and folds
    overwrite : whether to train models again
    watch, say : callbacks of trainings, and who gets lines of progress

    Returns
    -------
    Debiased
    """
    need_type(data, Dataset, "data", "read one with dpaa.read_dataset")
    need_whole(seed, "seed", 0)
    _check(data, keep_accuracy, targets, confidence, budget)
    if estimate not in (AUTO, *ESTIMATES):
        raise InputError(f"the estimate must be one of {', '.join((AUTO, *ESTIMATES))}, got {estimate!r}")
    runs, wanted = _several(runs), parse_goals(_several(goals))
    names = default_methods() if methods is None and not runs else _several(methods or [])
    exposure = validation_exposure(data)
    # Pairs of a biased log overstate popularity; docs/debias.md has the measurements behind the choice of ips.
    used = estimate if estimate != AUTO else "ips" if exposure.biased else "logged"
    users = Evaluator(data, k, "valid", "drop").sample(MOST_USERS)
    measurer = Measurer(users, wanted, Accuracy(users.truth, k, used), seed)
    if any(goal.niche for goal in wanted) and not users.truth.relevant_per_row(~users.truth.popular).any():
        raise InputError("no validation pair has a niche item, so niche recall has no value; choose another goal")
    checks = [_parse_target(text, measurer) for text in _several(targets)]
    rerankers = RERANKERS if rerank is None else _several(rerank)
    sweeps = [one for name in rerankers for one in RERANKERS.find(name).sweep()]
    with _begun(folder) as home:
        deadline = None if budget is None else time.monotonic() + 60 * budget
        store = ModelStore(home, data, settings or {}, seed, deadline, overwrite, watch, say, k)
        paths = store.read([*runs, *([] if base is None else [base])], names)
        store.train(names, required=methods is not None)
        in_production = None if base is None else paths[_io.resolve_path(RunFolder(base).path)]
        models = store.models | store.taken
        points, base_index = _points(models, in_production, measurer, sweeps, say)
        chooser = Chooser.of(points, wanted, measurer.folds, base_index)
        if not chooser.accuracy[base_index].mean() > 0:
            name = points[base_index].candidate.name
            raise InputError(f"{name}, the baseline, finds nothing on validation; check the dataset, or name others")
        if keep_accuracy is not None:
            choice = chooser.within(keep_accuracy, confidence)
        else:
            choice = _reaching(points, chooser, checks) if checks else chooser.knee()
        result = Debiased(data, measurer, exposure, points, chooser, choice, store.notes)
        _write(home, result, models[result.point.candidate.model])
    return result


def _several(given: Any) -> list[Any]:
    """A name or path alone as a list of one."""
    return [given] if isinstance(given, str | Path) else list(given)


def _check(data: Dataset, keep: float | None, targets: object, confidence: float, budget: float | None) -> None:
    if not len(data.valid):
        raise InputError(
            f"{data.name} has no validation split to choose on; make one, such as dpaa data log FILE --valid 0.1"
        )
    if keep is not None and not 0 < keep <= 1:
        raise InputError(f"the accuracy to keep is a share above 0 and up to 1, such as 0.99, got {keep!r}")
    if keep is not None and targets:
        raise InputError("--keep-accuracy and --target choose differently; give one of them")
    if not 0.5 <= confidence < 1:
        raise InputError(f"the confidence must be from 0.5 to below 1, got {confidence!r}")
    if budget is not None and not budget > 0:
        raise InputError(f"the budget is a number of minutes above 0, got {budget!r}")


def _parse_target(text: str, measurer: Measurer) -> Check:
    """`coverage>=0.8`: a goal's or a metric's name, with or without its @k."""
    try:
        check = Check.parse(text)
    except InputError:
        raise InputError(f'the target {text!r} is not NAME OP NUMBER; write for example "coverage>=0.8"') from None
    k = measurer.accuracy.k
    known = (*MEASURED, *measurer.goals)
    names = {name: goal.key(k) for goal in known for name in (goal.name, goal.key(k))}
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
    chosen = meeting[int(np.argmax(chooser.means()[meeting]))]
    return Choice(chosen, f"the most accurate of all points with {' and '.join(map(str, targets))} on validation")


@contextmanager
def _begun(folder: str | Path) -> Iterator[Path]:
    """The folder, locked against other calls; one of other things is refused, one that stays empty is removed."""
    home = _io.check_folder_name(folder)
    created = [home, *_io.missing_folders(home)] if not home.exists() else []
    try:
        with hold_folder(home, folder):
            entries = [one.name for one in home.iterdir() if one.name[0] != "."] if home.is_dir() else []
            if home.is_file() or not set(entries) <= set(OWN):
                raise InputError(f"{folder} holds something else than a frontier; choose another folder with --out")
            _io.check_within(home / CHOSEN, home)
            yield _io.own_folder(home, REMEDY)
    finally:
        _io.remove_empty([home / MODELS, *created])


def _points(
    models: Mapping[str, Model],
    in_production: str | None,
    measurer: Measurer,
    sweeps: Sequence[Reranker],
    say: Callable[[str], None],
) -> tuple[list[Point], int]:
    """Every model with every re-ranker, and the index of the baseline.

    That is the run in production as it stands, or of the models as they are, their dials at 0, the most accurate.
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
        points += measurer.points(name, method, sweeps)
    if in_production is not None:
        return points, 0
    plain = [index for index, point in enumerate(points) if point.candidate.plain]
    return points, max(plain, key=lambda index: (points[index].accuracy.mean(), -index))


def _write(home: Path, result: Debiased, model: Model) -> None:
    """The choice as a run, then the files that describe it."""
    content, chosen = result.as_json(), result.point.candidate
    manifest = dict(model.manifest)
    if chosen.kappa != model.kappa():
        curve = model.dial_curve
        active: dict[str, Any] = {"kappa": chosen.kappa, "chosen_for": BY_DEBIAS}
        manifest["dial"] = finite(replace(curve, **active).as_json()) if curve else NO_CURVE | active
    manifest["rerank"] = None if chosen.reranker is None else chosen.reranker.as_json()
    kept = ("goals", "estimate", "base", "chosen", "why", "sentences", "confirmation")
    manifest["debias"] = {name: content[name] for name in kept}
    history = RunFolder(model.path).history() if model.path else []
    save_model(replace(model, manifest=manifest), home / CHOSEN, overwrite=True, history=history)
    rows = [one | one["metrics"] | {"rerank": one["rerank"] and one["rerank"]["name"]} for one in content["points"]]
    table = pl.DataFrame(rows, infer_schema_length=None).drop("metrics")
    contents: dict[str, _io.Content] = {FRONTIER: _io.as_json(content), TABLE: table.write_csv}
    if chosen.model == result.base.candidate.model:
        contents[RECIPE] = _io.as_json(recipe_of(content, model))
    else:  # there is none over the baseline, and an earlier choice's would mislead
        (home / RECIPE).unlink(missing_ok=True)
    _io.write_files(home, contents, REMEDY)
