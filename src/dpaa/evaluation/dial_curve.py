"""What the popularity dial does to a method, along the whole curve, and which κ validation would choose.

The method's scores are computed once per user; every κ ranks them anew.  The curve has one law: as κ grows, whatever
item enters a user's list is at least as popular as any that leaves it (the one was below the other and is now above
it, and only popularity has moved them).  So no list's mean count ever falls, and neither does ARP; accuracy and
coverage may go either way.

The manifest of a run keeps the κ that its lists use, under `dial`: 0 after training.  Beside it stands what an
objective would choose from the curve (`Objective.best`); `dpaa evaluate RUN --dial-objective …` alone applies it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite, isnan, nan
from typing import Any, Literal, cast

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
"""In place of an objective, where `dpaa debias` put κ in force."""
LARGEST_DIAL = 1000.0
"""κ beyond which single precision would lose the method's own scores."""
SUGGESTED = "suggested"
"""In a manifest's `dial`: κ that an objective would choose; runs of before have none."""
MOST_USERS = 10_000
"""Users the curve is drawn from; of more, so many are taken, evenly spread."""


KEYS = {"kappa": "kappa", "ndcg": "ndcg@{k}", "recall": "recall@{k}", "niche_recall": "recall@{k}/niche"} | {
    "arp": "arp@{k}",
    "coverage": "coverage@{k}",
}
"""Field of a `DialPoint` → name of the metric."""


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
        return {key.format(k=k): getattr(self, name) for name, key in KEYS.items()}

    @classmethod
    def of(cls, values: dict[str, Any], k: int) -> DialPoint:
        """From the names of metrics; niche recall may be missing."""
        found = {name: values[key.format(k=k)] for name, key in KEYS.items()}
        niche = found.pop("niche_recall")
        return cls(niche_recall=nan if niche is None else _number(niche), **{n: _number(v) for n, v in found.items()})


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
        value = "niche_recall" if self.name == "niche" else self.name
        plain = next((point.ndcg for point in points if point.kappa == 0), nan)
        allowed = [point for point in points if self.name != "niche" or point.ndcg >= (1 - self.allowance) * plain]

        def rank(point: DialPoint) -> tuple[float, ...]:
            found = getattr(point, value)
            return -1.0 if isnan(found) else found, -abs(point.kappa), -point.kappa

        return max(allowed, key=rank)

    def in_words(self) -> str:
        """What is sought, for people."""
        if self.name == "niche":
            return f"the most niche recall for at most {100 * self.allowance:g} % less NDCG"
        return {"ndcg": "the best NDCG", "recall": "the best recall"}[self.name]

    def __str__(self) -> str:
        return f"niche:{100 * self.allowance:g}" if self.name == "niche" else self.name


@dataclass(frozen=True)
class DialCurve:
    """The whole curve on validation, what an objective would choose from it, and what is in force."""

    points: tuple[DialPoint, ...]
    objective: Objective
    k: int
    users: int
    """Validation users behind it."""
    exposure: ValidationExposure
    suggested: float
    """κ that the objective would choose."""
    kappa: float
    """κ in force."""
    chosen_for: str | None = None
    """The objective that put it in force; None where it is the method's own."""

    def at(self, kappa: float) -> DialPoint | None:
        """The point of this κ; None where none was drawn."""
        return next((point for point in self.points if point.kappa == kappa), None)

    def in_force(self) -> DialCurve:
        """The same with the suggested κ in force."""
        return replace(self, kappa=self.suggested, chosen_for=str(self.objective))

    def at_debiased(self, kappa: float) -> DialCurve:
        """The same with the κ in force that `dpaa debias` chose."""
        return replace(self, kappa=kappa, chosen_for=BY_DEBIAS)

    def in_words(self) -> str:
        """What is in force and why, what the objective would choose and how to keep that, and what it means."""
        reason = (
            "the method itself" if self.chosen_for is None else f"chosen for {_objective_in_words(self.chosen_for)}"
        )
        wanted = f"{self.objective.in_words()} on validation"
        if self.suggested == self.kappa:
            changes = f": against κ = 0 {self._changes(0.0)}" if self.kappa else ""
            choice = f"{wanted} is there{changes}"
        else:
            way = "towards" if self.suggested > self.kappa else "away from"
            choice = (
                f"{wanted} would be at κ = {self.suggested:g} ({way} popularity): {self._changes(self.kappa)}; "
                f"`dpaa evaluate RUN --dial-objective {self.objective}` puts that in force"
            )
        return f"popularity dial: κ = {self.kappa:g} is in force ({reason}); {choice}; {self.exposure.in_words()}"

    def _changes(self, kappa: float) -> str:
        """What the suggestion changes against this κ, or against 0 where it was not drawn."""
        before, after = self.at(kappa) or self.at(0.0), self.at(self.suggested)
        assert before is not None
        assert after is not None
        values = [f"NDCG@{self.k} {before.ndcg:.4f} → {after.ndcg:.4f}"]
        if self.objective.name == "recall":
            values.append(f"recall {before.recall:.4f} → {after.recall:.4f}")
        if not isnan(before.niche_recall):
            values.append(f"niche recall {before.niche_recall:.4f} → {after.niche_recall:.4f}")
        return ", ".join(values)

    def as_json(self) -> dict[str, Any]:
        """For the manifest and the page; `from_json` reads it back."""
        return {
            "kappa": self.kappa,
            "chosen_for": self.chosen_for,
            SUGGESTED: self.suggested,
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
        k, exposure, chosen_for = int(content["k"]), content["exposure"], content.get("chosen_for")
        points = tuple(DialPoint.of(one, k) for one in content["curve"])
        # Runs of an earlier version have their suggestion under `kappa`.
        suggested = _number(content[SUGGESTED if SUGGESTED in content else "kappa"])
        for kappa in (0.0, suggested):
            if not any(point.kappa == kappa for point in points):
                raise ValueError(f"no point at κ = {kappa:g}")
        tilt = None if exposure["tilt"] is None else _number(exposure["tilt"])
        return cls(
            points,
            Objective.parse(str(content["objective"])),
            k,
            int(content["users"]),
            ValidationExposure(bool(exposure["biased"]), bool(exposure["known"]), tilt),
            suggested,
            kappa_in_force(content),
            chosen_for if chosen_for in (None, BY_DEBIAS) else str(Objective.parse(chosen_for)),
        )

    @property
    def per_kappa(self) -> list[dict[str, Any]]:
        """The points as plain numbers."""
        return [asdict(point) for point in self.points]


def _objective_in_words(chosen_for: str) -> str:
    if chosen_for == BY_DEBIAS:
        return "the trade that `dpaa debias` was asked for"
    return Objective.parse(chosen_for).in_words()


def without_curve() -> dict[str, Any]:
    """What a manifest has under `dial` where there are no validation pairs to draw a curve from."""
    return {"kappa": 0.0, "chosen_for": None, SUGGESTED: None}


def kappa_in_force(dial: object) -> float:
    """κ that a manifest's `dial` puts in force; the method's own for runs of before it was stored there.

    Those have no `suggested`, and under `kappa` what an objective would have chosen.
    """
    if not isinstance(dial, dict) or SUGGESTED not in dial:
        return 0.0
    try:
        kappa = _number(dial["kappa"])
    except (KeyError, ValueError, OverflowError):
        kappa = nan
    if not abs(kappa) <= LARGEST_DIAL:
        raise InputError(
            f"the run's popularity dial is damaged (it stands at {dial.get('kappa')!r}); choose it again with "
            "`dpaa evaluate RUN --dial-objective ndcg`, or give the dial a number"
        )
    return kappa


def dial_curve(
    method: Method, validation: Evaluator, objective: str = "ndcg", kappas: Sequence[float] = KAPPAS
) -> DialCurve:
    """Draw the curve of a method on validation, at these κ and at 0; in force is the method's own."""
    wanted = Objective.parse(objective)
    drawn = sorted({0.0, *map(float, kappas)})
    few = validation.sample(MOST_USERS)
    points = []
    for kappa, lists in zip(
        drawn, few.lists_of(dialled_family(method, drawn), len(drawn), method.graph.device), strict=True
    ):
        at = few.truth.context(lists)
        niche = at.of_items(~few.popular)
        points.append(
            DialPoint(
                kappa=kappa,
                ndcg=float(ndcg(at).mean()),
                recall=float(recall(at).mean()),
                niche_recall=mean_of_known(recall(niche)),
                arp=mean_of_known(arp(at)),
                coverage=coverage(at),
            )
        )
    return DialCurve(
        points=tuple(points),
        objective=wanted,
        k=validation.protocol.k[-1],
        users=len(few.users),
        exposure=validation_exposure(validation.dataset),
        suggested=wanted.best(points).kappa,
        kappa=0.0,
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    return float(value)
