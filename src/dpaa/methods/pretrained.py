"""Vectors of a model trained before, for methods that measure their messages by them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import Propagation, TiledTable
from dpaa.methods.compute import Compute


class Embedded(Protocol):
    """A trained LightGCN, as far as its vectors go."""

    graph: BipartiteGraph
    ego: TiledTable
    user_embedding: Tensor
    item_embedding: Tensor

    @property
    def compute(self) -> Compute:
        """With the sparse product in use."""


@dataclass(frozen=True, eq=False)
class Pretrained:
    """Read-out vectors, and the layers behind them where they are known; users first, then items."""

    readout: Tensor
    """(n_users + n_items, any width)"""
    layers: tuple[Tensor, ...] = ()
    """Layers 0, 1, …; empty where only final vectors are known, which then stand for every layer."""
    origin: dict[str, Any] = field(default_factory=dict)
    """Where they come from, for the manifest."""

    @classmethod
    def of(cls, model: Embedded, n_layers: int, origin: dict[str, Any]) -> Pretrained:
        """Vectors of a trained LightGCN on the same graph; it has no weights of its own, so any layer can be had."""
        propagation = Propagation(model.graph, n_layers, model.compute.kernel)
        propagation.set_weights([model.graph.symmetric_weights()] * n_layers)
        layers = tuple(layer.rows() for layer in propagation.layers(model.ego))
        return cls(torch.cat([model.user_embedding, model.item_embedding]), layers, origin)

    @property
    def digest(self) -> str:
        """Of all vectors: a checkpoint belongs to one pre-trained model."""
        found = hashlib.sha256()
        for table in (self.readout, *self.layers):
            found.update(table.cpu().contiguous().numpy().tobytes())
        return found.hexdigest()

    def vectors(self, layer: int) -> Tensor:
        """Layer `layer`, or the final vectors where layers are not known."""
        return self.layers[layer] if self.layers else self.readout
