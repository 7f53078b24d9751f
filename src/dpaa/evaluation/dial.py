"""What the popularity dial does to a method, along the whole curve, and which κ validation would choose.

The method's scores are computed once per user; every κ ranks them anew.  The curve has one law: as κ grows, whatever
item enters a user's list is at least as popular as any that leaves it (the one was below the other and is now above
it, and only popularity has moved them).  So no list's mean count ever falls, and neither does ARP; accuracy and
coverage may go either way.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING, Any, Literal, cast

from dpaa.errors import InputError
from dpaa.evaluation import bias
from dpaa.evaluation.exposure import ValidationExposure, validation_exposure
from dpaa.evaluation.metrics import ACCURACY
from dpaa.methods.dial import dialled_family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpaa.evaluation.evaluator import Evaluator
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
"""Where the curve is drawn; towards the end a list is that of the most popular items, the method breaking ties."""
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

    @classmethod
    def of(cls, values: dict[str, Any], k: int) -> DialPoint:
        """From the names of metrics; niche recall may be missing."""
        niche = values[f"recall@{k}/niche"]
        return cls(
            _number(values["kappa"]),
            _number(values[f"ndcg@{k}"]),
            _number(values[f"recall@{k}"]),
            nan if niche is None else _number(niche),
            _number(values[f"arp@{k}"]),
            _number(values[f"coverage@{k}"]),
        )


@dataclass(frozen=True)
class Objective:
    """What κ is chosen for: `ndcg`, `recall`, or `niche:X`, the most niche recall for at most X % NDCG."""

    name: Literal["ndcg", "recall", "niche"]
    allowance: float = 0.0
    """With `niche`: the share of the undialled NDCG that may be lost."""

    @classmethod
    def parse(cls, text: str) -> Objective:
        """From the words a user writes."""
        name, colon, number = text.partition(":")
        if name in ("ndcg", "recall") and not colon:
            return cls(cast("Literal['ndcg', 'recall']", name))
        if name == "niche" and colon:
            try:
                percent = float(number.removesuffix("%"))
            except ValueError:
                percent = -1.0
            if 0 <= percent <= 100:
                return cls("niche", percent / 100)
        raise InputError(
            f"the dial's objective must be ndcg, recall or niche:X (the most niche recall for at most X % NDCG, "
            f"such as niche:5), got {text!r}"
        )

    def best(self, points: Sequence[DialPoint]) -> DialPoint:
        """The best point; of equals the one that turns the dial least, and of those the one with less popularity.

        Where validation has no niche item, `niche` has nothing to gain and leaves the dial at 0.
        """
        if self.name != "niche":
            return max(points, key=lambda point: (getattr(point, self.name), -abs(point.kappa), -point.kappa))
        plain = next(point for point in points if point.kappa == 0)
        allowed = [point for point in points if point.ndcg >= (1 - self.allowance) * plain.ndcg]
        return max(
            allowed,
            key=lambda point: (
                -1.0 if isnan(point.niche_recall) else point.niche_recall,
                -abs(point.kappa),
                -point.kappa,
            ),
        )

    def in_words(self) -> str:
        """What is sought, for people."""
        if self.name == "niche":
            return f"the most niche recall for at most {100 * self.allowance:g} % less NDCG"
        return {"ndcg": "the best NDCG", "recall": "the best recall"}[self.name]

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
            choice = f"{self.objective.in_words()} has the method itself, κ = 0"
        else:
            way = "towards" if chosen.kappa > 0 else "away from"
            values = [f"NDCG@{self.k} {plain.ndcg:.4f} → {chosen.ndcg:.4f}"]
            if self.objective.name == "recall":
                values.append(f"recall {plain.recall:.4f} → {chosen.recall:.4f}")
            if not isnan(plain.niche_recall):
                values.append(f"niche recall {plain.niche_recall:.4f} → {chosen.niche_recall:.4f}")
            choice = f"{self.objective.in_words()} is at κ = {chosen.kappa:g} ({way} popularity): {', '.join(values)}"
        return f"popularity dial on validation: {choice}; {self.exposure.in_words()}"

    def as_json(self) -> dict[str, Any]:
        """For the manifest and the page; `from_json` reads it back."""
        return {
            "kappa": self.chosen.kappa,
            "objective": str(self.objective),
            "k": self.k,
            "users": self.users,
            "curve": [point.named(self.k) for point in self.points],
            "exposure": self.exposure.as_json(),
            "in_words": self.in_words(),
        }

    @classmethod
    def from_json(cls, content: object) -> DialCurve:
        """What `as_json` gave; anything else is an `InputError`."""
        try:
            return cls._read(cast("dict[str, Any]", content))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise InputError(
                f"the stored curve of the popularity dial is damaged ({error!r}); "
                "draw it again with `dpaa evaluate RUN --dial-objective ndcg`"
            ) from None

    @classmethod
    def _read(cls, content: dict[str, Any]) -> DialCurve:
        k, exposure = int(content["k"]), content["exposure"]
        points = tuple(DialPoint.of(one, k) for one in content["curve"])
        tilt = exposure["tilt"]
        if not any(point.kappa == 0 for point in points):
            raise ValueError("no point at κ = 0")
        return cls(
            points,
            Objective.parse(str(content["objective"])),
            k,
            int(content["users"]),
            ValidationExposure(
                bool(exposure["biased"]), bool(exposure["known"]), None if tilt is None else _number(tilt)
            ),
        )

    @property
    def per_kappa(self) -> list[dict[str, Any]]:
        """The points as plain numbers."""
        return [asdict(point) for point in self.points]


def dial_curve(
    method: Method, validation: Evaluator, objective: str = "ndcg", kappas: Sequence[float] = KAPPAS
) -> DialCurve:
    """Draw the curve of a method on validation, at these κ and at 0."""
    wanted = Objective.parse(objective)
    drawn = sorted({0.0, *map(float, kappas)})
    few = validation.sample(MOST_USERS)
    suite, relevant, niche = few.suite, few.suite.relevant_per_row(), ~few.popular
    niche_relevant = suite.relevant_per_row(niche)
    counted = niche_relevant > 0
    points = []
    for kappa, lists in zip(drawn, few.lists_of(dialled_family(method, drawn), len(drawn)), strict=True):
        hits = suite.hits(lists)
        niche_hits = (hits & niche[lists])[counted]
        points.append(
            DialPoint(
                kappa=kappa,
                ndcg=float(ACCURACY["ndcg"](hits, relevant).mean()),
                recall=float(ACCURACY["recall"](hits, relevant).mean()),
                niche_recall=float(ACCURACY["recall"](niche_hits, niche_relevant[counted]).mean())
                if counted.any()
                else nan,
                arp=bias.arp(lists, few.counts),
                coverage=bias.coverage(lists, few.protocol.candidates),
            )
        )
    exposure = validation_exposure(validation.dataset)
    return DialCurve(tuple(points), wanted, validation.protocol.k[-1], len(few.users), exposure)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    return float(value)
