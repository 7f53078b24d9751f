"""Readings of DPAA's paper that `dpaa` has no setting for: an experiment, for `dpaa reproduce readings`.

Where the residual joins (inside or outside of the layer's weight), how widely the first table is drawn, and whether
early stopping counts validation pairs that are training pairs too:

    after:    e^(l+1) = λ_l Σ c r e^l + δ e^0            before:    e^(l+1) = λ_l (Σ c r e^l + δ e^0)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.graph.propagation import TiledTable
from dpaa.methods.backbone import INITIAL_DEVIATION
from dpaa.methods.rows import Batch
from dpaa.methods.settings import Settings
from dpaa.methods.weighted_messages import WeightedMessages, WeightedMessagesSettings


class DpaaReadingSettings(WeightedMessagesSettings):
    """DPAA's settings and what else its paper leaves open."""

    residual_place: Literal["after", "before"] = "after"
    """Whether δ e^0 is added after the layer is weighted, or before and so weighted too."""
    initial_deviation: float = Field(default=INITIAL_DEVIATION, gt=0)
    """Standard deviation of the first table."""
    stop_by: Literal["drop", "keep"] = "drop"
    """Whether early stopping leaves out validation pairs that are training pairs too, or ranks and counts them."""


class DpaaReading(WeightedMessages):
    """DPAA read otherwise.  Changes: what `WeightedMessages` does, and `validation_overlap`, `begin`,
    `initial_residual`, `readout`, `sent_layers`.
    """

    name: ClassVar[str] = "dpaa-reading"
    title: ClassVar[str] = "an experiment: DPAA with more of what its paper leaves open as settings"
    paper: ClassVar[str] = "Islam et al., Debiasing Popularity Amplification in Aggregation, 2026"
    settings_type: ClassVar[type[Settings]] = DpaaReadingSettings
    shares_users: ClassVar[bool] = True
    grid: ClassVar[dict[str, tuple[object, ...]]] = {
        "half_trust_shift": (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
        "layer_emphasis": (0.0, 1.0, 2.0, 3.0),
        "initial_residual": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    }

    settings: DpaaReadingSettings

    @property
    def uses_whole_table(self) -> bool:  # type: ignore[override]  # of the reading, not of the class
        """The hand-written way has one residual for all layers."""
        return self.settings.residual_place == "before"

    @property
    def validation_overlap(self) -> Literal["drop", "mask", "keep"]:
        """As set."""
        return self.settings.stop_by

    def begin(self) -> None:
        """As DPAA, from a table of another deviation."""
        for tile in self.ego.tiles:
            tile.mul_(self.settings.initial_deviation / INITIAL_DEVIATION)
        super().begin()

    def initial_residual(self) -> float:
        """δ, unless it is weighted: then it is `readout` that adds it."""
        return 0.0 if self.uses_whole_table else super().initial_residual()

    def readout(self, table: Tensor, nodes: Tensor | None, batch: Batch | None) -> Tensor:
        """The mean of layers whose residual is weighted too."""
        del batch
        mean = torch.stack(list(self._layers(table))).mean(dim=0)
        return mean if nodes is None else mean.index_select(0, nodes)

    def sent_layers(self) -> Iterator[TiledTable]:
        """The layers, whatever way they come about."""
        return (
            (self._tiled(layer) for layer in self._layers(self.ego.rows()))
            if self.uses_whole_table
            else super().sent_layers()
        )

    def _layers(self, table: Tensor) -> Iterator[Tensor]:
        layer = table
        yield layer
        for number, emphasis in enumerate(self.layer_weights()):
            layer = (
                self.propagation.differentiable_hop(number, layer) + self.settings.initial_residual * emphasis * table
            )
            yield layer
