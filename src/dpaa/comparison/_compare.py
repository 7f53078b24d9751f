"""Compare several recommenders with a baseline, on the same users of one test split."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise, product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from dpaa._io import resolve_path
from dpaa.comparison import statistics
from dpaa.comparison._budget import TrainingBudget, budget_warnings
from dpaa.comparison._result import Comparison, Delta, Summary, relative_change
from dpaa.data.dataset import Dataset, read_dataset
from dpaa.data.ids import Floats, Ints
from dpaa.errors import InputError
from dpaa.evaluation import bias
from dpaa.evaluation.bias import most_moved
from dpaa.evaluation.dial_curve import BY_DEBIAS
from dpaa.evaluation.evaluator import Evaluation, Evaluator, Overlap
from dpaa.evaluation.metrics import Metric, at_k
from dpaa.runs.measure import measured, need_dataset
from dpaa.runs.model import Model, load

COMPARED = ("recall", "ndcg", "recall/popular", "recall/niche", "arp", "aplt", "coverage", "gini")
"""Metrics that are compared by default, at the k in question."""
LEVEL = 0.05
"""Of the corrected p-values."""
MOVED_ITEMS = 10
"""Items listed as gaining, and as losing."""
NEARLY_SAME = 0.95
"""Share of the items that lists of two seeds have in common from which on training hardly matters (19 of 20)."""
NOT_COMPARED = ("seed", "threads")
"""What the configs of runs of one entry may differ in: the seed, and what changes no bit."""


@dataclass(frozen=True, eq=False)
class Entry:
    """One recommender: a file, or the runs of one method that differ in their seed."""

    name: str
    kind: str
    """`run` or `file`."""
    sources: tuple[str, ...]
    """Where each of the evaluations comes from."""
    evaluations: tuple[Evaluation, ...]
    seeds: tuple[int, ...] = ()
    """Of runs."""
    budgets: tuple[TrainingBudget, ...] = ()
    """What each run was given to learn with."""


E = TypeVar("E", Entry, Summary)


# ---------------------------------------------------------------------- entries


def compare(
    data: Dataset,
    entries: Mapping[str, Any],
    *,
    k: int = 20,
    overlap: Overlap = "drop",
    mask_valid: bool = False,
    **choices: Any,
) -> Comparison:
    """Compare several recommenders on the test split of a dataset: deltas, intervals and corrected p-values.

    Parameters
    ----------
    data : the dataset
    entries : name → a model, several models of one method (trained with different seeds), or recommendations (a file
        or a frame)
    k : length of the lists
    overlap, mask_valid : as in `dpaa.evaluate`
    choices : baseline, metrics, margin, resamples, seed and confidence, as in `compare_entries`

    Returns
    -------
    Comparison
    """
    need_dataset(data)
    if not isinstance(entries, Mapping) or len(entries) < 2:
        raise InputError('entries must name at least two models or lists, such as {"old": old, "new": new}')
    evaluator = Evaluator(data, k, "test", overlap, mask_valid)
    compared = []
    for name, given in entries.items():
        parts = given if isinstance(given, list | tuple) and given else [given]
        if len(parts) > 1 and not all(isinstance(part, Model) for part in parts):
            raise InputError(f"entry {name!r} has several parts that are not all models; give one file or frame")
        compared.append(_entry(str(name), parts, evaluator, [str(name)] * len(parts)))
    return compare_entries(evaluator, compared, **choices)


def _entry(name: str, parts: Sequence[Any], evaluator: Evaluator, sources: Sequence[str]) -> Entry:
    """Measure models of one method, or one table of recommendations."""
    models = [part for part in parts if isinstance(part, Model)]
    evaluations = [measured(model, evaluator) for model in models] or map(evaluator.evaluate_recommendations, parts)
    seeds = tuple(int(model.method.seed) for model in models)
    budgets = tuple(map(TrainingBudget.of_model, models))
    return Entry(name, "run" if models else "file", tuple(sources), tuple(evaluations), seeds, budgets)


def read_entries(
    paths: Sequence[str | Path],
    dataset: str | Path | None = None,
    *,
    k: int = 20,
    overlap: Overlap = "drop",
    mask_valid: bool = False,
    group_by: str | None = None,
) -> tuple[Evaluator, list[Entry]]:
    """Read run folders and recommendation files as entries of a comparison.

    Runs of one method with the same hyperparameters and different seeds become one entry, named after the method; any
    other run is named after its folder, a file after itself.  Where a name would occur twice, whole paths are the
    names.

    Parameters
    ----------
    paths : run folders and recommendation files, at least two, each once
    dataset : where all are measured; default: the dataset of the run that was trained last
    k, overlap, mask_valid, group_by : as in `dpaa evaluate`

    Returns
    -------
    the test split that all are measured on, and the entries in the order they were given
    """
    if len({resolve_path(Path(path)) for path in paths}) < max(len(paths), 2):
        raise InputError(f"name at least two runs or files to compare, each once; got {', '.join(map(str, paths))}")
    parts = {str(path): load(path) if Path(path).is_dir() else Path(path) for path in paths}
    models = [part for part in parts.values() if isinstance(part, Model)]
    if dataset is None and not models:
        raise InputError(f"{paths[0]} has no test split of its own; name the dataset with --dataset")
    if dataset is None:
        last = max(reversed(models), key=lambda model: str(model.manifest.get("finished", "")))
        data = last.trained_on.read(Path(str(last.path)))  # the others may be of earlier states of its log
    else:
        data = read_dataset(dataset)
    evaluator = Evaluator(data, k, "test", overlap, mask_valid, group_by)
    alike: dict[str, list[str]] = {}
    for path, part in parts.items():
        alike.setdefault(_common(part) if isinstance(part, Model) else path, []).append(path)
    entries = []
    for group in alike.values():
        models_alike = [model for path in group if isinstance(model := parts[path], Model)]
        if 1 < len(group) == len({model.method.seed for model in models_alike}):
            entries.append(_entry(models_alike[0].method.name, models_alike, evaluator, group))
        else:  # runs with the same seed too are no independent trainings
            entries += [_entry(Path(path).name, [parts[path]], evaluator, [path]) for path in group]
    names = [entry.name for entry in entries]
    return evaluator, [
        entry if names.count(entry.name) == 1 else replace(entry, name=" + ".join(entry.sources)) for entry in entries
    ]


def _common(model: Model) -> str:
    """Key of an entry: all that its runs have in common, as text."""
    params = {name: value for name, value in model.method.get_params().items() if name not in NOT_COMPARED}
    dial = model.entry("dial")
    by_debias = dial.get("chosen_for") == BY_DEBIAS  # with one goal or another: what tells them apart is κ
    chosen = [dial.get("chosen_for"), dial.get("kappa") if by_debias else None, model.manifest.get("rerank")]
    # Runs of different days are no seeds of one training, so the data count too.
    return json.dumps([model.method.name, params, chosen, model.trained_on.fingerprint], sort_keys=True)


# ---------------------------------------------------------------------- the comparison


def compare_entries(
    evaluator: Evaluator,
    entries: Sequence[Entry],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
    margin: float = 0.05,
    resamples: int = statistics.RESAMPLES,
    seed: int = 0,
    confidence: float = statistics.CONFIDENCE,
) -> Comparison:
    """Compare every entry with the baseline.

    Every metric that is a mean over users gets an interval and a test against the baseline (`statistics` says how);
    Holm's correction covers all tests that are made here.  Non-inferiority is tested of recall on popular items alone
    and stands outside of it.

    Parameters
    ----------
    evaluator : the test split that the entries were measured on
    entries : at least two
    baseline : name or source of the entry that the others are compared with; default: the first
    metrics : names with or without @k; default: `COMPARED`
    margin : share of the baseline's recall on popular items that may be lost without harm
    resamples, seed : random sign flips and their seed, where there is one run on each side; with many tests more flips
        are drawn, so that each of them can show a difference
    confidence : of the intervals

    Returns
    -------
    Comparison
    """
    if not 0 < margin < 1:
        raise InputError(f"margin must be between 0 and 1, got {margin:g}; 0.05 allows a loss of 5%")
    base = find_baseline(entries, baseline)
    others = [entry for entry in entries if entry is not base]
    k, first = evaluator.protocol.k[-1], base.evaluations[0]
    wanted = metrics or [*COMPARED, *(f"recall/{group}" for group in evaluator.truth.groups)]
    names = list(dict.fromkeys(full_name(name, k, list(first.metrics)) for name in wanted))
    tested = [name for name in names if per_user_values(first, name) is not None]
    popular = f"recall@{k}/popular"
    values = _Values([base, *others], list(dict.fromkeys([*tested, popular])))
    tests = [(entry.name, name) for entry in others for name in tested]
    resamples = max(resamples, int(2 * len(tests) / LEVEL))  # the smallest p there is, corrected, is below the level
    contrasts = [values.contrast(*test) for test in tests]
    harmless = [values.contrast(entry.name, popular, 1 - margin) for entry in others]
    how: dict[str, Any] = {"resamples": resamples, "seed": seed, "confidence": confidence}
    # In one call, so that all share the same sign flips; Holm's correction below is of the contrasts alone.
    results = statistics.compare_means(values.table, [*contrasts, *harmless], **how)
    outcomes = dict(zip(tests, results, strict=False))
    corrected = dict(zip(tests, statistics.holm([outcome.p for outcome in outcomes.values()]), strict=True))
    deltas = []
    for entry, name in product(others, names):
        test = (entry.name, name)
        after, before = values.means(*test) if name in tested else (_mean(entry, name), _mean(base, name))
        deltas.append(_delta(*test, before, after, outcomes.get(test), corrected.get(test)))
    better = {delta.entry for delta in deltas if delta.metric == popular and delta.verdict == "better"}
    no_harm = []
    for entry, outcome in zip(others, results[len(contrasts) :], strict=True):
        after, before = values.means(entry.name, popular)
        verdict = "shown" if entry.name in better else statistics.no_worse(outcome)
        harm = {"entry": entry.name, "metric": popular, "margin": margin, "baseline": before, "value": after}
        interval = (outcome.low, outcome.high)
        no_harm.append(harm | {"interval": interval, "p": outcome.p_at_most_zero, "verdict": verdict})
    protocol = evaluator.protocol
    if all(entry.kind == "file" for entry in entries):
        protocol = replace(protocol, lists="given")
    used = {outcome.by_coins for outcome in outcomes.values()}
    flips = f"{resamples:,} random sign flips of the users' differences"
    ways = {False: "Student's t for users crossed with runs", True: flips}
    return Comparison(
        dataset=evaluator.dataset.identity,
        protocol=protocol.as_json(),
        protocol_in_words=protocol.in_words(),
        baseline=base.name,
        k=k,
        **how,
        family=f"Holm's correction for {len(tests):,} tests",
        design="from " + " or ".join(way for by_coins, way in ways.items() if by_coins in used),
        entries=[_summary(entry) for entry in (base, *others)],
        deltas=deltas,
        no_harm=no_harm,
        overlap=[_overlap(base, entry) for entry in others],
        exposure=[_exposure(evaluator, base, entry) for entry in others],
        notes=list(_notes([base, *others])),
    )


def find_baseline(entries: Sequence[E], name: str | None) -> E:
    """The entry of that name (or that comes from there); the first if none is named.

    Parameters
    ----------
    entries : entries or their summaries
    name : of the baseline

    Returns
    -------
    one of the entries
    """
    if name is None:
        return entries[0]
    for entry in entries:
        if name == entry.name or name.rstrip("/") in entry.sources:
            return entry
    known = ", ".join(entry.name for entry in entries)
    raise InputError(f"the baseline {name!r} is not among the entries; choose from {known}")


def full_name(metric: str, k: int, known: Sequence[str]) -> str:
    """`recall/niche` as `recall@20/niche`; an unknown metric, or one at another k, is an error.

    Parameters
    ----------
    metric : as a user writes it
    k : length of the lists
    known : full names of the metrics

    Returns
    -------
    one of them
    """
    name = metric.strip()
    full = name if "@" in name.partition("/")[0] else at_k(name, k)
    if full in known:
        return full
    close = get_close_matches(full, known, n=1)
    some = ", ".join(dict.fromkeys(key.partition("@")[0] for key in known))
    hint = f"did you mean {close[0]}?" if close else f"choose from {some}"
    raise InputError(f"there is no metric {metric!r} of lists of {k}; {hint}")


def per_user_values(result: Evaluation, metric: str) -> Floats | None:
    """Values of each user whose mean is a metric.

    Parameters
    ----------
    result : an evaluation
    metric : full name, such as `recall@20/niche`

    Returns
    -------
    (users,), NaN where a user has none; None where the metric is no mean over users
    """
    column, _, group = metric.partition("/")
    if group.endswith(("-tastes", "-users")) and "=" not in group:
        values, taste = per_user_values(result, column), result.per_user["taste"]
        members = (taste == group.removesuffix("-tastes")).fill_null(value=False)
        if group in ("warm-users", "cold-users"):  # without training pairs there is no taste
            members = taste.is_null() if group == "cold-users" else taste.is_not_null()
        return None if values is None else np.where(members.to_numpy(), values, np.nan)
    if metric not in result.per_user.columns:
        return None
    return result.per_user[metric].cast(pl.Float64).fill_null(np.nan).to_numpy()


class _Values:
    """Per-user values of every run of every entry, side by side; the baseline comes first."""

    def __init__(self, entries: Sequence[Entry], names: Sequence[str]) -> None:
        self.base = entries[0].name
        self._columns: dict[tuple[str, str], tuple[int, ...]] = {}
        columns: list[Floats] = []
        for entry, name in product(entries, names):
            values = [per_user_values(e, name) for e in entry.evaluations]
            self._columns[entry.name, name] = tuple(range(len(columns), len(columns) + len(values)))
            columns += [column for column in values if column is not None]
        self.table = np.stack(columns, axis=1)  # (users, columns)

    def contrast(self, entry: str, name: str, scale: float = 1.0) -> statistics.Contrast:
        return statistics.Contrast(self._columns[entry, name], self._columns[self.base, name], scale)

    def means(self, entry: str, name: str) -> tuple[float, float]:
        """Means of the entry and of the baseline, over the users with a value from every run of both."""
        own, base = (self.table[:, self._columns[side, name]] for side in (entry, self.base))
        both = ~(np.isnan(own).any(axis=1) | np.isnan(base).any(axis=1))
        return (float(own[both].mean()), float(base[both].mean())) if both.any() else (float("nan"), float("nan"))


def _mean(entry: Entry, metric: str) -> float:
    return float(np.mean([e.metrics[metric] for e in entry.evaluations]))


def _summary(entry: Entry) -> Summary:
    runs = [evaluation.metrics for evaluation in entry.evaluations]
    deviation = {name: float(np.std([run[name] for run in runs], ddof=1)) for name in runs[0]} if len(runs) > 1 else {}
    means = {name: _mean(entry, name) for name in runs[0]}
    return Summary(entry.name, entry.kind, entry.sources, entry.seeds, means, deviation)


def _delta(
    entry: str, metric: str, before: float, after: float, outcome: statistics.Outcome | None, corrected: float | None
) -> Delta:
    delta = after - before
    numbers = (entry, metric, before, after, delta, relative_change(before, delta))
    if outcome is None or corrected is None:
        return Delta(*numbers, None, None, None, None, "not tested")
    # A difference is shown where the corrected p is below the level and 0 is outside of the interval.
    shown = corrected < LEVEL and (outcome.low > 0 or outcome.high < 0)
    better = Metric.of(metric).better
    words = ("higher", "lower") if better == "zero" else ("better", "worse")
    verdict = words[(delta > 0) == (better == "low")] if shown else "not shown"
    return Delta(*numbers, (outcome.low, outcome.high), outcome.p, corrected, outcome.users, verdict)


def _notes(entries: Sequence[Entry]) -> Iterator[str]:
    yield from budget_warnings([(entry.name, entry.budgets) for entry in entries])
    for entry in entries:
        for source, evaluation in zip(entry.sources, entry.evaluations, strict=True):
            yield from evaluation.notes
            kappa, reranker = evaluation.protocol.popularity_dial, evaluation.protocol.rerank
            kept = [f"popularity dial at κ = {kappa:g}"] if kappa else []
            kept += [f"re-ranked by {reranker}"] if reranker else []
            if kept:
                yield f"{source}: {', '.join(kept)}, as stored in the run"
        lists = [e.lists for e in entry.evaluations] if entry.budgets and entry.budgets[0].epochs else []
        shared = [shared_items(one, other)[0].mean() for one, other in pairwise(lists)]
        if shared and (same := float(np.mean(shared))) >= NEARLY_SAME * (lists[0] >= 0).sum(axis=1).mean():
            yield (
                f"runs of {entry.name} with different seeds share {same:.1f} of {lists[0].shape[1]} items: its results "
                "hardly depend on training, so their deviation over seeds is not informative"
            )
    single = [entry.name for entry in entries if entry.kind == "run" and len(entry.evaluations) == 1]
    if single:
        yield (
            f"one run of {', '.join(single)}: intervals and p-values account for the sample of users, not for "
            "run-to-run training variance; for randomly initialised methods, train with other seeds and name all runs"
        )


# ---------------------------------------------------------------------- what changes in the lists


def shared_items(one: Ints, other: Ints) -> tuple[Ints, Floats]:
    """How many items the two lists of each user share, and `|A ∩ B| / |A ∪ B|`, 1 for two empty lists.

    Lists are (users, k), −1 where they end early; the results (users,).
    """
    both = np.sort(np.concatenate([one, other], axis=1), axis=1)  # an item of both stands beside itself
    shared = np.asarray(((both[:, 1:] == both[:, :-1]) & (both[:, 1:] >= 0)).sum(axis=1))
    union = (one >= 0).sum(axis=1) + (other >= 0).sum(axis=1) - shared
    return shared, np.where(union > 0, shared / np.maximum(union, 1), 1.0)


def _overlap(base: Entry, entry: Entry) -> dict[str, Any]:
    """Compute the overlap between the lists of an entry and the baseline."""
    pairs = [shared_items(one.lists, two.lists) for one, two in product(entry.evaluations, base.evaluations)]
    shared, jaccard = (float(np.mean(parts)) for parts in zip(*pairs, strict=True))
    return {"entry": entry.name, "other": base.name, "jaccard": jaccard, "shared": shared}


def _exposure(evaluator: Evaluator, base: Entry, entry: Entry) -> dict[str, Any]:
    """Find the items whose exposure changes most from the baseline to an entry."""
    data = evaluator.dataset
    before, after = (
        np.mean([bias.exposure(evaluation.lists, data.n_items) for evaluation in side.evaluations], axis=0)
        for side in (base, entry)
    )

    def moved(item: int) -> dict[str, Any]:
        return {
            "item_id": data.item_ids[item],
            "title": None if data.titles is None else data.titles[item],
            "group": "popular" if evaluator.truth.popular[item] else "niche",
            "training_count": int(evaluator.counts[item]),
            "baseline": float(before[item]),
            "value": float(after[item]),
        }

    gaining, losing = ([moved(item) for item in items.tolist()] for items in most_moved(after - before, MOVED_ITEMS))
    return {"entry": entry.name, "gaining": gaining, "losing": losing}
