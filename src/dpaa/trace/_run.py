"""The trace of a finished run, from its files."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpaa.errors import InputError
from dpaa.graph.bipartite import EdgeWeights
from dpaa.methods.dpaa import DPAA
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import PRETRAINED
from dpaa.methods.tables import bpr
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model, load
from dpaa.trace._arithmetic import (
    DECILES,
    RULE,
    Contributions,
    Direction,
    LayerShare,
    LayerWeights,
    Premise,
    Tracer,
    layer_shares,
    popularity_direction,
)

BATCH_EPOCH = 0
"""The batch behind Lemma 2's gradient is the first of an epoch that no training sees: they count from 1."""
SAME_READOUT = 1e-4
"""Relative difference up to which the saved read-out is the mean of the layers recomputed from tables and weights."""
FEW = 100
"""Edges below which a mean over them says little."""
OF_EPOCHS = ("epoch", "embedding_shift", "pretrained_share", "iiw_by_decile")


@dataclass(frozen=True)
class Trace:
    """Where popularity enters a run."""

    run: str
    method: str
    headline: str
    """The premise for the vectors that the run's weights come from, and how many edges it rests on."""
    premises: list[Premise]
    """One per layer 0..L and for the read-out, first the run's own, then those of its pre-trained model."""
    items: list[int]
    """Items of each decile."""
    edges: list[int]
    weights: list[LayerWeights]
    """Layers 0..L−1."""
    contributions: list[Contributions]
    """Lemma 1."""
    shares: list[LayerShare]
    """Lemma 2."""
    direction: Direction
    """How much of layers and read-out lies on the training matrix's first singular vector."""
    emphasis: float | None = None
    """η, where the method has it."""
    epochs: list[dict[str, Any]] = field(default_factory=list)
    """Of each epoch `embedding_shift`, `pretrained_share` and `iiw_by_decile`, as far as the history has them."""
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """One object for machines; deciles run from rare to popular."""
        return {
            "run": self.run,
            "method": self.method,
            "verdict": self.headline,
            "rule": RULE,
            "verdicts": [premise.as_json() for premise in self.premises],
            "deciles": {"items": self.items, "edges": self.edges},
            "weights": [asdict(layer) for layer in self.weights],
            "popularity_direction": asdict(self.direction),
            "lemma_1": [asdict(pair) for pair in self.contributions],
            "lemma_2": {"layer_emphasis": self.emphasis, "layers": [asdict(share) for share in self.shares]},
            "epochs": self.epochs,
            "notes": self.notes,
        }


def trace_run(folder: str | Path) -> Trace:
    """Trace a finished run of a method that weights messages.

    Parameters
    ----------
    folder : the run

    Returns
    -------
    weights, message mass, cosines and gradient by layer and popularity
    """
    run = RunFolder(folder)
    model = load(run.path)
    method = model.method
    if not isinstance(method, GraphMethod) or not method.layers:
        reason = "has layers=0" if isinstance(method, GraphMethod) else f"is one of {method.name}"
        raise InputError(
            f"{folder} {reason} and weights no messages (its edges.parquet has no column weight_0); "
            "trace a run of a method that propagates, such as lightgcn or dpaa"
        )
    weighted = method if isinstance(method, DPAA) else None
    tracer = Tracer(
        method.graph, run.read_weights(model, method.layers), weighted.initial_residual if weighted else 0.0
    )
    ego, readout = method.tables.ego.rows().double(), _readout(method)
    layers, notes = list(tracer.layers(ego)), []
    mean = torch.stack(layers).mean(dim=0)
    same = mean.shape == readout.shape
    if not same or not (mean - readout).norm() <= SAME_READOUT * readout.norm().clamp(min=1e-30):
        notes.append(
            f"{method.name} does more to its layers than weighting messages: layers after 0 cannot be had from its "
            "files and are left out, and layer 0 is taken as what is sent"
        )
        layers = layers[:1]
    n_users = method.graph.n_users
    premises = [tracer.premise(vectors, "own", layer) for layer, vectors in enumerate(layers)]
    premises += [tracer.premise(readout, "own", None), *_pretrained_premises(model, method, tracer, notes)]
    edges = np.bincount(tracer.edge_decile, minlength=DECILES).tolist()
    sent = [layers[layer][n_users:] if layer < len(layers) else None for layer in range(method.layers)]
    shares = []
    if len(layers) > method.layers:
        sizes = [float(layer.norm(dim=1).sum()) for layer in layers]
        gradient = tracer.gradient_norms(_readout_gradient(method, readout))
        known = (weighted.layer_emphasis, weighted.layer_weights()) if weighted else ()
        shares = layer_shares(sizes, gradient, *known)
    lines = [{key: line[key] for key in OF_EPOCHS if key in line} for line in run.history()]
    return Trace(
        run=str(run.path),
        method=method.name,
        headline=_headline(method.name, weighted, premises, sum(edges[:2])),
        premises=premises,
        items=np.bincount(tracer.decile[tracer.decile >= 0], minlength=DECILES).tolist(),
        edges=edges,
        weights=[tracer.layer_weights(layer, items) for layer, items in enumerate(sent)],
        contributions=tracer.contributions(ego[n_users:]),
        shares=shares,
        direction=popularity_direction(method.graph, layers, readout),
        emphasis=weighted.layer_emphasis if weighted else None,
        epochs=[line for line in lines if len(line) > 1],
        notes=notes,
    )


def _readout(method: GraphMethod) -> Tensor:
    return torch.cat([method.user_embedding, method.item_embedding]).double()


def _headline(name: str, weighted: DPAA | None, premises: list[Premise], rare_edges: int) -> str:
    """The premise for the vectors that the applied weights are made from."""
    source = weighted.interaction_strength_from if weighted else None
    layer, where = (None, "the read-out") if source == "readout" else (0, "layer 0")
    states = {"holds": "holds", "flat": "is flat", "reversed": "is reversed", "unknown": "cannot be told"}
    whose = {"own": "the run's own", "pretrained": "the pre-trained model's"}
    chosen = [premise for premise in premises if premise.layer == layer]
    verdicts = " and ".join(f"{states[one.verdict]} in {whose[one.vectors]} vectors" for one in chosen)
    weak = f"; only {rare_edges:,} edges lead to the rarest fifth of the items: too few to rely on"
    begins = f"{name} weights" if source else "DPAA would weight"
    return f"{begins} messages by {where}: there the premise {verdicts}{weak if rare_edges < FEW else ''}"


def _readout_gradient(method: GraphMethod, readout: Tensor) -> Tensor:
    """Gradient in the read-out of BPR on one batch of triples, a function of the run's seed: (n_nodes, d)."""
    batch = next(GraphMethod.batches(method, BATCH_EPOCH))
    nodes = batch.nodes(method.graph.n_users)
    rows = readout[nodes].requires_grad_()
    bpr(*batch.split(rows)).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    assert rows.grad is not None
    return torch.zeros_like(readout).index_add_(0, nodes, rows.grad)


def _pretrained_premises(model: Model, method: GraphMethod, tracer: Tracer, notes: list[str]) -> list[Premise]:
    """The premise in the vectors of the model trained before; a note where they cannot be had."""
    origin = model.manifest.get("pretrained")
    if not isinstance(origin, dict):
        return []
    path = origin.get("run")
    if not isinstance(path, str):
        notes.append("the pre-trained vectors came from embeddings and not from a run; they are not traced")
        return []
    try:
        before = load(path)
    except InputError as error:
        notes.append(f"the pre-trained model is not traced: {error}")
        return []
    same = before.user_ids.equals(model.user_ids) and before.item_ids.equals(model.item_ids)
    if not isinstance(before.method, GraphMethod) or not same:
        notes.append(f"the pre-trained run {path} is of other users or items; it is not traced")
        return []
    layers: list[Tensor] = []
    if before.method.name == PRETRAINED and np.array_equal(before.train.item, model.train.item):
        # Plain LightGCN has no weights of its own: as many layers as this run has.
        plain = [EdgeWeights(torch.from_numpy(tracer.plain))] * len(tracer.weights)
        layers = list(Tracer(method.graph, plain).layers(before.method.tables.ego.rows().double()))
    premises = [tracer.premise(vectors, "pretrained", layer) for layer, vectors in enumerate(layers)]
    return [*premises, tracer.premise(_readout(before.method), "pretrained", None)]
