"""`dpaa debias`: the best trade-off between accuracy and popularity for a dataset, in one call.

    FOLDER/models/NAME     the models, a run each; kept, so that another goal costs seconds
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
from typing import TypeVar, cast

import polars as pl

from dpaa._io import as_json, check_folder_name, check_within, missing_folders, own_folder, remove_empty, write_files
from dpaa._text import counted, finite
from dpaa.auditing import Check
from dpaa.data.dataset import Dataset
from dpaa.debiasing._frontier import Debiased, Frontier
from dpaa.debiasing._models import MODELS, REMEDY, ModelStore, Watch, default_methods, unwatched
from dpaa.debiasing._points import (
    ESTIMATES,
    MOST_USERS,
    Accuracy,
    Estimate,
    Measurer,
    Point,
    default_estimate,
    parse_goals,
)
from dpaa.debiasing.choice import Chooser, Confirmation, parse_target, percent
from dpaa.errors import InputError, need_type, need_whole
from dpaa.evaluation.dial_curve import BY_DEBIAS, without_curve
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.offpolicy import validation_exposure
from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import Reranker
from dpaa.runs.folder import CHOSEN, FRONTIER, RunFolder, hold_folder, save_model
from dpaa.runs.model import Model

TABLE, PAGE = "frontier.csv", "frontier.html"
OWN = (MODELS, CHOSEN, FRONTIER, TABLE, PAGE)
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
    runs : folders of finished runs on the same dataset
    base : the run in production; default: the most accurate model as it is
    goals : what lists shall gain: niche-recall, coverage, arp, gini, calibration, or a metric's name
    keep_accuracy : share of the baseline's accuracy that must be kept, confirmed on held-out users
    targets : such as "coverage>=0.8", for the least accuracy; without either, the point where returns diminish
    estimate : logged, ips, balanced, or auto by where validation comes from
    rerank : names of re-rankers to sweep; default: all that can be
    k : length of the lists
    budget : minutes for training; of a method under way then the best epoch so far is used
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
    goals, targets, runs = _several(goals), _several(targets), _several(runs)
    methods, rerank = None if methods is None else _several(methods), None if rerank is None else _several(rerank)
    wanted = parse_goals(goals)
    _check(data, keep_accuracy, targets, confidence, budget)
    need_whole(k, "k")
    need_whole(seed, "seed", 0)
    exposure = validation_exposure(data)
    if estimate not in (AUTO, *ESTIMATES):
        raise InputError(f"the estimate must be one of {', '.join((AUTO, *ESTIMATES))}, got {estimate!r}")
    used = default_estimate(exposure) if estimate == AUTO else cast("Estimate", estimate)
    users = Evaluator(data, k, "valid", "drop").sample(MOST_USERS)
    accuracy = Accuracy(users.truth, k, used)
    measurer = Measurer(users, wanted, {used: accuracy}, seed)
    niche = next((goal for goal in wanted if goal.niche), None)
    if niche is not None and not users.truth.relevant_per_row(~users.truth.popular).any():
        raise InputError(f"no validation pair has a niche item, so {niche.name} cannot be told; choose another goal")
    checks = [parse_target(text, wanted, k) for text in targets]
    sweeps = _sweeps(rerank)
    with _begun(folder) as home:
        deadline = None if budget is None else time.monotonic() + 60 * budget
        store = ModelStore(home, data, settings or {}, seed, deadline, overwrite, watch, say)
        names = default_methods() if methods is None and not runs else methods or []
        points, base_index = _points(store, names, methods is not None, runs, base, measurer, sweeps)
        chooser = Chooser(points, base_index, used, measurer.folds, confidence)
        frontier = Frontier(data.name, data.fingerprint, accuracy, exposure, chooser, users.protocol.cold_users)
        if not frontier.base.accuracy_of(used) > 0:
            name = frontier.base.candidate.name
            raise InputError(f"{name}, the baseline, finds nothing on validation; check the dataset, or name others")
        chosen, why, confirmation = _choose(frontier, keep_accuracy, checks)
        less_sure = () if confirmation is None else chooser.less_sure(confirmation.keep, chosen)
        result = Debiased(frontier, chosen, why, confirmation, less_sure, (*store.notes, *accuracy.notes()))
        _write(home, result, store.models[points[chosen].candidate.model])
    return result


def _several(given: Sequence[T] | T) -> Sequence[T]:
    """A name or path alone as a list of one."""
    return [cast("T", given)] if isinstance(given, str | Path) else cast("Sequence[T]", given)


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
    sweeps: list[Reranker] = []
    for kind in [RERANKERS.find(name) for name in (RERANKERS if names is None else names)]:
        swept = kind.sweep()
        if names is not None and not swept:
            raise InputError(f"re-ranker {kind.name} has no strengths to sweep; leave it out")
        sweeps += swept
    return sweeps


@contextmanager
def _begun(folder: str | Path) -> Iterator[Path]:
    """The folder, locked against other calls; one that stays empty is not left behind.

    A folder of other things, or one in which the run would go elsewhere, is refused before any work.
    """
    home = check_folder_name(folder)
    made = [home, *missing_folders(home)] if not home.exists() else []
    try:
        with hold_folder(home, folder):
            if home.exists() and not home.is_dir():
                raise InputError(f"{folder} is a file; choose another folder with --out")
            if home.exists() and any(not one.name.startswith(".") and one.name not in OWN for one in home.iterdir()):
                raise InputError(f"{folder} holds something else than a frontier; choose another folder with --out")
            run = RunFolder(check_within(home / CHOSEN, home))
            if (run.filled and not run.has_config) or run.path.is_file():
                raise InputError(f"{run.path} holds something else than a run; choose another folder with --out")
            yield own_folder(home, REMEDY)
    finally:
        remove_empty([home / MODELS, *made])


def _points(
    store: ModelStore,
    methods: Sequence[str],
    required: bool,
    runs: Sequence[str | Path],
    base: str | Path | None,
    measurer: Measurer,
    sweeps: Sequence[Reranker],
) -> tuple[list[Point], int]:
    """Every model with every re-ranker, and the index of the baseline.

    That is the run in production as it stands, or of the models as they are, their dials at 0, the most accurate.
    """
    points: dict[str, list[Point]] = {}
    store.check([*runs, *([] if base is None else [base])])
    for name in store.train(methods, required=required):
        points[name] = list(measurer.points(name, store.models[name].method, sweeps))
    for run in runs:
        store.take(run)
    in_production = None if base is None else store.take(base)
    for name in [one for one in store.models if one not in points]:
        store.say(f"measuring {name}")
        points[name] = list(measurer.points(name, store.models[name].method, sweeps))
    if not points:
        why = f" ({'; '.join(store.notes)})" if store.notes else ""
        raise InputError(f"there is no model to choose from{why}; name methods with --methods or runs with --runs")
    first: list[Point] = []
    if in_production is not None:
        model, first = store.models[in_production], points.pop(in_production)
        kappa, reranker = model.kappa(), model.reranker()
        if kappa or reranker:
            first = [measurer.as_run(in_production, model.method, kappa, reranker), *first]
    ordered = [*first, *(point for swept in points.values() for point in swept)]
    if first:
        return ordered, 0
    (estimate,) = measurer.accuracies
    plain = [index for index, point in enumerate(ordered) if point.candidate.plain]
    return ordered, max(plain, key=lambda index: (ordered[index].accuracy_of(estimate), -index))


# ---------------------------------------------------------------------- the choice


def _choose(frontier: Frontier, keep: float | None, targets: Sequence[Check]) -> tuple[int, str, Confirmation | None]:
    """The index of a point, why in a sentence, and what held-out users say."""
    chooser = frontier.chooser
    if keep is not None:
        chosen, confirmation = chooser.within(keep)
        return chosen, _promise_in_words(chooser, chosen, confirmation), confirmation
    if targets:
        wanted = " and ".join(map(str, targets))
        reached = chooser.reaching(targets)
        if reached is None:
            ranges = ", ".join(_range(frontier, target.name) for target in targets)
            raise OutOfReachError(f"no point reaches {wanted}: {ranges}; ask for less")
        return reached, f"the most accurate of all points with {wanted} on validation", None
    knee = chooser.knee()
    if knee == chooser.base:
        return knee, "no trade on the frontier is better than it", None
    why = "the point of diminishing returns, the farthest above the line between the two ends of the frontier"
    return knee, why, None


def _promise_in_words(chooser: Chooser, chosen: int, confirmation: Confirmation) -> str:
    loss, sure = percent(confirmation.keep - 1), f"{100 * confirmation.confidence:.0f} %"
    if chosen != chooser.base:
        return f"the best for the goal whose accuracy is within {loss} of the baseline's, confirmed at {sure}"
    if confirmation.refused is None:
        return f"no point within {loss} of its accuracy does more for the goal"
    users = counted(confirmation.users, "validation user", "validation users")
    return f"no other point could be confirmed at {sure} to be within {loss} of its accuracy by {users}"


def _range(frontier: Frontier, metric: str) -> str:
    values = [point.metrics[metric] for point in frontier.points]
    known = [value for value in values if value == value]
    return f"{metric} runs from {min(known):.4g} to {max(known):.4g}" if known else f"no {metric}"


# ---------------------------------------------------------------------- what is written


def _write(home: Path, result: Debiased, model: Model) -> None:
    """The choice as a run, then the files that describe it."""
    content = result.as_json()
    chosen = result.point.candidate
    manifest = dict(model.manifest)
    if chosen.kappa != model.kappa():
        curve = model.dial_curve
        moved = (
            without_curve() | {"kappa": chosen.kappa}
            if curve is None
            else finite(curve.at_debiased(chosen.kappa).as_json())
        )
        manifest["dial"] = moved | {"chosen_for": BY_DEBIAS}
    manifest["rerank"] = None if chosen.reranker is None else chosen.reranker.as_json()
    kept = ("goals", "estimate", "base", "chosen", "why", "sentences", "confirmation", "less_sure")
    manifest["debias"] = {name: content[name] for name in kept}
    history = RunFolder(model.path).history() if model.path else []
    save_model(replace(model, manifest=manifest), home / CHOSEN, overwrite=True, history=history)
    rows = []
    for record in content["points"]:
        row = {name: value for name, value in record.items() if name not in ("metrics", "rerank")}
        rows.append({**row, "rerank": record["rerank"] and record["rerank"]["name"], **record["metrics"]})
    table = pl.DataFrame(rows, infer_schema_length=None)
    write_files(home, {FRONTIER: as_json(content), TABLE: table.write_csv}, REMEDY)
