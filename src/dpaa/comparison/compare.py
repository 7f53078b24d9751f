"""Hold several recommenders against a baseline, on the same users of one test split."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._text import counted
from dpaa.comparison.entry import Entry
from dpaa.comparison.list_changes import examples, exposure, overlaps
from dpaa.comparison.result import Comparison, Delta, NoHarm, Summary, relative_change
from dpaa.comparison.statistics import (
    CONFIDENCE,
    RESAMPLES,
    Contrast,
    Outcome,
    check_choices,
    compare_means,
    holm,
    no_worse,
)
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluation, Evaluator
from dpaa.evaluation.metrics import METRICS

Floats = NDArray[np.float64]
E = TypeVar("E", Entry, Summary)


COMPARED = ("recall", "ndcg", "recall/popular", "recall/niche", "arp", "aplt", "coverage", "gini")
"""What is compared unless chosen otherwise, at the k in question."""
MARGIN = 0.05
"""The share of the baseline's recall on popular items that may be lost without harm."""
LEVEL = 0.05
"""Of the corrected p-values."""


@dataclass(frozen=True)
class Choices:
    """What is compared, and how."""

    baseline: str | None = None
    """Name or source of the entry the others are held against; the first unless given."""
    metrics: Sequence[str] = ()
    """Names with or without @k; `COMPARED` unless given."""
    margin: float = MARGIN
    resamples: int = RESAMPLES
    """Random sign flips, where there is one run on each side."""
    seed: int = 0
    """Random seed of the sign flips."""
    confidence: float = CONFIDENCE
    examples: int = 4
    """Users shown per entry."""

    def check(self) -> None:
        """Refuse, before any work, what cannot be done."""
        check_choices(self.resamples, self.confidence)
        if not 0 < self.margin < 1:
            raise InputError(
                f"margin must be between 0 and 1, got {self.margin:g}; "
                "0.05 allows a loss of 5 % of the baseline's recall on popular items"
            )
        if self.seed < 0:
            raise InputError(f"seed must be at least 0, got {self.seed}")


def compare(evaluator: Evaluator, entries: Sequence[Entry], choices: Choices | None = None) -> Comparison:
    """Hold every entry against the baseline.

    Every metric that is a mean over users gets an interval and a test against the baseline (`statistics` says how);
    Holm's correction covers all tests that are made here.  Non-inferiority is asked of recall on popular items alone
    and stands outside of it.
    """
    choices = choices or Choices()
    choices.check()
    if len(entries) < 2:
        raise InputError(f"there is one entry to compare ({entries[0].name}); give at least two")
    base = find_baseline(entries, choices.baseline)
    others = [entry for entry in entries if entry is not base]
    k = evaluator.protocol.k[-1]
    known = list(base.evaluations[0].metrics)
    asked_for = choices.metrics or [*COMPARED, *(f"recall/{group}" for group in evaluator.truth.groups)]
    names = list(dict.fromkeys(full_name(name, k, known) for name in asked_for))
    tested = [name for name in names if per_user_values(base.evaluations[0], name) is not None]
    popular = f"recall@{k}/popular"
    table = _Values([base, *others], dict.fromkeys([*tested, popular]))
    asked = [(entry, name) for entry in others for name in tested]
    contrasts = [table.contrast(entry, name) for entry, name in asked]
    harmless = [table.contrast(entry, popular, 1 - choices.margin) for entry in others]
    found = compare_means(
        table.values,
        [*contrasts, *harmless],
        resamples=choices.resamples,
        seed=choices.seed,
        confidence=choices.confidence,
    )
    outcomes = {(entry.name, name): outcome for (entry, name), outcome in zip(asked, found, strict=False)}
    corrected = dict(zip(outcomes, holm([outcome.p for outcome in outcomes.values()]), strict=True))
    deltas = [
        _delta(
            *(entry.name, name),
            table.means(entry, name) if name in tested else (_mean(entry, name), _mean(base, name)),
            outcomes.get((entry.name, name)),
            corrected.get((entry.name, name)),
        )
        for entry in others
        for name in names
    ]
    verdicts = {(delta.entry, delta.metric): delta.verdict for delta in deltas}
    of_harm = zip(others, found[len(contrasts) :], strict=True)
    files = all(entry.kind == "file" for entry in entries)
    protocol = replace(evaluator.protocol, lists="given") if files else evaluator.protocol
    return Comparison(
        dataset={"name": evaluator.dataset.name, "fingerprint": evaluator.dataset.fingerprint},
        protocol=protocol.as_json(),
        protocol_in_words=protocol.in_words(),
        baseline=base.name,
        k=k,
        resamples=choices.resamples,
        seed=choices.seed,
        confidence=choices.confidence,
        tests=sum(not np.isnan(outcome.p) for outcome in outcomes.values()),
        family=(
            f"Holm over {counted(len(outcomes), 'test', 'tests')}: "
            f"{counted(len(tested), 'metric', 'metrics')} × {counted(len(others), 'entry', 'entries')} "
            f"against {base.name}"
        ),
        design=_design(outcomes, choices),
        entries=[_summary(entry, k) for entry in (base, *others)],
        deltas=deltas,
        no_harm=[
            _no_harm(entry.name, popular, table.means(entry, popular), choices.margin, outcome, verdicts)
            for entry, outcome in of_harm
        ],
        overlap=overlaps(base, others),
        exposure=[exposure(evaluator, base, entry) for entry in others],
        examples=[one for entry in others for one in examples(evaluator, base, entry, choices.examples)],
        notes=_notes([base, *others], [table.left_out(*one) for one in asked], outcomes.values(), choices.resamples),
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


def per_user_values(found: Evaluation, metric: str) -> Floats | None:
    """The values whose mean the metric is, NaN where a user has none; None where it is no mean over users."""
    column, _, group = metric.partition("/")
    if group.endswith(("-tastes", "-users")) and "=" not in group:
        values, taste = per_user_values(found, column), found.per_user["taste"]
        members = (taste == group.removesuffix("-tastes")).fill_null(value=False)
        if group in ("warm-users", "cold-users"):  # without training pairs there is no taste
            members = taste.is_null() if group == "cold-users" else taste.is_not_null()
        return None if values is None else np.where(members.to_numpy(), values, np.nan)
    if metric not in found.per_user.columns:
        return None
    return found.per_user[metric].cast(pl.Float64).fill_null(np.nan).to_numpy()


class _Values:
    """Per-user values of every run of every entry, side by side, and of the baseline, which comes first."""

    def __init__(self, entries: Sequence[Entry], names: dict[str, None]) -> None:
        columns: list[Floats] = []
        self._place: dict[tuple[str, str], list[int]] = {}
        self._base = entries[0].name
        for entry, name in product(entries, names):
            values = [per_user_values(found, name) for found in entry.evaluations]
            self._place[entry.name, name] = list(range(len(columns), len(columns) + len(values)))
            columns += [column for column in values if column is not None]
        self.values = np.stack(columns, axis=1)
        """(users, columns)"""

    def contrast(self, entry: Entry, name: str, scale: float = 1.0) -> Contrast:
        return Contrast(tuple(self._place[entry.name, name]), tuple(self._place[self._base, name]), scale)

    def _sides(self, entry: Entry, name: str) -> list[Floats]:
        return [self.values[:, self._place[side, name]] for side in (entry.name, self._base)]

    def means(self, entry: Entry, name: str) -> tuple[float, float]:
        """Of the entry and the baseline, over the users with a value from every run of both."""
        one, other = self._sides(entry, name)
        both = ~(np.isnan(one).any(axis=1) | np.isnan(other).any(axis=1))
        return (float(one[both].mean()), float(other[both].mean())) if both.any() else (float("nan"), float("nan"))

    def left_out(self, entry: Entry, name: str) -> str | None:
        """A note where some users have a value on one side only (no list from the other, say)."""
        one, other = (np.isnan(side) for side in self._sides(entry, name))
        both = int((~one.any(axis=1) & ~other.any(axis=1)).sum())
        any_ = int((~one.all(axis=1) | ~other.all(axis=1)).sum())
        if both == any_:
            return None
        return (
            f"{name}: the difference of {entry.name} and {self._base} is that over the {both:,} of {any_:,} "
            "users with a value on both sides"
        )


def _mean(entry: Entry, metric: str) -> float:
    return float(np.mean([found.metrics[metric] for found in entry.evaluations]))


def _summary(entry: Entry, k: int) -> Summary:
    names = list(entry.evaluations[0].metrics)
    several = len(entry.evaluations) > 1
    exposure = [found.exposure[str(k)] for found in entry.evaluations]
    return Summary(
        name=entry.name,
        kind=entry.kind,
        sources=entry.sources,
        seeds=entry.seeds,
        metrics={name: _mean(entry, name) for name in names},
        deviation={
            name: float(np.std([found.metrics[name] for found in entry.evaluations], ddof=1))
            for name in (names if several else ())
        },
        exposure_by_decile=[float(share) for share in np.mean(exposure, axis=0)],
    )


def _delta(
    entry: str, name: str, means: tuple[float, float], outcome: Outcome | None, corrected: float | None
) -> Delta:
    after, before = means
    delta = after - before
    return Delta(
        entry=entry,
        metric=name,
        baseline=before,
        value=after,
        delta=delta,
        relative=relative_change(before, delta),
        interval=(outcome.low, outcome.high) if outcome else None,
        p=outcome.p if outcome else None,
        p_holm=corrected,
        users=outcome.users if outcome else None,
        verdict=_verdict(name, delta, corrected, outcome),
    )


def _verdict(name: str, delta: float, corrected: float | None, outcome: Outcome | None) -> str:
    """A difference is shown where the corrected p is below the level and 0 is outside of the interval."""
    if corrected is None or outcome is None:
        return "not tested"
    if not (corrected < LEVEL and (outcome.low > 0 or outcome.high < 0)):
        return "not shown"
    better = METRICS[name.partition("@")[0]].better
    if better == "zero":
        return "higher" if delta > 0 else "lower"
    return "better" if (delta > 0) == (better == "high") else "worse"


def _no_harm(
    entry: str,
    name: str,
    means: tuple[float, float],
    margin: float,
    outcome: Outcome,
    verdicts: dict[tuple[str, str], str],
) -> NoHarm:
    after, before = means
    better = verdicts.get((entry, name)) == "better"  # what is more than the whole is more than a share of it
    return NoHarm(
        entry=entry,
        metric=name,
        margin=margin,
        baseline=before,
        value=after,
        allowed=(1 - margin) * before,
        interval=(outcome.low, outcome.high),
        p=outcome.p_at_most_zero,
        verdict="shown" if better else no_worse(outcome),
    )


def _design(outcomes: dict[tuple[str, str], Outcome], choices: Choices) -> str:
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
    entries: Sequence[Entry], left_out: Sequence[str | None], outcomes: Collection[Outcome], resamples: int
) -> list[str]:
    notes = [note for entry in entries for note in entry.notes]
    notes += [note for entry in entries for found in entry.evaluations for note in found.notes]
    notes += [note for note in left_out if note is not None]
    files = [entry.name for entry in entries if entry.kind == "file"]
    if files and len(files) < len(entries):
        notes.append(f"the lists of {', '.join(files)} are taken as they are, those of runs are ranked here")
    single = [entry.name for entry in entries if entry.kind == "run" and len(entry.evaluations) == 1]
    if single:
        notes.append(
            f"one run of {', '.join(single)}: intervals and p-values account for the choice of users, not for the "
            "randomness of training; where a method starts at random, train with other seeds and name all runs"
        )
    tests = sum(outcome.by_coins for outcome in outcomes)
    if tests / (resamples + 1) >= LEVEL:  # the smallest p there is with sign flips, corrected
        enough = int(tests / LEVEL)
        notes.append(
            f"{resamples:,} resamples cannot show a difference in {tests:,} tests with one run a side; take at least "
            f"{enough:,} with --resamples, or fewer metrics"
        )
    return notes
