"""Effect of the popularity dial on a method for a range of κ, and the κ that validation suggests.

The method's scores are computed once per user; every κ ranks them again.  The curve has one law: as κ grows, whatever
item enters a user's list is at least as popular as any that leaves it (the one was below the other and is now above
it, and only popularity has moved them).  So no list's mean count ever falls, and neither does ARP; accuracy and
coverage may go either way.

The manifest of a run keeps the κ that its lists use, under `dial`: 0 after training.  Beside it stands what an
objective would choose from the curve (`_best_point`); only a call such as `dpaa evaluate RUN --popularity-dial ndcg`
applies it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from math import isnan, nan
from typing import Any, cast

from pydantic import TypeAdapter

from dpaa.errors import InputError
from dpaa.evaluation.bias import mean_of_known
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import arp, coverage, ndcg, recall
from dpaa.evaluation.offpolicy import ValidationExposure, validation_exposure
from dpaa.methods.base import Method
from dpaa.ranking.dial import dialled_family

KAPPAS = (
    *(-2.0, -1.5, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0),
    *(1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0),
)
"""Where the curve is drawn; towards the end a list is that of the most popular items, the method breaking ties."""
BY_DEBIAS = "debias"
"""In place of an objective, where `dpaa debias` chose κ."""
LARGEST_DIAL = 1000.0
"""κ beyond which single precision would lose the method's own scores."""
SUGGESTED = "suggested"
"""In a manifest's `dial`: κ that an objective would choose."""
AGAIN = "choose it again with `dpaa evaluate RUN --popularity-dial ndcg`"
NO_CURVE = {"kappa": 0.0, "chosen_for": None, SUGGESTED: None}
"""What a manifest has under `dial` where there are no validation pairs to draw a curve from."""
MOST_USERS = 10_000
"""Users the curve is drawn from; of more, so many are taken, evenly spread."""


@dataclass(frozen=True)
class DialPoint:
    """Metrics at one κ and the evaluator's largest k."""

    kappa: float
    ndcg: float
    recall: float
    niche_recall: float
    """Of the niche items alone; NaN where validation has none."""
    arp: float
    coverage: float

    def named(self, k: int) -> dict[str, float]:
        """The values by the names of metrics."""
        return dict(zip(_names(k), astuple(self), strict=True))

    @classmethod
    def of(cls, values: dict[str, Any], k: int) -> DialPoint:
        """Read the values by the names of metrics; null is no value."""
        return cls(*(nan if values[name] is None else float(values[name]) for name in _names(k)))


def _best_point(points: Sequence[DialPoint], objective: str) -> DialPoint:
    """Choose the best point; of equals the one that turns the dial least, and of those the less popular one.

    Where validation has no niche item, `niche:X` has nothing to gain and leaves the dial at 0.

    Parameters
    ----------
    points : of a curve, that at κ = 0 among them
    objective : see `check_objective`

    Returns
    -------
    one of them
    """
    name, allowance = check_objective(objective)
    plain = next((point.ndcg for point in points if point.kappa == 0), nan)
    allowed = [point for point in points if name != "niche_recall" or point.ndcg >= (1 - allowance) * plain]

    def worth(point: DialPoint) -> tuple[float, ...]:
        gained = getattr(point, name)
        return -1.0 if isnan(gained) else gained, -abs(point.kappa), -point.kappa

    return max(allowed, key=worth)


def check_objective(text: str) -> tuple[str, float]:
    """Parse the objective for κ: `ndcg`, `recall`, or `niche:X`, the highest niche recall for at most X% less NDCG.

    Parameters
    ----------
    text : the objective

    Returns
    -------
    field of a `DialPoint`, and the share of the undialled NDCG that may be lost
    """
    match = re.fullmatch(r"(ndcg|recall)|niche:([0-9]+(?:[.][0-9]+)?)%?", text)
    if match is None or float(match[2] or 0) > 100:
        raise InputError(f"the dial's objective must be ndcg, recall or niche:X (X% of NDCG may be lost), got {text!r}")
    return match[1] or "niche_recall", float(match[2] or 0) / 100


@dataclass(frozen=True)
class DialCurve:
    """The curve on validation, the κ that an objective selects from it, and the active κ."""

    points: tuple[DialPoint, ...]
    objective: str
    """See `check_objective`."""
    k: int
    users: int
    """Validation users behind it."""
    exposure: ValidationExposure
    suggested: float
    """κ that the objective would choose."""
    kappa: float
    """κ that is active."""
    chosen_for: str | None = None
    """The objective that it was chosen for; None where it is the method's own."""

    def in_words(self) -> str:
        """The active κ, what the objective would choose and how to apply that, and what it means."""
        reason = f"chosen for {self.chosen_for}" if self.chosen_for else "the method itself"
        by_kappa = {point.kappa: point for point in self.points}
        before, after = by_kappa[0.0], by_kappa[self.suggested]
        return (
            f"popularity dial: κ = {self.kappa:g} is active ({reason}); the best κ for {self.objective} on validation "
            f"is {self.suggested:g} (NDCG@{self.k} {before.ndcg:.4f} → {after.ndcg:.4f}); {self.exposure.in_words()}"
        )

    def as_json(self) -> dict[str, Any]:
        """For the manifest and the page; `from_json` reads it back."""
        own = {name: getattr(self, name) for name in ("kappa", "chosen_for", SUGGESTED, "objective", "k", "users")}
        curve = [point.named(self.k) for point in self.points]
        return own | {"curve": curve, "exposure": self.exposure.as_json(), "in_words": self.in_words()}

    @classmethod
    def from_json(cls, content: object) -> DialCurve:
        """Read what `as_json` gave; anything else is an `InputError`."""
        stored = cast("dict[str, Any]", content)
        try:
            check_objective(stored["objective"])
            points = tuple(DialPoint.of(row, stored["k"]) for row in stored["curve"])
            curve = TypeAdapter(cls).validate_python(stored | {"points": points, "kappa": active_kappa(stored)})
            curve.in_words()  # needs the points at κ = 0 and at the suggested κ
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
            raise InputError(f"the stored curve of the popularity dial is damaged; {AGAIN}") from None
        return curve


def active_kappa(dial: object) -> float:
    """Read the active κ of a manifest's `dial`; 0 where it has none.

    Parameters
    ----------
    dial : entry of the manifest, perhaps damaged

    Returns
    -------
    κ
    """
    kappa = dial.get("kappa") if isinstance(dial, dict) and SUGGESTED in dial else 0.0
    if isinstance(kappa, bool) or not isinstance(kappa, int | float) or not abs(kappa) <= LARGEST_DIAL:
        raise InputError(f"the run's popularity dial is damaged (its value is {kappa!r}); {AGAIN}")
    return float(kappa)


def dial_curve(method: Method, validation: Evaluator, objective: str = "ndcg") -> DialCurve:
    """Compute the curve of a method on validation; the active κ is 0.

    Parameters
    ----------
    method : a fitted method
    validation : the validation pairs
    objective : what the suggested κ is chosen for, see `check_objective`

    Returns
    -------
    DialCurve
    """
    check_objective(objective)
    few = validation.sample(MOST_USERS)
    lists_of = few.lists_of(dialled_family(method, KAPPAS), len(KAPPAS), method.graph.device)
    points = []
    for kappa, lists in zip(KAPPAS, lists_of, strict=True):
        at = few.truth.context(lists)
        niche = mean_of_known(recall(at.of_items(~few.truth.popular)))
        accuracy = float(ndcg(at).mean()), float(recall(at).mean()), niche
        points.append(DialPoint(kappa, *accuracy, mean_of_known(arp(at)), coverage(at)))
    exposure, k = validation_exposure(validation.dataset), validation.protocol.k[-1]
    suggested = _best_point(points, objective).kappa
    return DialCurve(tuple(points), objective, k, len(few.users), exposure, suggested, kappa=0.0)


def _names(k: int) -> list[str]:
    """Names of the fields of a `DialPoint` in files."""
    return ["kappa", f"ndcg@{k}", f"recall@{k}", f"recall@{k}/niche", f"arp@{k}", f"coverage@{k}"]
