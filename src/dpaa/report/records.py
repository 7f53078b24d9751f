"""What a page shows of JSON that has no class of its own: a run's manifest and protocol, `dpaa audit --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpaa.auditing import ItemShift, Skew, TasteShift


@dataclass(frozen=True)
class Protocol:
    """How lists were made and measured, as `evaluate` and `compare` say it."""

    split: str
    overlap: str
    mask_valid: bool
    k: list[int]
    users: int | None
    relevant: int | None
    candidates: int | None
    overlapping: int | None
    popularity_dial: float | None
    rerank: str | None
    group_by: str | None

    @property
    def in_words(self) -> str:
        """Short."""
        return f"lists of {self.largest_k}, overlap convention “{self.overlap or '?'}”"

    @property
    def largest_k(self) -> int:
        """Whose metrics are shown."""
        return max(self.k, default=20)


@dataclass(frozen=True)
class Groups:
    """Items by a column, of `metrics.json`: `COLUMN=VALUE` → what is known of the group."""

    groups: dict[str, dict[str, float | None]]


@dataclass(frozen=True)
class Dial:
    """The popularity dial: κ in force, what was suggested, metrics by κ (`dpaa.evaluation.dial_curve`)."""

    kappa: float | None
    suggested: float | None
    chosen_for: str | None
    in_words: str
    curve: list[dict[str, float | None]]


@dataclass(frozen=True)
class Training:
    """How long it took."""

    epochs: int | None
    best_epoch: int | None


@dataclass(frozen=True)
class Origin:
    """Where the dataset or the pre-trained model lay."""

    path: str | None
    run: str | None


@dataclass(frozen=True)
class Manifest:
    """What a run says of itself, as far as a page shows it."""

    seed: int | None
    seconds: float
    finished: str
    versions: dict[str, Any]
    training: Training
    dataset: Origin
    pretrained: Origin
    dial: Dial


@dataclass(frozen=True)
class AuditedLists:
    """Recommendations in an audit, as far as a page shows them."""

    lorenz: list[list[float]]
    deciles: list[float]
    winners: list[ItemShift]
    losers: list[ItemShift]
    tastes: list[TasteShift]


@dataclass(frozen=True)
class AuditFile:
    """`dpaa audit --json`."""

    source: str
    in_words: list[str]
    numbers: dict[str, Any]
    meanings: dict[str, Any]
    log: Skew
    recommendations: AuditedLists
    checks: list[dict[str, Any]]
    notes: list[str]


@dataclass(frozen=True)
class FrontierPoint:
    """One model with one re-ranker (`dpaa.debiasing`)."""

    name: str
    model: str
    plain: bool
    on_frontier: bool
    accuracy: float
    accuracy_change: float
    accuracy_change_low: float
    accuracy_change_high: float
    metrics: dict[str, float | None]


@dataclass(frozen=True)
class FrontierGoal:
    """What lists shall gain."""

    name: str
    metric: str
    better: str


@dataclass(frozen=True)
class Measured:
    """A change of accuracy, relative to the baseline's."""

    estimate: float


@dataclass(frozen=True)
class Confirmed:
    """What users say of a choice that they had no part in."""

    change: Measured


@dataclass(frozen=True)
class InWords:
    """Anything that says itself what it is."""

    in_words: str


@dataclass(frozen=True)
class FrontierFile:
    """`frontier.json` of `dpaa debias`."""

    dataset: Origin
    k: int | None
    users: int | None
    goals: list[FrontierGoal]
    estimate: InWords
    exposure: InWords
    base: FrontierPoint
    chosen: FrontierPoint
    confirmation: Confirmed
    headline: str
    sentences: list[str]
    points: list[FrontierPoint]
    notes: list[str]
