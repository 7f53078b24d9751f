"""DPAA: messages weighted by the dissimilarity of their end nodes, and by layer (Islam et al., 2026)."""

from itertools import islice
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.data.pairs import mean_by_decile, popularity_deciles
from dpaa.graph._layers import edge_cosines
from dpaa.graph.bipartite import EdgeWeights
from dpaa.graph.tiles import Columns, TiledTable, unit_sums
from dpaa.methods.graph_method import GraphMethod, fitted, method
from dpaa.methods.pretrained import Pretrained, UsesPretrained


@method(
    "dpaa",
    title="messages weighted by inverse interaction strength and by layer",
    paper="Islam et al., Debiasing Message Passing to Mitigate Popularity Bias in GNN-based CF, arXiv 2605.11145",
    grid={
        "half_trust_shift": (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
        "layer_emphasis": (0.0, 1.0, 2.0, 3.0),
        "initial_residual": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    },
    wide={"first_layer_only": (0.0, 1.0), "interaction_strength_from": ("layer", "readout")},
    version=2,
)
class DPAA(UsesPretrained, GraphMethod):
    """LightGCN with weighted messages.

    A pair whose vectors are far apart (small cosine) is one that popularity does not explain; its message is amplified.
    The cosine comes from a pre-trained model m as long as the current one e still moves, then from the current one:

    r   = β_t (1 − cos m) + (1 − β_t) (1 − cos e),     β_t = Δ_t / (Δ_t + C)        inverse interaction weight, IIW
    w^0 = λ_0 r,   w^l = λ_l ((1 − γ) r + γ) for l > 0,   λ_l = (l + 1)^η             message weight
    e^(l+1) = Σ c w^l e^l + δ e^0                                                     initial residual

    Δ_t is the mean distance between the read-outs at the ends of the last two trained epochs; β_t = 1 before there are
    two.  A warm-up of the learning rate makes the first steps, and so Δ_t, small: DPAA trains without one.

    Weights are constants of an epoch: no gradient flows through them.
    """

    layer_emphasis: float = Field(default=1.0, ge=0, description="η: layer weights are `(l + 1)^η`; 0: all equal")
    initial_residual: float = Field(default=0.2, ge=0, description="δ: share of layer 0 added to every later layer")
    half_trust_shift: float = Field(default=1e-3, ge=0, description="C: shift at which both estimates count equally")
    first_layer_only: float = Field(
        default=1.0, ge=0, le=1, description="γ: 1 weights interactions at the first layer only, 0 at every layer alike"
    )
    neighbour_scaling: Literal["symmetric", "none"] = Field(
        default="symmetric", description="whether messages keep LightGCN's `1/√(d_u d_i)`; `none`: as printed"
    )
    layer_weight_norm: Literal["mean", "sum", "none"] = Field(
        default="mean", description="how λ is normalised over the layers: mean 1, sum 1, or not"
    )
    interaction_strength_from: Literal["layer", "readout"] = Field(
        default="layer", description="which vectors enter the cosine: those of the layer (the paper) or the read-out"
    )
    iiw: bool = Field(default=True, description="whether interactions are weighted at all (ablation)")
    estimate: Literal["blend", "current", "pretrained"] = Field(
        default="blend", description="which estimate of r counts: both by β_t, or one alone (ablations)"
    )

    _cut_state: ClassVar[frozenset[str]] = frozenset({"strength", "previous_ego"})
    _pretrained_weights: list[Tensor] = fitted()
    """1 − cos m of each weighted layer, (n_edges,)."""

    def edge_weights(self, layer: int) -> EdgeWeights:
        """`c · λ_l · r`, constant until the next refresh."""
        return self._weights[layer]

    def residual_share(self) -> float:
        """δ, the share of layer 0 added to every later layer."""
        return self.initial_residual

    def new_user_scale(self, history_length: Tensor) -> Tensor:
        """LightGCN's with symmetric scaling, else 1."""
        symmetric = self.neighbour_scaling == "symmetric"
        return super().new_user_scale(history_length) if symmetric else torch.ones_like(history_length)

    def pretrained_layers(self) -> int | None:
        """The layers whose interactions are weighted; None where no weight comes from a pre-trained model."""
        return self._n_weighted - 1 if self._n_weighted and self.estimate != "current" else None

    def take_pretrained(self, pretrained: Pretrained) -> list[str]:
        """`1 − cos m`, computed once; the vectors themselves are not kept."""
        self.pretrained_origin = pretrained.origin
        vectors = [pretrained.readout if self._by_readout else pretrained.vectors(n) for n in range(self._n_weighted)]
        self._pretrained_weights = [
            1.0 - edge_cosines(self.graph, self._tiled(table), Columns(table.shape[1])) for table in vectors
        ]
        notes = []
        if not pretrained.layers and not self._by_readout:
            notes.append("of the pre-trained model only the read-out is known here; it stands for each of its layers")
        if self.warmup_steps > 1 and self.estimate == "blend" and self.half_trust_shift:
            notes.append("warm-up keeps the first shifts, and with them β, small; train with warmup_steps=0")
        return notes

    def begin(self) -> None:
        """Until the first refresh r comes from the pre-trained model, or is 1 where none is used."""
        self._strength: list[Tensor] = []
        """Tables that the current estimate is computed from."""
        self._previous_ego: Tensor | None = None
        """Layer 0 at the end of the epoch before, if that was trained."""
        self._pretrained_share = 1.0
        self._set_weights([] if self.pretrained_layers() is None else self._pretrained_weights)

    def refresh(self, epoch: int) -> dict[str, Any]:
        """Δ_t and β_t from the last two epochs, then r and the message weights."""
        if not self._n_weighted:
            return super().refresh(epoch)
        ego, shift = self.tables.ego.rows(), None
        if self._previous_ego is not None:
            # The read-out is linear in layer 0: that of the difference is the difference of both under today's weights.
            moved = torch.cat(self.tables.propagation.dense_readout(self._tiled(ego - self._previous_ego)))
            shift = self.tables.columns.sum(unit_sums(moved.square_())).sqrt_().mean().item()  # Δ_t
        self._previous_ego = ego if self._strength else None  # at the first call nothing has been trained
        self._pretrained_share = 0.0 if self.estimate == "current" else 1.0
        if self.estimate == "blend" and shift is not None and self.half_trust_shift:
            self._pretrained_share = shift / (shift + self.half_trust_shift)  # β_t
        if self._by_readout:
            tables = [self._tiled(torch.cat(self.tables.readout()))]
        else:
            tables = list(islice(self.sent_layers(), self._n_weighted))
        # Copies: the tables go on changing, and a checkpoint must rebuild the weights of this epoch from them.
        self._strength = [table.rows() for table in tables]
        weights = self._blend(tables)
        return {
            "embedding_shift": shift,
            "pretrained_share": self._pretrained_share,
            "iiw_by_decile": self._by_decile(weights[0]),
        }

    def _blend(self, tables: list[TiledTable]) -> list[Tensor]:
        """Apply `r = β (1 − cos m) + (1 − β) (1 − cos e)` of each weighted layer, and return it."""
        weights = [1.0 - edge_cosines(self.graph, table, self.tables.columns) for table in tables]
        if self._by_readout:
            weights *= self._n_weighted
        if self.pretrained_layers() is not None:
            share, pairs = self._pretrained_share, zip(self._pretrained_weights, weights, strict=True)
            weights = [share * before + (1.0 - share) * now for before, now in pairs]
        self._set_weights(weights)
        self.tables.set_weights()
        return weights

    def _set_weights(self, interaction_weights: list[Tensor]) -> None:
        symmetric = self.neighbour_scaling == "symmetric"
        plain = self.graph.symmetric_weights().to_user if symmetric else self.graph.edge_count
        self._weights = [EdgeWeights(plain if weight == 1.0 else plain * weight) for weight in self.layer_weights()]
        for layer, weight in enumerate(interaction_weights):
            left_out = self.first_layer_only if layer else 0.0  # γ
            blended = (1.0 - left_out) * weight + left_out
            self._weights[layer] = EdgeWeights(plain * (self.layer_weights()[layer] * blended))

    def layer_weights(self) -> list[float]:
        """Compute the weights of the layers, `λ_l = (l + 1)^η`, normalised.

        Returns
        -------
        λ_0 … λ_(L−1)
        """
        raw = [float(layer + 1) ** self.layer_emphasis for layer in range(self.layers)]
        norm = {"mean": len(raw), "sum": 1.0, "none": sum(raw)}[self.layer_weight_norm]
        return [weight * (norm / sum(raw)) for weight in raw]

    @property
    def _n_weighted(self) -> int:
        """Number of layers whose interactions are weighted, from layer 0."""
        return min(self.layers, 1 if self.first_layer_only == 1 else self.layers) if self.iiw else 0

    @property
    def _by_readout(self) -> bool:
        return self.interaction_strength_from == "readout"

    def _by_decile(self, values: Tensor) -> list[float | None]:
        """Mean over the edges of each decile of the items by training count, rare → popular."""
        decile = popularity_deciles(self.graph.item_degree.cpu().numpy())[self.graph.edge_item.cpu().numpy()]
        means = mean_by_decile(values.double().cpu().numpy(), decile)
        return [None if mean is None else round(mean, 6) for mean in means]

    def extra_state(self) -> dict[str, Tensor]:
        """The tables and the share that the current weights were computed from."""
        state = {f"strength.{number}": table.clone() for number, table in enumerate(self._strength)}
        state["pretrained_share"] = torch.tensor(self._pretrained_share, dtype=torch.float64)
        if self._previous_ego is not None:
            state["previous_ego"] = self._previous_ego.clone()
        return state

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """Recompute the weights from what they were computed from: the same bits."""
        self._previous_ego = state.get("previous_ego")
        self._pretrained_share = float(state["pretrained_share"])
        self._strength = [state[f"strength.{number}"] for number in range(len(state)) if f"strength.{number}" in state]
        if self._strength:
            self._blend([self._tiled(table) for table in self._strength])

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """With LightGCN's, the vectors behind the current estimate, so that weights can be recomputed from a run."""
        shapes, tables = super().state_shapes(), 0 if self.estimate == "pretrained" else self._n_weighted
        for number in range(min(tables, 1) if self._by_readout else tables):
            shapes[f"strength_user_{number}"] = shapes["user_ego"]
            shapes[f"strength_item_{number}"] = shapes["item_ego"]
        return shapes

    def finish(self) -> None:
        """As LightGCN; the vectors behind the current estimate get the names they are saved by."""
        super().finish()
        for number, table in enumerate(self._strength):
            users, items = table[: self.graph.n_users], table[self.graph.n_users :]
            setattr(self, f"strength_user_{number}", users)
            setattr(self, f"strength_item_{number}", items)


@method(
    "dpaa-as-printed",
    title="DPAA exactly as its equations are printed: no neighbour scaling, λ not normalised",
    paper=DPAA.paper,
    version=2,
)
class DPAAAsPrinted(DPAA):
    """DPAA exactly as its equations are printed: no neighbour scaling, λ not normalised.

    Vectors grow with the degree at every layer, so that a training may diverge.
    """

    neighbour_scaling: Literal["symmetric", "none"] = "none"
    layer_weight_norm: Literal["mean", "sum", "none"] = "none"


@method(
    "dpaa-normalised",
    title="DPAA without neighbour scaling, λ normalised to sum 1",
    paper=DPAA.paper,
    version=2,
)
class DPAANormalised(DPAA):
    """DPAA with the defaults that come nearest to the paper's tables: no neighbour scaling, λ summing to 1."""

    neighbour_scaling: Literal["symmetric", "none"] = "none"
    layer_weight_norm: Literal["mean", "sum", "none"] = "sum"
