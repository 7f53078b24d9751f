"""Message weights of a finished run, the layers that come of them, and DPAA's premise; all in float64.

Deciles are of the items by training count, rare → popular.

**The premise.**  DPAA expects the inverse interaction weight `1 − cos(e_u, e_i)` to be smaller for popular items.  The
rule compares its mean over the edges of the rarest fifth of the items with that of the most popular fifth.  A relative
change below 5% either way is *flat*; a fall means the premise *holds*, a rise that it is *reversed*.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from dpaa.data.ids import Floats, Mask
from dpaa.data.pairs import mean_by_decile, popular_items, popularity_deciles
from dpaa.errors import InputError
from dpaa.graph._layers import edge_cosines
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.propagation import Propagation
from dpaa.graph.tiles import TiledTable
from dpaa.methods.dpaa import DPAA
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import PRETRAINED
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model, load

ByDecile = list[float | None]
"""Ten numbers, rare → popular; None for a decile without items."""
DECILES = 10
FLAT = 0.05
"""A smaller relative change of the inverse interaction weight says nothing."""
RULE = (
    "rule: mean of 1 − cos(e_u, e_i) over the edges of the rarest and of the most popular fifth of the items; "
    f"a change below {FLAT:.0%} is flat, a fall means the premise holds, a rise that it is reversed"
)
VERDICTS = {"holds": "holds", "flat": "is flat", "reversed": "is reversed", "unknown": "cannot be judged"}
TILE = 64
SAME_READOUT = 1e-4
"""Relative difference up to which the saved read-out is the mean of the layers recomputed from tables and weights."""
FEW = 100
"""Edges below which a mean over them says little."""
OF_EPOCHS = ("epoch", "embedding_shift", "pretrained_share", "iiw_by_decile")


@dataclass(frozen=True)
class Premise:
    """Test of the premise on the vectors of one layer."""

    vectors: Literal["own", "pretrained"]
    """Whose vectors: the run's, or those of the model it was pre-trained with."""
    layer: int | None
    """None is the read-out."""
    iiw: ByDecile
    """Mean inverse interaction weight by decile."""
    rarest_fifth: float
    """The same over the edges of the rarest fifth of the items."""
    most_popular_fifth: float

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
    def where(self) -> str:
        """`layer 1`, `read-out`."""
        return "read-out" if self.layer is None else f"layer {self.layer}"

    @property
    def sentence(self) -> str:
        """The verdict with its numbers."""
        whose = "" if self.vectors == "own" else " of the pre-trained model"
        return (
            f"{self.where}{whose}: the premise {VERDICTS[self.verdict]}; the inverse interaction weight is "
            f"{self.rarest_fifth:.2f} for the rarest fifth of items and {self.most_popular_fifth:.2f} for the most "
            "popular fifth"
        )


@dataclass(frozen=True)
class LayerWeights:
    """The messages item → user of one layer by decile of their item."""

    layer: int
    mean: ByDecile
    relative: ByDecile
    """Mean weight relative to LightGCN's `1/√(d_u d_i)`."""
    mass_share: ByDecile | None = None
    """Share of the message mass `Σ w ‖e_i^(l)‖`; None where the layer's vectors are not known."""
    plain_mass_share: ByDecile | None = None
    """The same vectors sent with LightGCN's weights."""


@dataclass(frozen=True)
class Contributions:
    """Lemma 1 on layer 0 for two groups of items, p (popular) and q (rare): `I = Σ d_i ‖e_i‖` over a group's items.

    With weights each message counts by its relative weight (`I'`).
    """

    groups: str
    ratio_without: float
    """`I_p/I_q`."""
    ratio_with: float
    """`I'_p/I'_q`."""


@dataclass(frozen=True)
class Trace:
    """Message weights, contributions and premise of a run."""

    run: str
    method: str
    verdict: str
    """The premise for the vectors that the run's weights come from."""
    premises: list[Premise]
    """One per layer 0..L and for the read-out, first the run's own, then those of its pre-trained model."""
    items: list[int]
    """Items of each decile."""
    edges: list[int]
    weights: list[LayerWeights]
    """Layers 0..L−1."""
    contributions: list[Contributions]
    """Lemma 1."""
    epochs: list[dict[str, Any]]
    """Of each epoch `embedding_shift`, `pretrained_share` and `iiw_by_decile`, as far as the history has them."""
    notes: list[str]

    def as_json(self) -> dict[str, Any]:
        """One object for machines; deciles run from rare to popular.

        Returns
        -------
        all fields, the rule, and the verdict of each premise
        """
        verdicts = [asdict(p) | {"change": p.change, "verdict": p.verdict} for p in self.premises]
        return asdict(self) | {"rule": RULE, "premises": verdicts}


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
        # In float64: shares and cosines are compared with limits of a few percent, over millions of edges.
        wide = [(layer.to_user.double(), layer.to_item) for layer in weights]
        self.weights = [EdgeWeights(there, None if back is None else back.double()) for there, back in wide]
        self.residual = residual
        self.degree = graph.item_degree.double().numpy()
        self.item = graph.edge_item.numpy()
        self.count = graph.edge_count.double().numpy()
        self.decile = popularity_deciles(self.degree)
        self.edge_decile = self.decile[self.item]
        user_degree = graph.user_degree.double().numpy()[graph.edge_user.numpy()]
        self.plain = self.count / np.sqrt(user_degree * self.degree[self.item])

    def layers(self, ego: Tensor) -> list[Tensor]:
        """Layers 0..L of a float64 table, (n_nodes, d) each."""
        propagation = Propagation(self.graph, len(self.weights), residual=self.residual)
        propagation.set_weights(self.weights)
        return [layer.rows() for layer in propagation.layers(TiledTable.from_dense(ego, TILE))]

    def premise(self, vectors: Tensor, whose: Literal["own", "pretrained"], layer: int | None) -> Premise:
        """Inverse interaction weights along the edges, from (n_nodes, d) vectors."""
        iiw = 1.0 - edge_cosines(self.graph, TiledTable.from_dense(vectors, TILE)).numpy()
        # Two deciles are a fifth.  Edges, not items: the premise is about messages, and popular items send
        # most.
        fifth = self.edge_decile // 2
        rare, popular = (float(iiw[fifth == f].mean()) if (fifth == f).any() else math.nan for f in (0, 4))
        return Premise(whose, layer, mean_by_decile(iiw, self.edge_decile), rare, popular)

    def layer_weights(self, layer: int, items: Tensor | None) -> LayerWeights:
        """Weights of a layer's messages; with its item vectors, their mass too."""
        to_user = self.weights[layer].to_user.numpy()
        shares: list[ByDecile | None] = [None, None]
        if items is not None:
            length = _norms(items)[self.item]
            shares = [self._share(to_user * length), self._share(self.plain * length)]
        means = (mean_by_decile(values, self.edge_decile) for values in (to_user, to_user / self.plain))
        return LayerWeights(layer, *means, *shares)

    def _share(self, mass: Floats) -> ByDecile | None:
        sums, total = np.bincount(self.edge_decile, mass, minlength=DECILES), float(mass.sum())
        return [float(part / total) for part in sums] if total > 0 else None

    def contributions(self, items: Tensor) -> list[Contributions]:
        """Lemma 1 for popular against niche items, and for the most against the least popular decile."""
        popular = popular_items(self.degree)
        pairs = {
            "popular / niche": (popular, (self.degree > 0) & ~popular),
            "decile 10 / decile 1": (self.decile == DECILES - 1, self.decile == 0),
        }
        plain = self.count * _norms(items)[self.item]
        weighted = plain * self.weights[0].to_user.numpy() / self.plain

        def ratio(messages: Floats, p: Mask, q: Mask) -> float:
            top, bottom = (float(messages[group[self.item]].sum()) for group in (p, q))
            return top / bottom if bottom else math.inf

        return [Contributions(name, ratio(plain, p, q), ratio(weighted, p, q)) for name, (p, q) in pairs.items()]


def trace_run(folder: str | Path) -> Trace:
    """Trace a finished run of a method that weights messages.

    Parameters
    ----------
    folder : the run

    Returns
    -------
    weights, message mass and inverse interaction weights by layer and popularity
    """
    run = RunFolder(folder)
    model = load(run.path)
    method = model.method
    if not isinstance(method, GraphMethod) or not method.layers:
        raise InputError(
            f"{folder} is a run of {method.name} that weights no messages (its edges.parquet has no column weight_0); "
            "trace a run of a method that propagates, such as lightgcn or dpaa"
        )
    weighted = method if isinstance(method, DPAA) else None
    residual = weighted.initial_residual if weighted else 0.0
    tracer = Tracer(method.graph, run.read_weights(model, method.layers), residual)
    ego, readout, notes = method.tables.ego.rows().double(), _readout(method), []
    layers = tracer.layers(ego)
    mean = torch.stack(layers).mean(dim=0)
    if mean.shape != readout.shape or not (mean - readout).norm() <= SAME_READOUT * readout.norm().clamp(min=1e-30):
        notes.append(
            f"{method.name} does more to its layers than weighting messages: layers after 0 cannot be recomputed from "
            "its files and are left out"
        )
        layers = layers[:1]
    premises = [tracer.premise(vectors, "own", layer) for layer, vectors in enumerate(layers)]
    premises.append(tracer.premise(readout, "own", None))
    try:
        premises += _pretrained_premises(model, tracer)
    except InputError as error:
        notes.append(f"the pre-trained model is not traced: {error}")
    n_users = method.graph.n_users
    edges = np.bincount(tracer.edge_decile, minlength=DECILES).tolist()
    sent = [layers[layer][n_users:] if layer < len(layers) else None for layer in range(method.layers)]
    lines = [{key: line[key] for key in OF_EPOCHS if key in line} for line in run.history()]
    return Trace(
        run=str(run.path),
        method=method.name,
        verdict=_verdict(method.name, weighted, premises, sum(edges[:2])),
        premises=premises,
        items=np.bincount(tracer.decile[tracer.decile >= 0], minlength=DECILES).tolist(),
        edges=edges,
        weights=[tracer.layer_weights(layer, items) for layer, items in enumerate(sent)],
        contributions=tracer.contributions(ego[n_users:]),
        epochs=[line for line in lines if len(line) > 1],
        notes=notes,
    )


def _verdict(name: str, weighted: DPAA | None, premises: list[Premise], rare_edges: int) -> str:
    """The premise for the vectors that the applied weights are made from."""
    source = weighted.interaction_strength_from if weighted else None
    layer, where = (None, "the read-out") if source == "readout" else (0, "layer 0")
    whose = {"own": "the run's own", "pretrained": "the pre-trained model's"}
    chosen = [premise for premise in premises if premise.layer == layer]
    verdicts = " and ".join(f"{VERDICTS[premise.verdict]} in {whose[premise.vectors]} vectors" for premise in chosen)
    weak = f"; only {rare_edges:,} edges lead to the rarest fifth of the items: too few to rely on"
    begins = f"{name} weights" if source else "DPAA would weight"
    return f"{begins} messages by {where}: there the premise {verdicts}{weak if rare_edges < FEW else ''}"


def _pretrained_premises(model: Model, tracer: Tracer) -> list[Premise]:
    """The premise in the vectors of the run that this one was pre-trained with."""
    if model.pretrained_run is None:
        return []
    before = load(model.pretrained_run)
    same = before.user_ids.equals(model.user_ids) and before.item_ids.equals(model.item_ids)
    if not isinstance(before.method, GraphMethod) or not same:
        raise InputError(f"{model.pretrained_run} has other users or items")
    layers: list[Tensor] = []
    if before.method.name == PRETRAINED and np.array_equal(before.train.item, model.train.item):
        # Plain LightGCN has no weights of its own: as many layers as this run has.
        plain = [EdgeWeights(torch.from_numpy(tracer.plain))] * len(tracer.weights)
        layers = Tracer(tracer.graph, plain).layers(before.method.tables.ego.rows().double())
    premises = [tracer.premise(vectors, "pretrained", layer) for layer, vectors in enumerate(layers)]
    return [*premises, tracer.premise(_readout(before.method), "pretrained", None)]


def _readout(method: GraphMethod) -> Tensor:
    return torch.cat([method.user_embedding, method.item_embedding]).double()


def _norms(rows: Tensor) -> Floats:
    return np.asarray(rows.double().norm(dim=1).numpy())
