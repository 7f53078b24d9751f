"""What the popularity dial does to a model, along the whole curve, and which κ validation would choose.

The method's scores are computed once per user; every κ ranks them anew.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaa.errors import InputError
from dpaa.evaluation import bias
from dpaa.evaluation.exposure import validation_exposure
from dpaa.evaluation.metrics import ACCURACY
from dpaa.methods.dial import dialled_family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpaa.evaluation.evaluator import Evaluator
    from dpaa.evaluation.exposure import ValidationExposure
    from dpaa.methods.base import Method

KAPPAS = (
    -2.0,
    -1.5,
    -1.0,
    -0.75,
    -0.5,
    -0.25,
    0.0,
    0.25,
    0.5,
    0.75,
    1.0,
    1.5,
    2.0,
    3.0,
    4.0,
    6.0,
    8.0,
    12.0,
    16.0,
    32.0,
)
"""Where the curve is drawn; from about 16 on a list is that of the most popular items, the method breaking ties."""
MOST_USERS = 10_000
"""Users the curve is drawn from; of more, so many are taken, evenly spread."""


@dataclass(frozen=True)
class DialPoint:
    """One κ, at the evaluator's largest k."""

    kappa: float
    ndcg: float
    recall: float
    niche_recall: float
    """Of the niche items alone; NaN where validation has none."""
    arp: float
    coverage: float

    def named(self, k: int) -> dict[str, float]:
        """By the names of metrics."""
        return {
            "kappa": self.kappa,
            f"ndcg@{k}": self.ndcg,
            f"recall@{k}": self.recall,
            f"recall@{k}/niche": self.niche_recall,
            f"arp@{k}": self.arp,
            f"coverage@{k}": self.coverage,
        }


@dataclass(frozen=True)
class Objective:
    """What κ is chosen for: `ndcg`, `recall`, or `niche:X`, the most niche recall for at most X % NDCG."""

    name: str
    allowance: float = 0.0
    """With `niche`: the share of the undialled NDCG that may be lost."""

    @classmethod
    def parse(cls, text: str) -> Objective:
        """From the words a user writes."""
        name, colon, number = text.partition(":")
        if name in ("ndcg", "recall") and not colon:
            return cls(name)
        if name == "niche" and colon:
            try:
                percent = float(number.rstrip("%"))
            except ValueError:
                percent = -1.0
            if 0 <= percent <= 100:
                return cls(name, percent / 100)
        raise InputError(
            f"the dial's objective must be ndcg, recall or niche:X (the most niche recall for at most X % NDCG, "
            f"such as niche:5), got {text!r}"
        )

    def best(self, points: Sequence[DialPoint]) -> DialPoint:
        """The best point; of equals the one that turns the dial least."""
        if self.name != "niche":
            return max(points, key=lambda point: (getattr(point, self.name), -abs(point.kappa)))
        plain = next(point for point in points if point.kappa == 0)
        allowed = [point for point in points if point.ndcg >= (1 - self.allowance) * plain.ndcg]
        return max(allowed, key=lambda point: (np.nan_to_num(point.niche_recall, nan=-1.0), -abs(point.kappa)))

    def __str__(self) -> str:
        return f"niche:{100 * self.allowance:g}" if self.name == "niche" else self.name


@dataclass(frozen=True)
class DialCurve:
    """The whole curve on validation, and the choice."""

    points: tuple[DialPoint, ...]
    objective: Objective
    k: int
    users: int
    """Validation users behind it."""
    exposure: ValidationExposure

    @property
    def chosen(self) -> DialPoint:
        """The best point by the objective."""
        return self.objective.best(self.points)

    def at(self, kappa: float) -> DialPoint:
        """The point of this κ."""
        return next(point for point in self.points if point.kappa == kappa)

    def in_words(self) -> str:
        """What was chosen, what it gives, and what the choice means."""
        chosen, plain = self.chosen, self.at(0.0)
        if chosen.kappa == 0:
            choice = f"the best {self.objective} is the method itself, κ = 0"
        else:
            way = "towards" if chosen.kappa > 0 else "away from"
            choice = (
                f"the best {self.objective} is at κ = {chosen.kappa:g} ({way} popularity): "
                f"NDCG@{self.k} {plain.ndcg:.4f} → {chosen.ndcg:.4f}, niche recall {plain.niche_recall:.4f} → "
                f"{chosen.niche_recall:.4f}"
            )
        return f"popularity dial on validation: {choice}; {self.exposure.in_words()}"

    def as_json(self) -> dict[str, Any]:
        """For the manifest and the page."""
        return {
            "kappa": self.chosen.kappa,
            "objective": str(self.objective),
            "users": self.users,
            "curve": [point.named(self.k) for point in self.points],
            "exposure": self.exposure.as_json(),
            "in_words": self.in_words(),
        }

    @property
    def per_kappa(self) -> list[dict[str, Any]]:
        """The points as plain numbers."""
        return [asdict(point) for point in self.points]


def dial_curve(
    method: Method, validation: Evaluator, objective: str = "ndcg", kappas: Sequence[float] = KAPPAS
) -> DialCurve:
    """Draw the curve of a method on validation."""
    wanted = Objective.parse(objective)
    k = validation.protocol.k[-1]
    few = validation.sample(MOST_USERS)
    suite, relevant, niche = few.suite, few.suite.relevant_per_row(), ~few.popular
    niche_relevant = suite.relevant_per_row(niche)
    counted = niche_relevant > 0
    points = []
    for kappa, lists in zip(kappas, few.lists_of(dialled_family(method, kappas), len(kappas)), strict=True):
        hits = suite.hits(lists)
        niche_hits = (hits & niche[lists])[counted]
        points.append(
            DialPoint(
                kappa=float(kappa),
                ndcg=float(ACCURACY["ndcg"](hits, relevant).mean()),
                recall=float(ACCURACY["recall"](hits, relevant).mean()),
                niche_recall=float(ACCURACY["recall"](niche_hits, niche_relevant[counted]).mean())
                if counted.any()
                else float("nan"),
                arp=bias.arp(lists, few.counts),
                coverage=bias.coverage(lists, few.protocol.candidates),
            )
        )
    return DialCurve(tuple(points), wanted, k, len(few.users), validation_exposure(validation.dataset))
