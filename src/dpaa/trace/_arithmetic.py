"""Arithmetic on a graph, its message weights and the layers that come of them, all in float64.

Deciles are of the items by training count, rare → popular.

**The premise.**  DPAA expects the inverse interaction weight `1 − cos(e_u, e_i)` to be smaller for popular items.  The
rule compares its mean over the edges of the rarest fifth of the items with that of the most popular fifth.  A relative
change below 5% either way is *flat*; a fall means the premise *holds*, a rise that it is *reversed*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpaa.data.popularity import popular_items, popularity_deciles
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.edges import edge_cosines
from dpaa.graph.propagation import Propagation, TiledTable

Floats = NDArray[np.float64]
ByDecile = list[float | None]
"""Ten numbers, rare → popular; None for a decile without items."""
DECILES = 10
FLAT = 0.05
"""A smaller relative change of the inverse interaction weight says nothing."""
RULE = (
    "rule: mean of 1 − cos(e_u, e_i) over the edges of the rarest and of the most popular fifth of the items; "
    f"a change below {FLAT:.0%} is flat, a fall means the premise holds, a rise that it is reversed"
)
TILE = 64
POWER_STEPS, POWER_TOLERANCE = 2000, 1e-12
VERDICTS = {"holds": ("holds", "falls"), "flat": ("is flat", "goes"), "reversed": ("is reversed", "rises")}
"""The state of the premise, and how the weight moves from rare to popular items."""


@dataclass(frozen=True)
class Premise:
    """What the vectors of one layer say about the premise."""

    vectors: Literal["own", "pretrained"]
    """Whose vectors: the run's, or those of the model it was pre-trained with."""
    layer: int | None
    """None is the read-out."""
    cosine: ByDecile
    rarest_fifth: float
    """Mean inverse interaction weight over the edges of the rarest fifth of the items."""
    most_popular_fifth: float

    @property
    def iiw(self) -> ByDecile:
        """Inverse interaction weight by decile."""
        return [None if value is None else 1.0 - value for value in self.cosine]

    @property
    def change(self) -> float:
        """From the rarest to the most popular fifth, relative to the rarest; NaN where a fifth has no items."""
        rare, popular = self.rarest_fifth, self.most_popular_fifth
        if rare == 0:
            return 0.0 if popular == 0 else math.inf
        return (popular - rare) / rare

    @property
    def verdict(self) -> str:
        """`holds`, `flat`, `reversed` or `unknown`, by the rule."""
        if math.isnan(self.change):
            return "unknown"
        if abs(self.change) < FLAT:
            return "flat"
        return "holds" if self.change < 0 else "reversed"

    @property
    def place(self) -> str:
        """`layer 1`, `read-out`."""
        return "read-out" if self.layer is None else f"layer {self.layer}"

    @property
    def sentence(self) -> str:
        """The verdict as a sentence, with its numbers."""
        whose = "" if self.vectors == "own" else "of the pre-trained model "
        where = f"in the read-out {whose}" if self.layer is None else f"at layer {self.layer} {whose}"
        if self.verdict == "unknown":
            return f"{where}the premise cannot be judged: there are fewer than five items in training"
        state, moves = VERDICTS[self.verdict]
        return (
            f"{where}the premise {state} on this data: the inverse interaction weight {moves} from "
            f"{self.rarest_fifth:.2f} (rarest fifth of items) to {self.most_popular_fifth:.2f} (most popular fifth)"
        )

    def as_json(self) -> dict[str, Any]:
        """One object for machines."""
        derived = {name: getattr(self, name) for name in ("place", "verdict", "change", "sentence", "iiw")}
        return {name: value for name, value in (asdict(self) | derived).items() if name != "layer"}


@dataclass(frozen=True)
class LayerWeights:
    """The messages of one layer by decile of their item."""

    layer: int
    mean: ByDecile
    """Mean weight of the messages item → user."""
    mean_back: ByDecile | None
    """Of the messages user → item, where they differ."""
    relative: ByDecile
    """Mean weight relative to LightGCN's `1/√(d_u d_i)`."""
    mass_share: ByDecile | None = None
    """Share of the message mass `Σ w ‖e_i^(l)‖`, item → user; None where the layer's vectors are not known."""
    plain_mass_share: ByDecile | None = None
    """The same vectors sent with LightGCN's weights."""


@dataclass(frozen=True)
class Contributions:
    """Lemma 1 for two groups of items, p (popular) and q (rare).

    With `I = Σ d_i ‖e_i‖` and `I' = Σ d_i r̄_i ‖e_i‖` over a group's items, `r̄_i` the item's mean relative weight:
    `I_p/I_q − I'_p/I'_q = (1 − r̄_p/r̄_q) · I_p/I_q`, with `r̄ = I'/I` of the group.
    """

    groups: str
    ratio_without: float
    """`I_p/I_q`."""
    ratio_with: float
    """`I'_p/I'_q`."""
    reduction: float
    """Left side, from sums over edges."""
    reduction_by_items: float
    """Right side, from the means of the items."""
    difference: float
    """Between the two sides, relative to the ratio without weights."""


@dataclass(frozen=True)
class LayerShare:
    """Lemma 2: how much of read-out and gradient belongs to one layer, beside what λ alone would give."""

    layer: int
    readout: float
    """Share of `Σ_v ‖e_v^(ℓ)‖` over layers 0..L."""
    gradient: float
    """Share of the norm of the gradient in E that flows through layer ℓ, over layers 0..L."""
    readout_of_hops: float | None = None
    """The same among layers 1..L."""
    gradient_of_hops: float | None = None
    last_hop: float | None = None
    """`ℓ^η`, the last hop's factor, normalised over 1..L; None where the method has no layer emphasis, as below."""
    compounded: float | None = None
    """`(ℓ!)^η`, the factor of all hops, normalised over 1..L."""
    in_force: float | None = None
    """`λ_0 ⋯ λ_{ℓ−1}` as applied in this run, normalised over 1..L."""


@dataclass(frozen=True)
class EnergyShare:
    """How much of one layer's energy lies on the direction of popularity."""

    layer: int | None
    """None is the read-out."""
    users: float
    items: float


@dataclass(frozen=True)
class Direction:
    """The first singular vectors of the training matrix, and what lies on them."""

    cosine: float
    """Between the items' singular vector and their training counts: how much it is popularity."""
    chance_users: float
    chance_items: float
    """What a random table has: 1 / n."""
    shares: tuple[EnergyShare, ...]
    """Layers 0 … L, then the read-out."""


class Tracer:
    """One graph and the weights of its messages, edge by edge in float64.

    Parameters
    ----------
    graph : of the training pairs
    weights : of the messages of each layer
    residual : share of layer 0 that each layer gets
    """

    def __init__(self, graph: BipartiteGraph, weights: Sequence[EdgeWeights], residual: float = 0.0) -> None:
        self.graph = graph
        wide = [(layer.to_user.double(), layer.to_item) for layer in weights]
        self.weights = [EdgeWeights(there, None if back is None else back.double()) for there, back in wide]
        self.residual = residual
        self.degree = graph.item_degree.double().numpy()
        self.item = graph.edge_item.numpy()
        self.count = graph.edge_count.double().numpy()
        self.decile = popularity_deciles(self.degree)
        user_degree = graph.user_degree.double().numpy()[graph.edge_user.numpy()]
        self.plain = self.count / np.sqrt(user_degree * self.degree[self.item])

    def layers(self, ego: Tensor) -> Iterator[Tensor]:
        """Layers 0..L of a float64 table, (n_nodes, d) each."""
        propagation = self._propagation(self.weights, self.residual)
        return (layer.rows() for layer in propagation.layers(TiledTable.from_dense(ego, TILE)))

    def _propagation(self, weights: Sequence[EdgeWeights], residual: float) -> Propagation:
        propagation = Propagation(self.graph, len(weights), residual=residual)
        propagation.set_weights(weights)
        return propagation

    @cached_property
    def edge_decile(self) -> NDArray[np.int64]:
        """Decile of each edge's item: (n_edges,)."""
        return np.asarray(self.decile[self.item])

    def mean_by_decile(self, values: Floats) -> ByDecile:
        """Mean over the edges of each decile's items."""
        edges = np.bincount(self.edge_decile, minlength=DECILES)
        sums = np.bincount(self.edge_decile, values, minlength=DECILES)
        return [float(total / n) if n else None for total, n in zip(sums, edges, strict=True)]

    def premise(self, vectors: Tensor, whose: Literal["own", "pretrained"], layer: int | None) -> Premise:
        """Cosines along the edges, and their verdict."""
        cosine = edge_cosines(self.graph, TiledTable.from_dense(vectors, TILE)).numpy()
        fifth = self.edge_decile // 2
        rare, popular = (1.0 - (cosine[fifth == f].mean() if (fifth == f).any() else math.nan) for f in (0, 4))
        return Premise(whose, layer, self.mean_by_decile(cosine), float(rare), float(popular))

    def layer_weights(self, layer: int, items: Tensor | None) -> LayerWeights:
        """Weights of a layer's messages; with its item vectors, their mass too."""
        weights = self.weights[layer]
        to_user = weights.to_user.numpy()
        back = None if weights.to_item is None else self.mean_by_decile(weights.to_item.numpy())
        shares: list[ByDecile | None] = [None, None]
        if items is not None:
            length = _norms(items)[self.item]
            shares = [self._share(to_user * length), self._share(self.plain * length)]
        relative = self.mean_by_decile(to_user / self.plain)
        return LayerWeights(layer, self.mean_by_decile(to_user), back, relative, *shares)

    def _share(self, mass: Floats) -> ByDecile | None:
        total = float(mass.sum())
        sums = np.bincount(self.edge_decile, mass, minlength=DECILES)
        return [float(part / total) for part in sums] if total > 0 else None

    def contributions(self, items: Tensor) -> list[Contributions]:
        """Lemma 1 on layer 0 for popular against niche items, and for the most against the least popular decile."""
        if not self.weights:
            return []
        popular = popular_items(self.degree)
        pairs = {
            "popular / niche": (popular, (self.degree > 0) & ~popular),
            "decile 10 / decile 1": (self.decile == DECILES - 1, self.decile == 0),
        }
        length = _norms(items)
        relative = self.weights[0].to_user.numpy() / self.plain
        # Left side: sums over edges.  Right side: the items' degrees and mean relative weights.
        messages = self.count * length[self.item]
        total = np.bincount(self.item, self.count * relative, minlength=len(self.degree))
        mean = np.divide(total, self.degree, out=np.ones_like(total), where=self.degree > 0)
        contribution = self.degree * length

        def compare(name: str, p: NDArray[np.bool_], q: NDArray[np.bool_]) -> Contributions:
            plain_p, plain_q = (float(messages[group[self.item]].sum()) for group in (p, q))
            weighted_p, weighted_q = (float((messages * relative)[group[self.item]].sum()) for group in (p, q))
            without, weighted = plain_p / plain_q, weighted_p / weighted_q if weighted_q else math.inf
            mean_p, mean_q = (float(np.average(mean[group], weights=contribution[group])) for group in (p, q))
            ratio = float(contribution[p].sum() / contribution[q].sum())
            by_items = (1.0 - (mean_p / mean_q if mean_q else math.inf)) * ratio
            difference = abs(without - weighted - by_items) / abs(without)
            return Contributions(name, without, weighted, without - weighted, by_items, difference)

        return [compare(name, p, q) for name, (p, q) in pairs.items() if length[p].any() and length[q].any()]

    def gradient_norms(self, by_readout: Tensor) -> list[float]:
        """Norm of the part of the gradient in E that flows through each layer 0..L, from that in the read-out.

        `∂e^(ℓ)/∂E = A_{ℓ−1} ⋯ A_0 + δ (1 + A_{ℓ−1} + A_{ℓ−1} A_{ℓ−2} + …)`; the gradient goes back from each layer.
        """
        back = self._propagation([EdgeWeights(layer.back, layer.to_user) for layer in self.weights], 0.0)
        start = TiledTable.from_dense(by_readout / (len(self.weights) + 1), TILE)
        norms = []
        for layer in range(len(self.weights) + 1):
            carried, by_residual = start, torch.zeros_like(by_readout)
            for hop in reversed(range(layer)):
                by_residual += self.residual * carried.rows()
                carried = back.hop(hop, carried)
            norms.append(float((carried.rows() + by_residual).norm()))
        return norms


def layer_shares(
    readout: Sequence[float],
    gradient: Sequence[float],
    emphasis: float | None = None,
    layer_weights: Sequence[float] | None = None,
) -> list[LayerShare]:
    """Lemma 2's table.

    Parameters
    ----------
    readout, gradient : sizes of each layer 0..L
    emphasis, layer_weights : η and λ, where the method has them

    Returns
    -------
    a row per layer
    """
    hops = range(1, len(readout))
    expected: dict[str, list[float]] = {}
    if emphasis is not None and layer_weights is not None:
        expected["last_hop"] = _normalised([float(hop) ** emphasis for hop in hops])
        expected["compounded"] = _normalised([float(math.factorial(hop)) ** emphasis for hop in hops])
        expected["in_force"] = _normalised([math.prod(layer_weights[:hop]) for hop in hops])
    of_all = [_normalised(readout), _normalised(gradient)]
    of_hops = [_normalised(readout[1:]), _normalised(gradient[1:])]
    rows = [LayerShare(0, *(shares[0] for shares in of_all))]
    for index, hop in enumerate(hops):
        shares = [*(one[hop] for one in of_all), *(one[index] for one in of_hops)]
        rows.append(LayerShare(hop, *shares, **{name: values[index] for name, values in expected.items()}))
    return rows


def first_singular_vectors(graph: BipartiteGraph) -> tuple[Floats, Floats]:
    """The direction of popularity, by power iteration on RᵀR of the matrix R of training pairs.

    Summing over neighbours again and again, without dividing by degrees, draws every vector onto these; that of the
    items is close to their counts.

    Parameters
    ----------
    graph : of the training pairs

    Returns
    -------
    unit vectors of users and items, both without negative numbers
    """
    from scipy import sparse

    entries = (graph.edge_count.double().numpy(), (graph.edge_user.numpy(), graph.edge_item.numpy()))
    matrix = sparse.csr_matrix(entries, shape=(graph.n_users, graph.n_items))
    items = _unit(graph.item_degree.double().numpy())
    for _ in range(POWER_STEPS):
        previous, items = items, _unit(matrix.T @ (matrix @ items))
        if np.linalg.norm(items - previous) < POWER_TOLERANCE:
            break
    return _unit(matrix @ items), items


def popularity_direction(graph: BipartiteGraph, layers: Iterable[Tensor], readout: Tensor) -> Direction:
    """How much of the vectors lies on the first singular vectors.

    Parameters
    ----------
    graph : of the training pairs
    layers, readout : tables of layers 0 … L and of the read-out, (n_nodes, d) each

    Returns
    -------
    share of the energy, `‖vᵀ H‖² / ‖H‖²`, per table; a table whose items all lie on v ranks alike for everybody
    """
    users, items = first_singular_vectors(graph)
    n = graph.n_users
    shares = tuple(
        EnergyShare(layer, energy_share(users, table[:n]), energy_share(items, table[n:]))
        for layer, table in [*enumerate(layers), (None, readout)]
    )
    counts = graph.item_degree.double().numpy()
    norm = float(np.linalg.norm(counts))
    cosine = float(items @ counts / norm) if norm else 0.0
    return Direction(cosine, 1.0 / max(n, 1), 1.0 / max(graph.n_items, 1), shares)


def energy_share(direction: Floats, table: Tensor) -> float:
    """`‖dᵀ H‖² / ‖H‖²`; 0 for an empty table."""
    rows = table.double().numpy()
    total = float((rows * rows).sum())
    return float(((direction @ rows) ** 2).sum() / total) if total > 0 else 0.0


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-300))


def _normalised(values: Sequence[float]) -> list[float]:
    """Divided by their sum; zeros stay zeros."""
    total = math.fsum(values)
    return [value / total if total else 0.0 for value in values]


def _norms(rows: Tensor) -> Floats:
    return np.asarray(rows.double().norm(dim=1).numpy())
