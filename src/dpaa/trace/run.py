"""A finished run's files become a trace: weights, message mass, cosines and gradient by layer and popularity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpaa.errors import InputError
from dpaa.graph.bipartite import EdgeWeights
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import PRETRAINED
from dpaa.methods.rows import bpr
from dpaa.methods.weighted_messages import WeightedMessages
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model, load
from dpaa.trace.direction import Direction, popularity_direction
from dpaa.trace.tracer import RULE, Contributions, LayerShare, LayerWeights, Premise, Tracer, layer_shares

BATCH_EPOCH = 0
"""The batch behind Lemma 2's gradient is the first of an epoch that no training sees: they count from 1."""
SAME_READOUT = 1e-4
"""Relative difference up to which the saved read-out is the mean of the layers recomputed from tables and weights."""


FEW = 100
"""Edges below which a mean over them says little."""
_WHOSE = {"own": "the run's own", "pretrained": "the pre-trained model's"}
_IS = {"holds": "holds", "flat": "is flat", "reversed": "is reversed", "unknown": "cannot be told"}


@dataclass(frozen=True)
class Trace:
    """Where popularity enters a run."""

    run: str
    method: str
    headline: str
    """The premise where the run's weights look for it, and how much it rests on."""
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
    emphasis: float | None
    """η, where the method has it."""
    epochs: list[dict[str, Any]]
    """Of each epoch what the history tells of `embedding_shift`, `pretrained_share` and `iiw_by_decile`."""
    notes: list[str]

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
            "popularity_direction": self.direction.as_json(),
            "lemma_1": [asdict(pair) | {"difference": pair.difference} for pair in self.contributions],
            "lemma_2": {"layer_emphasis": self.emphasis, "layers": [asdict(share) for share in self.shares]},
            "epochs": self.epochs,
            "notes": self.notes,
        }


def trace_run(folder: str | Path) -> Trace:
    """The trace of a finished run of a method that weights messages."""
    run = RunFolder(folder)
    model = load(run.path)
    method = model.method
    if not isinstance(method, GraphMethod) or not method.layers:
        reason = "has layers=0" if isinstance(method, GraphMethod) else f"is one of {method.name}"
        raise InputError(
            f"{folder} {reason} and weights no messages (its edges.parquet has no column weight_0); "
            "trace a run of a method that propagates, such as lightgcn or dpaa"
        )
    weights = run.read_weights(model, method.layers)
    weighing = _weighing(method)
    tracer = Tracer(method.graph, weights, weighing.initial_residual if weighing else 0.0)
    return _Reading(run, model, method, tracer).trace()


def _weighing(method: GraphMethod) -> WeightedMessages | None:
    """The method, where DPAA's weights are in force."""
    return method if isinstance(method, WeightedMessages) and method.weighs_messages else None


class _Reading:
    """The parts of a trace that need the run's tables."""

    def __init__(self, run: RunFolder, model: Model, method: GraphMethod, tracer: Tracer) -> None:
        self.run, self.model, self.method, self.tracer = run, model, method, tracer
        self.n_users = method.graph.n_users
        self.ego = method.tables.ego.rows().double()
        self.readout = torch.cat([method.user_embedding, method.item_embedding]).double()
        self.layers = list(tracer.layers(self.ego))
        self.weighing = _weighing(method)
        self.emphasis = self.weighing.layer_emphasis if self.weighing else None
        self.notes: list[str] = []
        mean = torch.stack(self.layers).mean(dim=0)
        same = mean.shape == self.readout.shape
        if not same or not (mean - self.readout).norm() <= SAME_READOUT * self.readout.norm().clamp(min=1e-30):
            self.notes.append(
                f"{method.name} does more to its layers than weighting messages: layers after 0 cannot be had from its "
                "files and are left out, and layer 0 is taken as what is sent"
            )
            self.layers = self.layers[:1]

    def _headline(self, premises: list[Premise]) -> str:
        """What counts first: the vectors that the weights in force are made from."""
        source = self.weighing.interaction_strength_from if self.weighing else None
        layer = None if source == "readout" else 0
        where = "the read-out" if layer is None else "layer 0"
        chosen = [premise for premise in premises if premise.layer == layer]
        told = " and ".join(f"{_IS[premise.verdict]} in {_WHOSE[premise.vectors]} vectors" for premise in chosen)
        rare = sum(self.tracer.edges_by_decile()[:2])
        weak = f"; only {rare:,} edges lead to the rarest fifth of the items: too few to lean on" if rare < FEW else ""
        begins = f"{self.method.name} weights" if source else "DPAA would weight"
        return f"{begins} messages by {where}: there the premise {told}{weak}"

    def trace(self) -> Trace:
        weights = [
            self.tracer.layer_weights(layer, self.layers[layer][self.n_users :] if layer < len(self.layers) else None)
            for layer in range(self.method.layers)
        ]
        premises = [self.tracer.premise(vectors, "own", layer) for layer, vectors in enumerate(self.layers)]
        premises.append(self.tracer.premise(self.readout, "own", None))
        premises += self._of_pretrained()
        known = ("epoch", "embedding_shift", "pretrained_share", "iiw_by_decile")
        lines = [{key: line[key] for key in known if key in line} for line in self.run.history()]
        return Trace(
            run=str(self.run.path),
            method=self.method.name,
            headline=self._headline(premises),
            premises=premises,
            items=self.tracer.items_by_decile(),
            edges=self.tracer.edges_by_decile(),
            weights=weights,
            contributions=self.tracer.contributions(self.ego[self.n_users :]),
            shares=self._shares(),
            direction=popularity_direction(self.method.graph, self.layers, self.readout),
            emphasis=self.emphasis,
            epochs=[line for line in lines if len(line) > 1],
            notes=self.notes,
        )

    # ------------------------------------------------------------------ Lemma 2

    def _shares(self) -> list[LayerShare]:
        if len(self.layers) <= self.method.layers:
            return []
        sizes = [float(layer.norm(dim=1).sum()) for layer in self.layers]
        gradient = self.tracer.gradient_norms(self._gradient_in_readout())
        layer_weights = self.weighing.layer_weights() if self.weighing else None
        return layer_shares(sizes, gradient, self.emphasis, layer_weights)

    def _gradient_in_readout(self) -> Tensor:
        """Of BPR on one batch of triples, a function of the run's seed.  (n_nodes, d)."""
        batch = next(GraphMethod.batches(self.method, BATCH_EPOCH))
        nodes = batch.nodes(self.n_users)
        rows = self.readout[nodes].requires_grad_()
        bpr(*batch.split(rows)).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        assert rows.grad is not None
        return torch.zeros_like(self.readout).index_add_(0, nodes, rows.grad)

    # ------------------------------------------------------------------ the model trained before

    def _of_pretrained(self) -> list[Premise]:
        origin = self.model.manifest.get("pretrained")
        if not isinstance(origin, dict):
            return []
        place = origin.get("run")
        if not isinstance(place, str):
            self.notes.append("the pre-trained vectors came from embeddings and not from a run; they are not traced")
            return []
        try:
            model = load(place)
        except InputError as error:
            self.notes.append(f"the pre-trained model is not traced: {error}")
            return []
        same = model.user_ids.equals(self.model.user_ids) and model.item_ids.equals(self.model.item_ids)
        if not isinstance(model.method, GraphMethod) or not same:
            self.notes.append(f"the pre-trained run {place} is of other users or items; it is not traced")
            return []
        before = model.method
        readout = torch.cat([before.user_embedding, before.item_embedding]).double()
        found = [self.tracer.premise(readout, "pretrained", None)]
        if before.name == PRETRAINED and np.array_equal(model.train.item, self.model.train.item):
            # Plain LightGCN has no weights of its own: as many layers as this run has.
            weights = [EdgeWeights(torch.from_numpy(self.tracer.plain))] * len(self.tracer.weights)
            layers = enumerate(Tracer(self.method.graph, weights).layers(before.tables.ego.rows().double()))
            found = [self.tracer.premise(vectors, "pretrained", layer) for layer, vectors in layers] + found
        return found
