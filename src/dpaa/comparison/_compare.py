"""Compare several recommenders with a baseline, on the same users of one test split."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import combinations, product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._io import settled
from dpaa._text import counted
from dpaa.comparison import _result, statistics
from dpaa.comparison._result import Comparison, Delta, Place, Summary
from dpaa.comparison.training_budget import TrainingBudget, budget_warnings
from dpaa.data.columns import Column
from dpaa.data.dataset import ABOUT_FILE, Dataset, read_dataset
from dpaa.errors import InputError, need_type
from dpaa.evaluation import bias
from dpaa.evaluation import evaluator as evaluating
from dpaa.evaluation.concentration import most_moved
from dpaa.evaluation.dial_curve import BY_DEBIAS
from dpaa.evaluation.evaluator import Evaluation, Evaluator
from dpaa.evaluation.metrics import METRICS
from dpaa.evaluation.recommendations import read_recommendations
from dpaa.runs.folder import CONFIG, RunFolder, TrainedOn
from dpaa.runs.measure import measured
from dpaa.runs.model import Model, load

Ints = NDArray[Any]
Floats = NDArray[np.float64]

COMPARED = ("recall", "ndcg", "recall/popular", "recall/niche", "arp", "aplt", "coverage", "gini")
"""Metrics that are compared by default, at the k in question."""
LEVEL = 0.05
"""Of the corrected p-values."""
MOVED_ITEMS = 10
"""Items listed as gaining, and as losing."""
NOT_COMPARED = ("seed", "threads")
"""What the configs of runs of one entry may differ in: the seed, and what changes no bit."""


@dataclass(frozen=True)
class Choices:
    """What is compared, and how."""

    baseline: str | None = None
    """Name or source of the entry that the others are compared with; default: the first."""
    metrics: Sequence[str] = ()
    """Names with or without @k; default: `COMPARED`."""
    margin: float = 0.05
    """The share of the baseline's recall on popular items that may be lost without harm."""
    resamples: int = statistics.RESAMPLES
    """Random sign flips, where there is one run on each side."""
    seed: int = 0
    """Random seed of the sign flips."""
    confidence: float = statistics.CONFIDENCE
    examples: int = 4
    """Users shown per entry."""

    def check(self) -> None:
        """Refuse, before any work, what cannot be done."""
        statistics.check_choices(self.resamples, self.confidence)
        if not 0 < self.margin < 1:
            raise InputError(
                f"margin must be between 0 and 1, got {self.margin:g}; "
                "0.05 allows a loss of 5 % of the baseline's recall on popular items"
            )
        if self.seed < 0:
            raise InputError(f"seed must be at least 0, got {self.seed}")


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
    notes: tuple[str, ...] = ()
    """What to know of it, beside the others, before believing the comparison."""


E = TypeVar("E", Entry, Summary)


# ---------------------------------------------------------------------- entries


def compare(
    data: Dataset,
    entries: Mapping[str, Any],
    *,
    k: int = 20,
    overlap: evaluating.Overlap = "drop",
    mask_valid: bool = False,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
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
    baseline : the entry that the others are compared with; default: the first
    metrics : names with or without @k; default: `COMPARED`
    choices : further fields of `Choices`

    Returns
    -------
    Comparison
    """
    need_type(data, Dataset, "data", "read one with dpaa.read_dataset or make one with dpaa.Dataset.from_frame")
    if not isinstance(entries, Mapping) or len(entries) < 2:
        raise InputError('entries must name at least two models or lists, such as {"old": old, "new": new}')
    evaluator = Evaluator(data, k, "test", overlap, mask_valid)
    made = [_entry_of(str(name), given, evaluator) for name, given in entries.items()]
    return compare_entries(evaluator, made, Choices(baseline, tuple(metrics), **choices))


def _entry_of(name: str, given: Any, evaluator: Evaluator) -> Entry:
    models = list(given) if isinstance(given, list | tuple) else [given]
    if not models:
        raise InputError(f"entry {name!r} is empty; give a model, several, or recommendations")
    if not all(isinstance(one, Model) for one in models):
        if len(models) > 1:
            raise InputError(f"entry {name!r} has several parts that are not all models; give one file or frame")
        lists = Path(models[0]) if isinstance(models[0], str) else models[0]
        return Entry(name, "file", (name,), (_evaluation(lists, evaluator),))
    seeds = tuple(int(one.method.seed) for one in models)
    sources = tuple(name if len(models) == 1 else f"{name} (seed {seed})" for seed in seeds)
    return Entry(name, "run", sources, tuple(_evaluation(one, evaluator) for one in models), seeds)


def _evaluation(given: Any, evaluator: Evaluator) -> Evaluation:
    """Of a model, or of recommendations as they are."""
    if isinstance(given, Model):
        result = measured(given, evaluator)
    else:
        data, k = evaluator.dataset, evaluator.protocol.k[-1]
        result = evaluator.evaluate_recommendations(read_recommendations(given, data.user_ids, data.item_ids, k))
    return replace(result, lists=result.lists.astype(np.int32))


def read_entries(
    paths: Sequence[str | Path],
    dataset: str | Path | None = None,
    *,
    k: int = 20,
    overlap: evaluating.Overlap = "drop",
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
    sources = [_Source.of(Path(path)) for path in paths]
    if len(sources) < 2:
        raise InputError(f"there is nothing to compare {sources[0].path} with; name at least two runs or files")
    resolved = Counter(settled(one.path) for one in sources)
    twice = next((one.path for one in sources if resolved[settled(one.path)] > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is named twice; name each run or file once")
    data = _latest_dataset(sources) if dataset is None else read_dataset(dataset)
    evaluator = Evaluator(data, k, "test", overlap, mask_valid, group_by)
    groups = _groups(sources)
    entries = []
    for name, group in zip(_names(groups), groups, strict=True):
        kind, seeds = ("run", tuple(one.seed for one in group)) if group[0].is_run else ("file", ())
        evaluations = tuple(one.evaluation(evaluator) for one in group)
        entries.append(Entry(name, kind, tuple(str(one.path) for one in group), evaluations, seeds))
    budgets = [[one.budget for one in group if one.budget] for group in groups]
    notes = budget_warnings([(entry.name, runs) for entry, runs in zip(entries, budgets, strict=True)])
    return evaluator, [replace(entries[0], notes=tuple(notes)), *entries[1:]]


@dataclass(frozen=True)
class _Source:
    """A run folder or a recommendation file."""

    path: Path
    is_run: bool
    method: str = ""
    seed: int = 0
    config: str = ""
    """All that runs of one entry have in common, as text."""
    trained_on: TrainedOn = field(default_factory=TrainedOn)
    finished: str = ""
    """When training was, as ISO text."""
    budget: TrainingBudget | None = None

    @classmethod
    def of(cls, path: Path) -> _Source:
        if not path.exists():
            raise InputError(f"there is no run folder or recommendation file {path}; check the name")
        if not path.is_dir():
            return cls(path, is_run=False)
        if (path / ABOUT_FILE).exists():
            raise InputError(f"{path} is a dataset and not a run; name it with --dataset, and runs or files to compare")
        folder = RunFolder(path)
        (manifest, about), config = folder.read_manifest(), folder.read_json(CONFIG)
        common = {key: value for key, value in config.items() if key not in NOT_COMPARED}
        dial = manifest.get("dial")
        dial = dial if isinstance(dial, dict) else {}
        common["dial chosen for"] = dial.get("chosen_for")
        if common["dial chosen for"] == BY_DEBIAS:  # with one goal or another: what tells them apart is κ
            common["dial"] = dial.get("kappa")
        common["re-ranker"] = manifest.get("rerank")
        common["dataset"] = about.dataset.fingerprint  # runs of different days are no seeds of one training
        return cls(
            path,
            is_run=True,
            method=str(config.get("method")),
            seed=config["seed"] if isinstance(config.get("seed"), int) else 0,
            config=json.dumps(common, sort_keys=True),
            trained_on=about.dataset,
            finished=str(manifest.get("finished", "")),
            budget=TrainingBudget.of(config, manifest),
        )

    def evaluation(self, evaluator: Evaluator) -> Evaluation:
        result = _evaluation(load(self.path) if self.is_run else self.path, evaluator)
        if not self.is_run:
            return result
        kappa, reranker = result.protocol.popularity_dial, result.protocol.rerank
        notes = [f"popularity dial at κ = {kappa:g}"] if kappa else []
        notes += [] if reranker is None else [f"re-ranked by {reranker}"]
        return replace(result, notes=(*result.notes, *(f"{self.path}: {one}, as the run keeps it" for one in notes)))


def _latest_dataset(sources: Sequence[_Source]) -> Dataset:
    """That of the run that was trained last: the others may be of earlier states of its log."""
    runs = [one for one in sources if one.is_run]
    if not runs:
        raise InputError(
            f"{sources[0].path} does not say what it should have recommended; name the dataset with --dataset"
        )
    run = max(reversed(runs), key=lambda one: one.finished)
    return run.trained_on.read(run.path)


def _groups(sources: Sequence[_Source]) -> list[list[_Source]]:
    """Runs that differ in their seed alone together, everything else alone, in order of first appearance.

    Where two of them have the same seed too they are no independent trainings, and all stay alone.
    """
    alike: dict[object, list[_Source]] = {}
    for one in sources:
        alike.setdefault(one.config if one.is_run else one.path, []).append(one)
    groups: list[list[_Source]] = []
    for group in alike.values():
        distinct = len({one.seed for one in group}) == len(group)
        groups += [group] if distinct else [[one] for one in group]
    return sorted(groups, key=lambda group: sources.index(group[0]))


def _names(groups: Sequence[Sequence[_Source]]) -> list[str]:
    short = [
        group[0].method if len(group) > 1 else group[0].path.name or settled(group[0].path).name for group in groups
    ]
    times = Counter(short)
    return [
        name if times[name] == 1 else " + ".join(str(one.path) for one in group)
        for name, group in zip(short, groups, strict=True)
    ]


# ---------------------------------------------------------------------- the comparison


def compare_entries(evaluator: Evaluator, entries: Sequence[Entry], choices: Choices | None = None) -> Comparison:
    """Compare every entry with the baseline.

    Every metric that is a mean over users gets an interval and a test against the baseline (`statistics` says how);
    Holm's correction covers all tests that are made here.  Non-inferiority is tested of recall on popular items alone
    and stands outside of it.

    Parameters
    ----------
    evaluator : the test split that the entries were measured on
    entries : at least two
    choices : what is compared, and how

    Returns
    -------
    Comparison
    """
    choices = choices or Choices()
    choices.check()
    if len(entries) < 2:
        raise InputError(f"there is one entry to compare ({entries[0].name}); give at least two")
    base = find_baseline(entries, choices.baseline)
    others = [entry for entry in entries if entry is not base]
    k = evaluator.protocol.k[-1]
    known = list(base.evaluations[0].metrics)
    wanted = choices.metrics or [*COMPARED, *(f"recall/{group}" for group in evaluator.truth.groups)]
    names = list(dict.fromkeys(full_name(name, k, known) for name in wanted))
    tested = [name for name in names if per_user_values(base.evaluations[0], name) is not None]
    popular = f"recall@{k}/popular"
    values = _Values([base, *others], list(dict.fromkeys([*tested, popular])))
    tests = [(entry.name, name) for entry in others for name in tested]
    contrasts = [values.contrast(*one) for one in tests]
    harmless = [values.contrast(entry.name, popular, 1 - choices.margin) for entry in others]
    how: dict[str, Any] = {"resamples": choices.resamples, "seed": choices.seed, "confidence": choices.confidence}
    results = statistics.compare_means(values.table, [*contrasts, *harmless], **how)
    outcomes = dict(zip(tests, results, strict=False))
    corrected = dict(zip(tests, statistics.holm([outcome.p for outcome in outcomes.values()]), strict=True))
    deltas = []
    for entry, name in product(others, names):
        test = (entry.name, name)
        after, before = values.means(*test) if name in tested else (_mean(entry, name), _mean(base, name))
        deltas.append(_delta(*test, before, after, outcomes.get(test), corrected.get(test)))
    verdicts = {(delta.entry, delta.metric): delta.verdict for delta in deltas}
    no_harm = []
    for entry, outcome in zip(others, results[len(contrasts) :], strict=True):
        after, before = values.means(entry.name, popular)
        better = verdicts.get((entry.name, popular)) == "better"  # more than the whole is more than a share of it
        verdict = "shown" if better else statistics.no_worse(outcome)
        allowed, interval = (1 - choices.margin) * before, (outcome.low, outcome.high)
        harm = (popular, choices.margin, before, after, allowed, interval, outcome.p_at_most_zero, verdict)
        no_harm.append(_result.NoHarm(entry.name, *harm))
    files = all(entry.kind == "file" for entry in entries)
    protocol = replace(evaluator.protocol, lists="given") if files else evaluator.protocol
    return Comparison(
        dataset={"name": evaluator.dataset.name, "fingerprint": evaluator.dataset.fingerprint},
        protocol=protocol.as_json(),
        protocol_in_words=protocol.in_words(),
        baseline=base.name,
        k=k,
        **how,
        tests=sum(not np.isnan(outcome.p) for outcome in outcomes.values()),
        family=(
            f"Holm over {counted(len(outcomes), 'test', 'tests')}: "
            f"{counted(len(tested), 'metric', 'metrics')} × {counted(len(others), 'entry', 'entries')} "
            f"against {base.name}"
        ),
        design=_design(outcomes, choices),
        entries=[_summary(entry, k) for entry in (base, *others)],
        deltas=deltas,
        no_harm=no_harm,
        overlap=list(_overlaps(base, others)),
        exposure=[_exposure(evaluator, base, entry) for entry in others],
        examples=[one for entry in others for one in _examples(evaluator, base, entry, choices.examples)],
        notes=list(_notes([base, *others], values, tests, outcomes, choices.resamples)),
    )


def find_baseline(entries: Sequence[E], name: str | None) -> E:
    """The entry of that name (or that comes from there); the first if none is named."""
    if name is None:
        return entries[0]
    for entry in entries:
        if name == entry.name or name.rstrip("/") in entry.sources:
            return entry
    known = ", ".join(entry.name for entry in entries)
    raise InputError(f"the baseline {name!r} is not among the entries; choose from {known}")


def full_name(metric: str, k: int, known: Sequence[str]) -> str:
    """`recall/niche` as `recall@20/niche`; an unknown metric, or one at another k, is an error."""
    head, slash, group = metric.strip().partition("/")
    name, _, cut = head.partition("@")
    if cut not in ("", str(k)):
        raise InputError(
            f"metric {metric!r} is not one of lists of {k}; leave @{cut} out or choose the length with --k"
        )
    full = f"{name}@{k}{slash}{group}"
    if full in known:
        return full
    near = get_close_matches(full, known, n=1)
    some = ", ".join(dict.fromkeys(one.partition("@")[0] for one in known))
    hint = f"did you mean {near[0]}?" if near else f"choose from {some}"
    raise InputError(f"there is no metric {metric!r}; {hint}")


def per_user_values(result: Evaluation, metric: str) -> Floats | None:
    """(users,) values whose mean the metric is, NaN where a user has none; None where it is no mean over users."""
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
            values = [per_user_values(one, name) for one in entry.evaluations]
            self._columns[entry.name, name] = tuple(range(len(columns), len(columns) + len(values)))
            columns += [column for column in values if column is not None]
        self.table = np.stack(columns, axis=1)  # (users, columns)

    def contrast(self, entry: str, name: str, scale: float = 1.0) -> statistics.Contrast:
        return statistics.Contrast(self._columns[entry, name], self._columns[self.base, name], scale)

    def sides(self, entry: str, name: str) -> tuple[Floats, Floats]:
        """Of the entry and the baseline, (users, runs) each."""
        return self.table[:, self._columns[entry, name]], self.table[:, self._columns[self.base, name]]

    def means(self, entry: str, name: str) -> tuple[float, float]:
        """Of the entry and the baseline, over the users with a value from every run of both."""
        one, other = self.sides(entry, name)
        both = ~(np.isnan(one).any(axis=1) | np.isnan(other).any(axis=1))
        return (float(one[both].mean()), float(other[both].mean())) if both.any() else (float("nan"), float("nan"))


def _mean(entry: Entry, metric: str) -> float:
    return float(np.mean([one.metrics[metric] for one in entry.evaluations]))


def _summary(entry: Entry, k: int) -> Summary:
    runs = [one.metrics for one in entry.evaluations]
    exposure = [one.exposure[str(k)] for one in entry.evaluations]
    deviation = {name: float(np.std([run[name] for run in runs], ddof=1)) for name in runs[0]} if len(runs) > 1 else {}
    means, deciles = {name: _mean(entry, name) for name in runs[0]}, np.mean(exposure, axis=0).tolist()
    return Summary(entry.name, entry.kind, entry.sources, entry.seeds, means, deviation, deciles)


def _delta(
    entry: str, metric: str, before: float, after: float, outcome: statistics.Outcome | None, corrected: float | None
) -> Delta:
    delta = after - before
    relative, verdict = _result.relative_change(before, delta), _verdict(metric, delta, corrected, outcome)
    if outcome is None:
        return Delta(entry, metric, before, after, delta, relative, None, None, None, None, verdict)
    interval = (outcome.low, outcome.high)
    return Delta(entry, metric, before, after, delta, relative, interval, outcome.p, corrected, outcome.users, verdict)


def _verdict(metric: str, delta: float, corrected: float | None, outcome: statistics.Outcome | None) -> str:
    """A difference is shown where the corrected p is below the level and 0 is outside of the interval."""
    if corrected is None or outcome is None:
        return "not tested"
    if not (corrected < LEVEL and (outcome.low > 0 or outcome.high < 0)):
        return "not shown"
    better = METRICS[metric.partition("@")[0]].better
    if better == "zero":
        return "higher" if delta > 0 else "lower"
    return "better" if (delta > 0) == (better == "high") else "worse"


def _design(outcomes: Mapping[tuple[str, str], statistics.Outcome], choices: Choices) -> str:
    """Where intervals and p-values come from: for each entry where they differ."""
    ways = {
        True: f"from {choices.resamples:,} random sign flips of the users' differences (seed {choices.seed})",
        False: "from Student's t for users crossed with runs",
    }
    used: dict[bool, dict[str, None]] = {}
    for (entry, _), outcome in outcomes.items():
        used.setdefault(outcome.by_coins, {})[entry] = None
    if len(used) < 2:
        return ways[next(iter(used), True)]
    return "; ".join(f"{ways[by_coins]} for {', '.join(entries)}" for by_coins, entries in used.items())


def _notes(
    entries: Sequence[Entry],
    values: _Values,
    tests: Sequence[tuple[str, str]],
    outcomes: Mapping[tuple[str, str], statistics.Outcome],
    resamples: int,
) -> Iterator[str]:
    yield from (note for entry in entries for note in entry.notes)
    yield from (note for entry in entries for one in entry.evaluations for note in one.notes)
    for entry, name in tests:
        one, other = (np.isnan(side) for side in values.sides(entry, name))
        both = int((~one.any(axis=1) & ~other.any(axis=1)).sum())
        either = int((~one.all(axis=1) | ~other.all(axis=1)).sum())
        if both < either:  # some have no list from one side, say
            yield (
                f"{name}: the difference of {entry} and {values.base} is that over the {both:,} of {either:,} "
                "users with a value on both sides"
            )
    files = [entry.name for entry in entries if entry.kind == "file"]
    if files and len(files) < len(entries):
        yield f"the lists of {', '.join(files)} are taken as they are, those of runs are ranked here"
    single = [entry.name for entry in entries if entry.kind == "run" and len(entry.evaluations) == 1]
    if single:
        yield (
            f"one run of {', '.join(single)}: intervals and p-values account for the choice of users, not for the "
            "randomness of training; where a method starts at random, train with other seeds and name all runs"
        )
    by_coins = sum(outcome.by_coins for outcome in outcomes.values())
    if by_coins / (resamples + 1) >= LEVEL:  # the smallest p there is with sign flips, corrected
        yield (
            f"{resamples:,} resamples cannot show a difference in {by_coins:,} tests with one run a side; take at "
            f"least {int(by_coins / LEVEL):,} with --resamples, or fewer metrics"
        )


# ---------------------------------------------------------------------- what changes in the lists
# `lists` is (users, k) item indices, each item once in a list, −1 where a list ends early.


def shared_items(one: Ints, other: Ints) -> Ints:
    """How many items the two lists of each user share.  Returns (users,)."""
    both = np.sort(np.concatenate([one, other], axis=1), axis=1)  # an item of both stands beside itself
    return np.asarray(((both[:, 1:] == both[:, :-1]) & (both[:, 1:] >= 0)).sum(axis=1))


def jaccard(one: Ints, other: Ints) -> Floats:
    """`|A ∩ B| / |A ∪ B|` per user, in [0, 1]; 1 for two empty lists.  Returns (users,)."""
    shared = shared_items(one, other)
    union = (one >= 0).sum(axis=1) + (other >= 0).sum(axis=1) - shared
    return np.where(union > 0, shared / np.maximum(union, 1), 1.0)


def telling_users(gain: Floats, shared: Ints, number: int, listed: Ints | None = None) -> Ints:
    """Users for whom most changes: those who gain most and those who lose most in turn, fewer shared items first.

    Where nobody gains or loses (any more), those whose lists share least.  Users who are not `listed` (bool per user;
    default: all are) come only when no other is left.  Returns (at most `number`,) rows.
    """
    index = np.arange(len(gain))
    later = np.zeros(len(gain), dtype=bool) if listed is None else ~listed
    up = [row for row in np.lexsort((index, shared, -gain, later))[:number] if gain[row] > 0 and not later[row]]
    down = [row for row in np.lexsort((index, shared, gain, later))[:number] if gain[row] < 0 and not later[row]]
    rest = np.lexsort((index, shared, later))[: 3 * number]
    in_turn = [row for pair in zip(up, down, strict=False) for row in pair]
    ordered = [*in_turn, *up[len(down) :], *down[len(up) :], *rest]
    return np.array(list(dict.fromkeys(ordered))[:number], dtype=np.int64)


def _overlaps(base: Entry, others: Sequence[Entry]) -> Iterator[_result.Overlap]:
    """Each entry against the baseline; and runs of one entry against one another, to compare that with."""
    for entry in (base, *others):
        if len(entry.evaluations) > 1:
            yield _overlap(entry.name, entry.name, list(combinations(entry.evaluations, 2)))
        if entry is not base:
            yield _overlap(entry.name, base.name, list(product(entry.evaluations, base.evaluations)))


def _overlap(name: str, other: str, pairs: Sequence[tuple[Evaluation, Evaluation]]) -> _result.Overlap:
    shares = [jaccard(one.lists, two.lists) for one, two in pairs]
    shared = [shared_items(one.lists, two.lists) for one, two in pairs]
    unchanged = [share == 1.0 for share in shares]
    return _result.Overlap(name, other, float(np.mean(shares)), float(np.mean(shared)), float(np.mean(unchanged)))


def _exposure(evaluator: Evaluator, base: Entry, entry: Entry) -> _result.Exposure:
    """Whose exposure moves most from the baseline to an entry."""
    n_items = evaluator.dataset.n_items
    before, after = (
        np.mean([bias.exposure(one.lists, n_items) for one in side.evaluations], axis=0) for side in (base, entry)
    )
    change = after - before

    def moved(item: int) -> _result.Moved:
        count, old, new = int(evaluator.counts[item]), float(before[item]), float(after[item])
        group, title = _about(evaluator, item)
        return _result.Moved(evaluator.dataset.item_ids[item], group, count, old, new, float(change[item]), title)

    gaining, losing = ([moved(item) for item in items.tolist()] for items in most_moved(change, MOVED_ITEMS))
    return _result.Exposure(entry.name, gaining, losing, int((change > 0).sum()), int((change < 0).sum()))


def _examples(evaluator: Evaluator, base: Entry, entry: Entry, number: int) -> list[_result.Example]:
    """Users for whom most changes, with both lists."""
    if number < 1:
        return []
    metric = f"recall@{evaluator.protocol.k[-1]}"
    before, after = base.evaluations[0], entry.evaluations[0]
    old, new = (one.per_user[metric].to_numpy() for one in (before, after))
    shared = shared_items(after.lists, before.lists)
    # A list against none shows nothing: such users only where no other is left.
    listed = np.asarray((before.lists >= 0).any(axis=1) & (after.lists >= 0).any(axis=1))
    dataset = evaluator.dataset
    relevant_user, relevant_item = np.divmod(evaluator.truth.relevant, dataset.n_items)
    history = np.bincount(dataset.train.user, minlength=dataset.n_users)
    examples = []
    for row in telling_users(new - old, shared, number, listed).tolist():
        user = int(evaluator.users[row])
        relevant = relevant_item[relevant_user == user]
        lists = [_places(evaluator, one.lists[row], relevant) for one in (before, after)]
        known = (dataset.item_ids.gather(relevant).to_list(), int(history[user]), int(shared[row]), metric)
        user_id, values = before.per_user[Column.USER][row], (float(old[row]), float(new[row]))
        examples.append(_result.Example(entry.name, user_id, *known, *values, *lists))
    return examples


def _places(evaluator: Evaluator, items: Ints, relevant: Ints) -> list[Place]:
    last = int(np.flatnonzero(items >= 0).max(initial=-1))
    ids, hits = evaluator.dataset.item_ids, np.isin(items, relevant).tolist()
    return [
        Place(ids[item], hit, *_about(evaluator, item)) if item >= 0 else Place(None, hit=False, group=None)
        for item, hit in zip(items[: last + 1].tolist(), hits, strict=False)
    ]


def _about(evaluator: Evaluator, item: int) -> tuple[str, str | None]:
    """Popularity group and title."""
    titles = evaluator.dataset.titles
    return "popular" if evaluator.popular[item] else "niche", None if titles is None else titles[item]
