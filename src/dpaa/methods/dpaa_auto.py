"""DPAA that sets itself: what may help is tried in short, and validation decides.

1. Plain LightGCN is trained.  Its vectors show whether messages to popular items would get smaller weights (the premise
   of DPAA), for each source of the cosine; the source that holds best is taken, none where neither holds.
2. A race: short trainings that go on from the plain model at a higher learning rate, without weights, with IIW, with
   DPAA's defaults, and as printed.  Weights win only where they are ahead by more than validation's noise.
3. The winner is trained on, longer than early stopping on a noisy validation number would let it.
4. The popularity dial κ is chosen on validation (`evaluation.dial_curve.least_turn`), unless validation comes from the
   log's own exposure, where any choice would favour popularity: then it stays 0.

Everything is counted in epochs of the plain training: 1 for it, `budget` for the rest; all parts together keep within
`epochs`, of which the plain training may take the (1 + budget)th part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dpaa._text import counted
from dpaa.data.popularity import popularity_deciles
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.cosine import edge_cosines
from dpaa.graph.propagation import TiledTable
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.base import Context
from dpaa.methods.settings import Settings, TrainedSettings
from dpaa.methods.stages import Part, Stages, Verdict

SOURCES = ("layer", "readout")
FALLS = 0.02
"""By how much of itself IIW must fall from rare to popular items for the premise to hold."""
RARE, POPULAR = (0, 1, 2), (7, 8, 9)
"""Popularity deciles compared for it."""
FASTEST = 5e-3
"""Learning rate beyond which nothing is sped up."""
RACE_SHARE = 6
"""A racer trains so small a part of the plain training's epochs."""
STRETCHES = 10
WORSE = 4
"""Stretches without a new best after which training on ends."""


class DpaaAutoSettings(TrainedSettings):
    """LightGCN's settings, and how much may be spent."""

    learning_rate: float = Field(default=1e-3, gt=0)
    """Adam's step size; of a schedule the largest."""
    learning_rate_schedule: Literal["inverse-sqrt", "constant"] = "constant"
    """After the warm-up: `inverse-sqrt` falls like `√(warmup_steps / step)`, `constant` stays."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps in which the learning rate rises from 0 to its full size, in each of the trainings; 0: none."""
    patience: int = Field(default=50, ge=1)
    """Epochs without a better validation recall@20 before LightGCN's training stops."""
    patience_steps: Literal["auto"] | Annotated[int, Field(ge=0)] = 0
    """Steps that must have passed without one as well; `auto` is 0.5 / learning_rate."""
    minimum_steps: Literal["auto"] | Annotated[int, Field(ge=0)] = 0
    """Steps before early stopping may end LightGCN's training; `auto` is 1.5 / learning_rate."""
    validation_steps: int = Field(default=1, ge=1)
    """Validation comes after an epoch that ends this many steps after the last validation; 1: after every epoch."""
    epochs: int = Field(default=1000, ge=1)
    """Epochs at most, of all parts together; the first training, of LightGCN, gets at most the (1 + budget)th part."""
    budget: float = Field(default=3.0, ge=0.5, le=100)
    """What the race and the long training may cost, in trainings of LightGCN (which comes first and is not counted)."""
    speed_up: float = Field(default=5.0, gt=0, le=100)
    """The race and the long training use the learning rate times this, but no more than 0.005 where that is less."""
    objective: Literal["ndcg", "recall"] = "ndcg"
    """What is compared on validation, at 20."""


@dataclass(frozen=True)
class Entry:
    """A candidate of the race."""

    label: str
    what: str
    settings: dict[str, Any] = field(default_factory=dict)


class DpaaAuto(GraphMethod):
    """The vectors of the model that won, with its dial.  Changes: `train`, `popularity_dial`, `initial_residual`,
    `new_user_scale`, `message_weights`.
    """

    name: ClassVar[str] = "dpaa-auto"
    version: ClassVar[int] = 2
    title: ClassVar[str] = "DPAA without a grid, chosen on validation; retired, `dpaa debias` does its work"
    retired: ClassVar[str] = "`dpaa debias` chooses among more models, dials and re-rankers, and confirms its choice"
    paper: ClassVar[str] = "ours; see docs/dpaa-auto.md"
    settings_type: ClassVar[type[Settings]] = DpaaAutoSettings
    shares_users: ClassVar[bool] = True
    grid: ClassVar[dict[str, tuple[object, ...]]] = {}
    chooses_settings: ClassVar[bool] = True
    builds_on: ClassVar[tuple[str, ...]] = ("lightgcn", "dpaa")
    saved: ClassVar[dict[str, tuple[str | int, ...]]] = {"chosen": (3,)}
    dial_rule: ClassVar[str] = (
        "dpaa-auto's choice: the least turn that validation cannot tell from the best, none on the log's own exposure"
    )

    settings: DpaaAutoSettings

    def __init__(self, graph: BipartiteGraph, settings: Settings) -> None:
        super().__init__(graph, settings)
        self._kappa = 0.0
        self._residual = 0.0
        self._user_power = 0.5
        self._message_weights: list[tuple[str, Tensor]] = []

    # ------------------------------------------------------------------ how it comes about

    def train(self, context: Context) -> dict[str, Any]:
        """In stages."""
        return context.stages(self)

    def assemble(self, stages: Stages) -> dict[str, Any]:
        """Train, race, train on, choose; returns what was chosen and why."""
        objective, allowed = self.settings.objective, self.settings.epochs
        first = math.ceil(allowed / (1 + self.settings.budget))
        plain = stages.train("plain", "lightgcn", self._shared() | {"epochs": first})
        by_budget = max(1, math.floor(self.settings.budget * plain.epochs))
        left = min(by_budget, allowed - plain.epochs)
        limit = "budget" if by_budget < allowed - plain.epochs else "epochs"
        reasons: list[str] = []

        def because(reason: str) -> None:
            reasons.append(reason)
            stages.say(reason)

        premise = {source: self._fall(plain.method, source) for source in SOURCES}
        source = max(premise, key=lambda name: premise[name])
        holds = premise[source] >= FALLS
        because(_premise_in_words(premise, source, holds))
        chosen, parts, before = plain, [_told(plain, None, self.settings.learning_rate)], None
        settings: dict[str, Any] = {}
        limited = plain.best_epoch == first
        if left < 1:
            because("no epochs are left for short trainings: the plain model is kept")
        else:
            entry, race, winner = self._race(stages, plain, _entries(source if holds else None), left, because)
            left -= sum(part.epochs for part in race)
            stretches = self._train_on(stages, entry, plain, race[winner], left)
            on = max(stretches, key=lambda part: part.valid)
            if len(stretches) == 1:
                because("no epochs are left to train it on")
            else:
                because(
                    f"{entry.what}: trained on for {sum(part.epochs for part in stretches[1:])} epochs, kept after "
                    f"{sum(part.epochs for part in stretches[1 : stretches.index(on) + 1])} of them, where the mean of "
                    f"the epochs' {objective}@20 on validation was highest"
                )
            parts += [_told(part, plain, self._rate) for part in race]
            parts += [_told(part, start, self._rate) for start, part in itertools.pairwise(stretches)]
            before, after = stages.judge(plain.method, objective), stages.judge(on.method, objective)
            behind, noise = _mean_and_noise(before.per_user - after.per_user)
            if behind <= noise:
                chosen, settings, before = on, entry.settings, after
                limited = on is stretches[-1]  # what ends it sooner comes after the best
            because(
                f"against the plain model {objective}@20 on validation changes by {-behind:+.4f} ± {noise:.4f}: "
                + ("the plain model is kept" if chosen is plain else "it is taken")
            )
        verdict = before or stages.judge(plain.method, objective)
        because(f"popularity dial κ = {verdict.kappa:g} ({self.dial_rule}); {stages.exposure_in_words()}")
        self._take(chosen, verdict.kappa, settings)
        return {
            "chosen": {"part": chosen.label, "settings": settings, "kappa": verdict.kappa},
            "why": reasons,
            "premise": premise,
            "parts": parts,
            "limited_by": ("epochs" if chosen is plain else limit) if limited else None,
            "cost_in_epochs_of_plain": round(sum(part["epochs"] for part in parts) / plain.epochs, 3),
        }

    def _race(
        self, stages: Stages, plain: Part, entries: list[Entry], epochs: int, because: Callable[[str], None]
    ) -> tuple[Entry, list[Part], int]:
        """Short trainings from the plain model: who won, all of them, and the winner's place.

        With fewer epochs than racers there is no race: LightGCN is trained on.
        """
        objective = self.settings.objective
        if epochs < len(entries):
            entries = entries[:1]
        short = max(1, min(plain.epochs // RACE_SHARE, epochs // (2 * len(entries))))
        race = [stages.train(entry.label, "dpaa", self._faster(short) | entry.settings, plain) for entry in entries]
        if len(race) == 1:
            because(f"{counted(epochs, 'epoch is', 'epochs are')} too few for a race; {entries[0].what} is taken")
            return entries[0], race, 0
        verdicts = [stages.judge(part.method, objective) for part in race]
        winner = _surely_best(verdicts)
        told = ", ".join(f"{one.what} {verdict.value:.4f}" for one, verdict in zip(entries, verdicts, strict=True))
        because(
            f"short trainings of {counted(short, 'epoch', 'epochs')}, {objective}@20 on validation: {told}; "
            f"{entries[winner].what} is taken" + ("" if winner else ", as no other is ahead by more than the noise")
        )
        return entries[winner], race, winner

    def _train_on(self, stages: Stages, entry: Entry, plain: Part, first: Part, epochs: int) -> list[Part]:
        """The winner of the race and what becomes of it, stretch by stretch, until it has long been getting worse.

        The mean over a stretch's epochs is far less noisy than one epoch's number, on which early stopping depends.
        """
        stretches = [first]
        size = max(1, epochs // STRETCHES)
        for number in range(epochs // size):
            settings = self._faster(size) | entry.settings
            stretches.append(stages.train(f"stretch-{number + 1}", "dpaa", settings, plain, stretches[-1]))
            best = max(range(len(stretches)), key=lambda place: stretches[place].valid)
            if len(stretches) - 1 - best >= WORSE:
                break
        return stretches

    def _shared(self) -> dict[str, Any]:
        return {name: getattr(self.settings, name) for name in TrainedSettings.model_fields}

    @property
    def _rate(self) -> float:
        """The learning rate of the race and of the long training."""
        own = self.settings.learning_rate
        return max(own, min(own * self.settings.speed_up, FASTEST))

    def _faster(self, epochs: int) -> dict[str, Any]:
        return self._shared() | {"learning_rate": self._rate, "epochs": epochs}

    def _fall(self, plain: GraphMethod, source: str) -> float:
        """By how much of itself `1 − cos` falls from rare to popular items, in this source's vectors."""
        table = (
            plain.ego if source == "layer" else _tiled(torch.cat([plain.user_embedding, plain.item_embedding]), plain)
        )
        weights = (1.0 - edge_cosines(self.graph, table)).double().cpu().numpy()
        decile = popularity_deciles(self.graph.item_degree.cpu().numpy())[self.graph.edge_item.cpu().numpy()]
        rare, popular = (weights[np.isin(decile, group)] for group in (RARE, POPULAR))
        if not len(rare) or not len(popular) or rare.mean() <= 0:
            return 0.0
        return float(1.0 - popular.mean() / rare.mean())

    def _take(self, part: Part, kappa: float, settings: dict[str, Any]) -> None:
        model = part.method
        self.ego = model.ego
        self.user_embedding, self.item_embedding = model.user_embedding, model.item_embedding
        self.item_message = model.item_message
        self._message_weights = part.weights
        self._kappa = kappa
        self._residual = float(settings.get("initial_residual", 0.0))
        self._user_power = 0.0 if settings.get("neighbour_scaling") == "none" else 0.5

    # ------------------------------------------------------------------ what it is afterwards

    @property
    def popularity_dial(self) -> float:
        """κ as chosen."""
        return self._kappa

    def initial_residual(self) -> float:
        """δ of the model that won."""
        return self._residual

    def new_user_scale(self, history_length: Tensor) -> Tensor:
        """As the model that won: `1/√d_u`, or 1 where its messages are not scaled."""
        return history_length.clamp(min=1).pow(-self._user_power)

    def message_weights(self) -> list[tuple[str, Tensor]]:
        """Those of the model that won."""
        return self._message_weights

    @property
    def chosen(self) -> Tensor:
        """κ, δ and the power of a new user's scale, for the run's file."""
        return torch.tensor([self._kappa, self._residual, self._user_power])

    @chosen.setter
    def chosen(self, found: Tensor) -> None:
        self._kappa, self._residual, self._user_power = found.double().tolist()


def _told(part: Part, start: Part | None, rate: float) -> dict[str, Any]:
    """A part for the manifest: what it cost and gave, and which part it went on from."""
    return {
        "part": part.label,
        "from": None if start is None else start.label,
        "epochs": part.epochs,
        "learning_rate": rate,
        "valid": part.valid,
    }


def _surely_best(verdicts: list[Verdict]) -> int:
    """The best, or the first where the best is not ahead of it by more than the noise of the paired difference."""
    best = max(range(len(verdicts)), key=lambda place: verdicts[place].value)
    ahead, noise = _mean_and_noise(verdicts[best].per_user - verdicts[0].per_user)
    return best if ahead > noise else 0


def _mean_and_noise(differences: NDArray[np.float64]) -> tuple[float, float]:
    """Mean of paired differences and its standard error; both 0 where there is nobody to ask."""
    if len(differences) < 2:
        return 0.0, 0.0
    return float(differences.mean()), float(differences.std(ddof=1) / math.sqrt(len(differences)))


def _entries(source: str | None) -> list[Entry]:
    """Who races: each with what it adds, none with IIW where its premise does not hold."""
    neutral = {"iiw": False, "layer_emphasis": 0.0, "initial_residual": 0.0}
    residual = neutral | {"initial_residual": 0.2}
    plain = Entry("none", "LightGCN trained on", neutral)
    if source is None:
        return [plain, Entry("residual", "an initial residual (δ .2)", residual)]
    weighted = {"iiw": True, "interaction_strength_from": source}
    dpaa = residual | weighted | {"layer_emphasis": 1.0}
    return [
        plain,
        Entry("iiw", f"inverse interaction weights from {source} vectors", neutral | weighted),
        Entry("dpaa", "DPAA's defaults (IIW, η 1, δ .2)", dpaa),
        Entry("printed", "DPAA as printed", dpaa | {"neighbour_scaling": "none", "layer_weight_norm": "sum"}),
    ]


def _premise_in_words(premise: dict[str, float], source: str, holds: bool) -> str:
    told = ", ".join(f"{name} vectors {fall:+.1%}" for name, fall in premise.items())
    if holds:
        return f"DPAA's premise: weights fall from rare to popular items by {told}; {source} vectors are taken"
    return f"DPAA's premise does not hold here: weights fall from rare to popular items by {told}; none are used"


def _tiled(dense: Tensor, model: GraphMethod) -> TiledTable:
    return TiledTable.from_dense(dense, model.compute.tile_columns)
