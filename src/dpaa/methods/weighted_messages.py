"""DPAA's weights: each message by how little its two ends already agree, and by its layer (Islam et al., 2026).

A pair whose vectors are far apart (cosine small) is one that popularity does not explain; its message is made louder.
The cosine comes from a pre-trained model as long as the current one still moves, then from the current one:

    r   = β_t (1 − cos m) + (1 − β_t) (1 − cos e),     β_t = Δ_t / (Δ_t + C)        inverse interaction weight, IIW
    w^l = λ_l r at the first (or at every) layer, λ_l otherwise,   λ_l = (l + 1)^η   message weight
    e^(l+1) = Σ c w^l e^l + δ e^0                                                     initial residual

Weights are constants of an epoch: no gradient flows through them.  They belong to messages, not to LightGCN: whatever
passes messages over the graph can derive from `WeightedMessages` and offer them by a setting.
"""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dpaa.data.popularity import popularity_deciles
from dpaa.graph.bipartite import EdgeWeights
from dpaa.graph.columns import Columns, unit_sums
from dpaa.graph.edges import edge_cosines
from dpaa.graph.propagation import TiledTable
from dpaa.methods.base import fitted
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import Pretrained, UsesPretrained

Scaling = Literal["symmetric", "none", "receiver", "sender", "root-receiver"]


class WeightedMessages(UsesPretrained, GraphMethod):
    """A backbone, no method of its own."""

    layer_emphasis: float = Field(
        default=1.0, ge=0, description="η: later layers count `(l + 1)^η`; 0 treats all layers alike"
    )
    initial_residual: float = Field(
        default=0.2, ge=0, description="δ: how much of layer 0 is added to every later layer"
    )
    half_trust_shift: float = Field(
        default=1e-3,
        ge=0,
        description=(
            "C: the shift of the embeddings per epoch at which both estimates count equally; 0 trusts the "
            "pre-trained one"
        ),
    )
    weighted_layers: Literal["first", "all"] = Field(
        default="first", description="γ: whether interactions are weighted at the first layer only or at every layer"
    )
    neighbour_scaling: Scaling = Field(
        default="symmetric",
        description=(
            "whether messages keep LightGCN's `1/√(d_u d_i)`; `none` is the equation as printed, others "
            "divide by the degree of who hears or who speaks, or by the root of the hearer's"
        ),
    )
    layer_weight_norm: Literal["mean", "sum", "none"] = Field(
        default="mean", description="how λ is normalised over the layers: mean 1, sum 1, or not"
    )
    interaction_strength_from: Literal["layer", "readout"] = Field(
        default="layer", description="which vectors enter the cosine: those of the layer (the paper) or the read-out"
    )
    iiw: bool = Field(default=True, description="whether interactions are weighted at all (ablation)")
    estimate: Literal["blend", "current", "pretrained"] = Field(
        default="blend",
        description="which estimate of the interaction weight counts: both by β_t, or one alone (ablations)",
    )

    _cut_state: ClassVar[frozenset[str]] = frozenset({"strength", "previous_readout"})

    @property
    def weighs_messages(self) -> bool:
        """Whether the weights are in force; where not, every answer is LightGCN's."""
        return True

    def edge_weights(self, layer: int) -> EdgeWeights:
        """`c · λ_l · r`, whole coefficients; they stay in force until the next refresh."""
        return self._weights[layer] if self.weighs_messages else super().edge_weights(layer)

    def residual_share(self) -> float:
        """δ."""
        return self.initial_residual if self.weighs_messages else super().residual_share()

    def new_user_scale(self, history_length: Tensor) -> Tensor:
        """LightGCN's with symmetric scaling; else what of the scaling belongs to who hears."""
        kind = self.neighbour_scaling if self.weighs_messages else "symmetric"
        if kind in ("none", "sender"):
            return torch.ones_like(history_length)
        return (
            history_length.clamp(min=1).reciprocal() if kind == "receiver" else super().new_user_scale(history_length)
        )

    # ------------------------------------------------------------------ the weights

    def pretrained_layers(self) -> int | None:
        """As far as interactions are weighted; None where no weight comes from a pre-trained model."""
        wanted = self.weighs_messages and self.iiw and self.estimate != "current"
        return len(self._weighted) - 1 if wanted and self.layers else None

    def take_pretrained(self, pretrained: Pretrained) -> None:
        """`r_m = 1 − cos m`, computed once; the vectors themselves are not kept."""
        self.pretrained_origin = pretrained.origin
        tables = (pretrained.readout if self._by_readout else pretrained.vectors(layer) for layer in self._weighted)
        self._pretrained_weights = [
            1.0 - edge_cosines(self.graph, self._tiled(table), columns=Columns(table.shape[1])) for table in tables
        ]

    _pretrained_weights: list[Tensor] = fitted()

    def begin(self) -> None:
        """Until the first refresh `r = r_m` (or 1 where no pre-trained model is used)."""
        self._strength: list[Tensor] = []
        self._previous_readout: Tensor | None = None
        self._pretrained_share = 1.0
        self._interaction_weights = [] if self.pretrained_layers() is None else self._pretrained_weights
        if self.weighs_messages:
            self._make_weights()

    def refresh(self, epoch: int) -> dict[str, Any]:
        """Δ_t and β_t from the read-outs that ended the last two epochs, then r_c, r and the message weights."""
        if not self.weighs_messages or not self.iiw or not self._weighted:
            return super().refresh(epoch)
        readout = torch.cat(self.tables.readout())
        shift = None
        if self._previous_readout is not None:
            squares = self.tables.columns.sum(unit_sums((readout - self._previous_readout).square_()))
            shift = squares.sqrt_().mean().item()
        self._previous_readout = readout
        self._pretrained_share = self._share(shift)
        tables = [self._tiled(readout)] if self._by_readout else list(islice(self.sent_layers(), len(self._weighted)))
        self._strength = [table.rows() for table in tables]
        self._blend(tables)
        self.tables.set_weights()
        return {
            "embedding_shift": shift,
            "pretrained_share": self._pretrained_share,
            "iiw_by_decile": self._by_decile(self._interaction_weights[0]),
        }

    def _share(self, shift: float | None) -> float:
        """β_t = Δ_t / (Δ_t + C); 1 before two epochs exist and where C = 0."""
        if self.estimate != "blend":
            return 0.0 if self.estimate == "current" else 1.0
        trust = self.half_trust_shift
        return 1.0 if shift is None or trust == 0 else shift / (shift + trust)

    def _blend(self, tables: list[TiledTable]) -> None:
        """`r = β r_m + (1 − β) r_c` per weighted layer, and the message weights from it."""
        share = self._pretrained_share
        current = [1.0 - self._cosines(table) for table in tables]
        if self._by_readout:
            current *= len(self._weighted)
        if self.pretrained_layers() is None:
            self._interaction_weights = current
        else:
            pairs = zip(self._pretrained_weights, current, strict=True)
            self._interaction_weights = [share * before + (1.0 - share) * now for before, now in pairs]
        self._make_weights()

    def _make_weights(self) -> None:
        """Message weights `c · λ_l · r` of every layer."""
        plain = self._neighbour_weights()
        self._weights: list[EdgeWeights] = []
        for layer, emphasis in enumerate(self.layer_weights()):
            if layer < len(self._interaction_weights):
                self._weights.append(_times(plain, emphasis * self._interaction_weights[layer]))
            else:
                self._weights.append(plain if emphasis == 1.0 else _times(plain, emphasis))

    def _neighbour_weights(self) -> EdgeWeights:
        """c, by the degrees of who hears and who speaks."""
        graph, kind = self.graph, self.neighbour_scaling
        if kind in ("symmetric", "none"):
            return EdgeWeights(graph.symmetric_weights().to_user if kind == "symmetric" else graph.edge_count)
        shares = [graph.user_degree.reciprocal()[graph.edge_user], graph.item_degree.reciprocal()[graph.edge_item]]
        if kind == "sender":
            shares.reverse()
        if kind == "root-receiver":
            shares = [share.sqrt() for share in shares]
        return EdgeWeights(*(share * graph.edge_count for share in shares))

    def layer_weights(self) -> list[float]:
        """λ_l = (l + 1)^η for l = 0..L−1, normalised."""
        raw = [float(layer + 1) ** self.layer_emphasis for layer in range(self.layers)]
        norms = {"mean": len(raw) / sum(raw) if raw else 1.0, "sum": 1.0 / sum(raw) if raw else 1.0, "none": 1.0}
        return [weight * norms[self.layer_weight_norm] for weight in raw]

    @property
    def _weighted(self) -> range:
        """The layers whose interactions are weighted."""
        return range(min(self.layers, 1 if self.weighted_layers == "first" else self.layers))

    @property
    def _by_readout(self) -> bool:
        return self.interaction_strength_from == "readout"

    @property
    def _strength_tables(self) -> int:
        """How many tables r_c is made from: one, or one per layer where each layer is weighted by its own vectors."""
        if not self.weighs_messages or not self.iiw or self.estimate == "pretrained":
            return 0
        return min(len(self._weighted), 1) if self._by_readout else len(self._weighted)

    def _cosines(self, table: TiledTable) -> Tensor:
        return edge_cosines(self.graph, table, columns=self.tables.columns)

    def _tiled(self, dense: Tensor) -> TiledTable:
        return TiledTable.from_dense(dense.to(self.graph.device), self.compute.tile_columns)

    def _by_decile(self, values: Tensor) -> list[float | None]:
        """Mean over the edges of each tenth of the items by training count, rare → popular."""
        decile = self._decile_of_edge
        edges = np.bincount(decile, minlength=10)
        sums = np.bincount(decile, values.double().cpu().numpy(), minlength=10)
        return [round(total / n, 6) if n else None for total, n in zip(sums.tolist(), edges.tolist(), strict=True)]

    @cached_property
    def _decile_of_edge(self) -> NDArray[np.int64]:
        by_item = popularity_deciles(self.graph.item_degree.cpu().numpy())
        return np.asarray(by_item[self.graph.edge_item.cpu().numpy()])

    # ------------------------------------------------------------------ what must survive

    def extra_state(self) -> dict[str, Tensor]:
        """What the weights in force were made from."""
        if not self.weighs_messages:
            return super().extra_state()
        found = {f"strength.{place}": table.clone() for place, table in enumerate(self._strength)}
        found["pretrained_share"] = torch.tensor(self._pretrained_share, dtype=torch.float64)
        if self._previous_readout is not None:
            found["previous_readout"] = self._previous_readout.clone()
        return found

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """The weights are made again from what they were made from: the same bits."""
        if not self.weighs_messages:
            return
        self._previous_readout = state.get("previous_readout")
        self._pretrained_share = float(state["pretrained_share"])
        self._strength = [state[f"strength.{place}"] for place in range(len(state)) if f"strength.{place}" in state]
        if self._strength:
            self._blend([self._tiled(table) for table in self._strength])
            self.tables.set_weights()

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """With LightGCN's, the vectors behind r_c, so that a run's weights can be recomputed from its files."""
        graph, found = self.graph, super().state_shapes()
        width = found["user_embedding" if self._by_readout else "user_ego"][1]
        for place in range(self._strength_tables):
            found[f"strength_user_{place}"] = (graph.n_users, width)
            found[f"strength_item_{place}"] = (graph.n_items, width)
        return found

    def finish(self) -> None:
        """As LightGCN; the vectors behind r_c get the names they are saved by."""
        super().finish()
        for place, table in enumerate(self._strength):
            setattr(self, f"strength_user_{place}", table[: self.graph.n_users])
            setattr(self, f"strength_item_{place}", table[self.graph.n_users :])


def _times(weights: EdgeWeights, factor: Tensor | float) -> EdgeWeights:
    return EdgeWeights(weights.to_user * factor, None if weights.to_item is None else weights.to_item * factor)
