"""`dpaa debias`: the best trade between accuracy and popularity for a dataset, in one call.

    FOLDER/models/NAME     the models, a run each; kept, so that another wish costs seconds
    FOLDER/frontier.json   every point, the frontier, the choice and why
    FOLDER/frontier.csv    the points as a table
    FOLDER/run             the choice as a run like any other

All of it looks at validation alone; the test split is not opened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import polars as pl

from dpaa.auditing.checks import Check
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_type, need_whole
from dpaa.evaluation.dial_curve import BY_DEBIAS, without_curve
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.offpolicy import FLOOR, POWER, validation_exposure
from dpaa.files import as_json, check_folder_name, check_within, missing_folders, own_folder, remove_empty, write_files
from dpaa.frontier.choice import Chooser, Confirmation, parse_target, percent
from dpaa.frontier.estimates import ESTIMATES, Accuracy, Estimate, default_estimate
from dpaa.frontier.goals import Goal, parse_goals
from dpaa.frontier.models import MEASURING, MODELS, REMEDY, ModelStore, Watch, default_methods, unwatched
from dpaa.frontier.points import MOST_USERS, Measurer, Point
from dpaa.frontier.result import Debiased, Frontier
from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import Reranker
from dpaa.runs.folder import CHOSEN, FRONTIER, RunFolder, hold_folder, save_model
from dpaa.runs.model import Model
from dpaa.text import finite
from dpaa.words import counted

JSON, RUN = FRONTIER, CHOSEN
TABLE, PAGE = "frontier.csv", "frontier.html"
OWN = (MODELS, RUN, JSON, TABLE, PAGE)
AUTO = "auto"
T = TypeVar("T")


class OutOfReachError(InputError):
    """No point meets the target: the answer is no, and nothing is wrong with the call."""


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
    power: float = POWER,
    floor: float = FLOOR,
    settings: Mapping[str, object] | None = None,
    seed: int = 0,
    overwrite: bool = False,
    watch: Watch = unwatched,
    say: Callable[[str], None] = lambda _line: None,
) -> Debiased:
    """Train or take models, turn the dial and re-rankers over each, and choose one point on validation.

    `methods`: what to train (the fast closed forms, LightGCN, DPAA and cheap debiasing methods); with `runs` alone
    nothing is trained.  `base`: the run in production, else the most accurate model as it is.  `keep_accuracy`: the
    share of its accuracy that must be kept, confirmed with `confidence` on users who had no part in the choice;
    `targets`: such as "coverage>=0.8", for the least accuracy; without either, the point where returns diminish.
    `estimate`: logged, ips, balanced, or auto by where validation comes from.  `rerank`: names of re-rankers to sweep
    (all that can be).  `budget`: minutes for training; of a method under way then the best epoch so far is used.
    `settings`: for every method that has them.  What was trained before is taken up again.
    """
    need_type(data, Dataset, "data", "read one with dpaa.read_dataset")
    goals, targets, runs = _several(goals), _several(targets), _several(runs)
    methods, rerank = None if methods is None else _several(methods), None if rerank is None else _several(rerank)
    wanted = parse_goals(goals)
    _check(data, keep_accuracy, targets, confidence, budget)
    need_whole(k, "k")
    need_whole(seed, "seed", 0)
    exposure = validation_exposure(data)
    if estimate not in (AUTO, *ESTIMATES):
        raise InputError(f"the estimate must be one of {', '.join((AUTO, *ESTIMATES))}, got {estimate!r}")
    judged = default_estimate(exposure) if estimate == AUTO else cast("Estimate", estimate)
    users = Evaluator(data, k, "valid", "drop").sample(MOST_USERS)
    accuracy = Accuracy(users.truth, k, judged, power, floor)
    measured = Measurer(users, wanted, {judged: accuracy}, seed)
    _check_niche(users, wanted)
    checks = [parse_target(text, wanted, k) for text in targets]
    sweeps = _sweeps(rerank)
    with _begun(folder) as home:
        deadline = None if budget is None else time.monotonic() + 60 * budget
        store = ModelStore(home, data, settings or {}, seed, deadline, overwrite, watch, say)
        names = default_methods() if methods is None and not runs else methods or []
        points, stands = _points(store, names, methods is not None, runs, base, measured, sweeps)
        place = _most_accurate(points, judged) if stands is None else stands
        chooser = Chooser(points, place, judged, measured.folds, confidence)
        found = Frontier(data.name, data.fingerprint, accuracy, exposure, chooser, users.protocol.cold_users)
        if not found.base.accuracy_of(accuracy.estimate) > 0:
            name = found.base.candidate.name
            raise InputError(f"{name}, the baseline, finds nothing on validation; check the dataset, or name others")
        chosen, why, confirmation = _choose(found, keep_accuracy, checks)
        less_sure = () if confirmation is None else chooser.less_sure(confirmation.keep, chosen)
        result = Debiased(found, chosen, why, confirmation, less_sure, (*store.notes, *accuracy.notes()))
        _write(home, result, store.models[points[chosen].candidate.model])
    return result


def _several(given: Sequence[T] | T) -> Sequence[T]:
    """What was given alone, as a list of one."""
    return [cast("T", given)] if isinstance(given, str | Path) else cast("Sequence[T]", given)


def _check_niche(validation: Evaluator, goals: Sequence[Goal]) -> None:
    truth = validation.truth
    for goal in goals:
        if goal.niche and not truth.relevant_per_row(~truth.popular).any():
            raise InputError(f"no validation pair has a niche item, so {goal.name} cannot be told; choose another goal")


def _check(data: Dataset, keep: float | None, targets: Sequence[str], confidence: float, budget: float | None) -> None:
    if not len(data.valid):
        raise InputError(
            f"the validation split of {data.name} is empty, and the trade is chosen on it; "
            "make a dataset with one, such as dpaa data log FILE --valid 0.1"
        )
    if keep is not None and not 0 < keep <= 1:
        raise InputError(f"the accuracy to keep is a share above 0 and up to 1, such as 0.99, got {keep!r}")
    if keep is not None and targets:
        raise InputError("--keep-accuracy and --target choose differently; give one of them")
    if not 0.5 <= confidence < 1:
        raise InputError(f"the confidence must be from 0.5 to below 1, got {confidence!r}")
    if budget is not None and not budget > 0:
        raise InputError(f"the budget is a number of minutes above 0, got {budget!r}")


def _sweeps(names: Sequence[str] | None) -> list[Reranker]:
    """Every strength of the named re-rankers, or of all that have some."""
    kinds = [RERANKERS.find(name) for name in (RERANKERS if names is None else names)]
    found: list[Reranker] = []
    for kind in kinds:
        swept = kind.sweep()
        if names is not None and not swept:
            raise InputError(f"re-ranker {kind.name} has no strengths to sweep; leave it out")
        found += swept
    return found


@contextmanager
def _begun(folder: str | Path) -> Iterator[Path]:
    """The folder, held against other calls; one that came to nothing is not left behind."""
    home = check_folder_name(folder)
    made = [home, *missing_folders(home)] if not home.exists() else []
    try:
        with hold_folder(home, folder):
            _check_ours(home, folder)
            yield own_folder(home, REMEDY)
    finally:
        remove_empty([home / MODELS, *made])


def _check_ours(home: Path, shown: str | Path) -> None:
    """Refuse, before any work, a folder of other things, or one in which the run would go elsewhere."""
    if home.exists() and not home.is_dir():
        raise InputError(f"{shown} is a file; choose another folder with --out")
    if home.exists() and any(not one.name.startswith(".") and one.name not in OWN for one in home.iterdir()):
        raise InputError(f"{shown} holds something else than a frontier; choose another folder with --out")
    run = RunFolder(check_within(home / RUN, home))
    if (run.filled and not run.has_config) or run.path.is_file():
        raise InputError(f"{run.path} holds something else than a run; choose another folder with --out")


def _points(
    store: ModelStore,
    methods: Sequence[str],
    asked: bool,
    runs: Sequence[str | Path],
    base: str | Path | None,
    measured: Measurer,
    sweeps: Sequence[Reranker],
) -> tuple[list[Point], int | None]:
    """Every model with every re-ranker, and the place of the run in production as it stands."""
    points: dict[str, list[Point]] = {}
    store.check([*runs, *([] if base is None else [base])])
    for name in store.train(methods, asked=asked):
        points[name] = _swept(store, name, measured, sweeps)
    store.take(runs)
    in_production = store.take([base])[0] if base is not None else None
    for name in store.models:
        if name not in points:
            store.say(f"measuring {name}")
            points[name] = _swept(store, name, measured, sweeps)
    if not points:
        why = f" ({'; '.join(store.notes)})" if store.notes else ""
        raise InputError(f"there is no model to choose from{why}; name methods with --methods or runs with --runs")
    if in_production is None:
        return [point for some in points.values() for point in some], None
    model = store.models[in_production]
    kappa, reranker = model.kappa(), model.reranker()
    first = points.pop(in_production)
    if kappa or reranker:
        first = [measured.as_run(in_production, model.method, kappa, reranker), *first]
    return [*first, *(point for some in points.values() for point in some)], 0


def _swept(store: ModelStore, name: str, measured: Measurer, sweeps: Sequence[Reranker]) -> list[Point]:
    with store.pace.timed(MEASURING):
        return list(measured.points(name, store.models[name].method, sweeps))


def _most_accurate(points: Sequence[Point], estimate: Estimate) -> int:
    """Of the models as they are, their dials at 0."""
    plain = [place for place, point in enumerate(points) if point.candidate.plain]
    return max(plain, key=lambda place: (points[place].accuracy_of(estimate), -place))


# ---------------------------------------------------------------------- the choice


def _choose(found: Frontier, keep: float | None, targets: Sequence[Check]) -> tuple[int, str, Confirmation | None]:
    chooser = found.chooser
    if keep is not None:
        chosen, confirmation = chooser.within(keep)
        return chosen, _promise_in_words(found, chosen, confirmation), confirmation
    if targets:
        wished = " and ".join(map(str, targets))
        place = chooser.reaching(targets)
        if place is None:
            raise OutOfReachError(f"no point reaches {wished}: {_farthest(found, targets)}; ask for less")
        return place, f"the most accurate of all points with {wished} on validation", None
    place = chooser.knee()
    if place == chooser.base:
        return place, "no trade on the frontier is better than it", None
    why = "the point of diminishing returns, the farthest above the line between the two ends of the frontier"
    return place, why, None


def _promise_in_words(found: Frontier, chosen: int, confirmation: Confirmation) -> str:
    loss, sure = percent(confirmation.keep - 1), f"{100 * confirmation.confidence:.0f} %"
    if chosen != found.chooser.base:
        return f"the best for the goal whose accuracy is within {loss} of the baseline's, confirmed at {sure}"
    if confirmation.refused is None:
        return f"no point within {loss} of its accuracy does more for the goal"
    users = counted(confirmation.users, "validation user", "validation users")
    return f"no other point could be confirmed at {sure} to be within {loss} of its accuracy by {users}"


def _farthest(found: Frontier, targets: Sequence[Check]) -> str:
    told = []
    for target in targets:
        values = [point.metrics[target.name] for point in found.points]
        known = [value for value in values if value == value]
        told.append(f"{target.name} runs from {min(known):.4g} to {max(known):.4g}" if known else f"no {target.name}")
    return ", ".join(told)


# ---------------------------------------------------------------------- what is written


def _write(home: Path, result: Debiased, model: Model) -> None:
    """The choice as a run, then the files that tell of it."""
    content = result.as_json()
    point = result.point.candidate
    manifest = dict(model.manifest)
    if point.kappa != model.kappa():
        curve = model.dial_curve
        moved = without_curve() if curve is None else finite(curve.at_debiased(point.kappa).as_json())
        manifest["dial"] = moved | {"chosen_for": BY_DEBIAS}
    manifest["rerank"] = None if point.reranker is None else point.reranker.as_json()
    told = ("goals", "estimate", "base", "chosen", "why", "sentences", "confirmation", "less_sure")
    manifest["debias"] = {name: content[name] for name in told}
    history = RunFolder(model.path).history() if model.path else []
    save_model(replace(model, manifest=manifest), home / RUN, overwrite=True, history=history)
    rows = [_row(record) for record in content["points"]]
    write_files(home, {JSON: as_json(content), TABLE: pl.DataFrame(rows, infer_schema_length=None).write_csv}, REMEDY)


def _row(record: dict[str, Any]) -> dict[str, Any]:
    """A point as a row of the table."""
    row: dict[str, Any] = {name: value for name, value in record.items() if name not in ("metrics", "rerank")}
    rerank = record["rerank"]
    return {**row, "rerank": None if rerank is None else rerank["name"], **record["metrics"]}
