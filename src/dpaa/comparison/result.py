"""What a comparison of several recommenders finds: plain numbers and the user's own ids, ready for JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

VERDICTS = ("better", "worse", "higher", "lower", "not shown", "not tested")
"""Of a delta: higher and lower where a metric has no better direction; not tested where it is no mean over users."""
NEAR_ZERO = 10
"""A baseline that the difference exceeds this many times is near 0."""


def relative_change(baseline: float, difference: float) -> float:
    """The difference in units of the baseline, difference / |baseline|, with the difference's sign.

    NaN where there is no baseline to speak of, 0 or near it: 0.0001 → 0.0618 is a difference of 0.0617, which tells
    something, and 61,700 %, which does not.  Whoever would print a percentage prints the difference there.
    """
    if not baseline or not abs(difference) <= NEAR_ZERO * abs(baseline):
        return float("nan")
    return difference / abs(baseline)


def harm_in_words(entry: str, baseline: str, margin: float, verdict: str, difference: str) -> str:
    """The line on popular items: that of the margin, and that of the difference itself (one of `VERDICTS`), at once."""
    loss = f"{margin:.0%} of {baseline}'s recall there"
    if difference == "better":
        return f"no harm to popular items: {entry} is better there than {baseline}, by more than chance explains"
    if verdict == "shown" and difference == "worse":
        return f"the loss on popular items is small: {entry} loses more than chance explains, but less than {loss}"
    if verdict == "harm" and difference == "not shown":
        return (
            f"harm to popular items, if this is the only question: {entry} loses more than {loss}; "
            "corrected for all tests, what is seen may be luck"
        )
    return {
        "shown": f"no harm to popular items: {entry} loses less than {loss}, if anything",
        "harm": f"harm to popular items: {entry} loses more than {loss}",
        "open": f"no harm to popular items is not shown: {entry} may lose {loss} or more",
    }.get(verdict, f"harm to popular items: {verdict}")


@dataclass(frozen=True)
class Summary:
    """The metrics of an entry, the mean over its runs."""

    name: str
    kind: str
    sources: tuple[str, ...]
    seeds: tuple[int, ...]
    metrics: dict[str, float]
    deviation: dict[str, float]
    """Standard deviation over the runs; empty with one run."""
    exposure_by_decile: list[float]
    """As `Evaluation.exposure`, at k."""


@dataclass(frozen=True)
class Delta:
    """One metric of one entry against the baseline."""

    entry: str
    metric: str
    baseline: float
    """Where it is tested, over the users with a value on both sides, as `value`."""
    value: float
    delta: float
    relative: float
    """As `relative_change`; NaN where the baseline is 0 or near it."""
    interval: tuple[float, float] | None
    """None for metrics of all lists together (coverage, gini …), which are no means over users; NaN with few users."""
    p: float | None
    p_holm: float | None
    """Corrected for all tests of the comparison."""
    users: int | None
    """Users with a value on both sides."""
    verdict: str
    """One of `VERDICTS`."""


@dataclass(frozen=True)
class NoHarm:
    """Non-inferiority: whether the entry has lost less than `margin` of the baseline's metric."""

    entry: str
    metric: str
    margin: float
    baseline: float
    value: float
    allowed: float
    """(1 − margin) · baseline."""
    interval: tuple[float, float]
    """Of value − (1 − margin) · baseline: no harm if all of it is above 0."""
    p: float
    """One-sided, that the loss is the margin or more."""
    verdict: str
    """"shown", "harm" or "open"; also shown where the entry's metric is better by more than chance."""


@dataclass(frozen=True)
class Overlap:
    """How much of the lists is the same, on average over users (and pairs of runs)."""

    entry: str
    other: str
    jaccard: float
    shared: float
    """Mean number of items in both lists."""
    unchanged: float
    """Share of users with the same items in both."""


@dataclass(frozen=True)
class Moved:
    """An item whose exposure changes: in how many lists it is (mean over runs)."""

    item_id: Any
    group: str
    training_count: int
    baseline: float
    value: float
    change: float
    title: str | None = None
    """What people call it, where somebody said."""


@dataclass(frozen=True)
class Exposure:
    """The items that gain and lose most, best and worst first."""

    entry: str
    gaining: list[Moved]
    losing: list[Moved]
    items_gaining: int
    items_losing: int


@dataclass(frozen=True)
class Place:
    """One place of a list."""

    item_id: Any
    """None for an item the dataset does not know, or where the list has ended."""
    hit: bool
    group: str | None
    title: str | None = None


@dataclass(frozen=True)
class Example:
    """A user for whom much changes; the lists are those of the first runs."""

    entry: str
    user_id: Any
    relevant: list[Any]
    """The items the user took in the test split."""
    history: int
    """Number of training items."""
    shared: int
    """Items in both lists."""
    metric: str
    baseline: float
    value: float
    baseline_list: list[Place]
    entry_list: list[Place]


@dataclass(frozen=True)
class Comparison:
    """All of it."""

    dataset: dict[str, Any]
    protocol: dict[str, Any]
    protocol_in_words: str
    baseline: str
    k: int
    resamples: int
    seed: int
    confidence: float
    tests: int
    """How many tests were made."""
    family: str
    """What Holm's correction covers, in words."""
    design: str
    """Where intervals and p-values come from, in words."""
    entries: list[Summary]
    deltas: list[Delta]
    no_harm: list[NoHarm]
    overlap: list[Overlap]
    exposure: list[Exposure]
    examples: list[Example]
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """As `dpaa compare --json` prints it."""
        return {"kind": "comparison", **asdict(self)}
