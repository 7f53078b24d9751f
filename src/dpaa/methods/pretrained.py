"""Vectors of a model trained before, for methods that weight their messages by them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from dpaa.graph.propagation import Propagation
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod

PRETRAINED = "lightgcn"
"""The method that is trained first where a pre-trained model is needed and none is given."""


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
    def of(cls, model: GraphMethod, n_layers: int, origin: dict[str, Any]) -> Pretrained:
        """Vectors of a trained LightGCN on the same graph; its weights are fixed, so any layer can be computed."""
        propagation = Propagation(model.graph, n_layers, model.compute.kernel)
        propagation.set_weights([model.graph.symmetric_weights()] * n_layers)
        layers = tuple(layer.rows() for layer in propagation.layers(model.tables.ego))
        return cls(torch.cat([model.user_embedding, model.item_embedding]), layers, origin)

    @property
    def digest(self) -> str:
        """Digest of all vectors: a checkpoint belongs to one pre-trained model."""
        digest = hashlib.sha256()
        for table in (self.readout, *self.layers):
            digest.update(table.cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def vectors(self, layer: int) -> Tensor:
        """Layer `layer`, or the final vectors where layers are not known."""
        return self.layers[layer] if self.layers else self.readout


class UsesPretrained:
    """Mixin of methods that start from a model trained before, which `fit` is given or trains first."""

    def pretrained_layers(self) -> int | None:
        """How many of its layers beyond layer 0 are needed; None where no such model is used."""
        raise NotImplementedError

    def take_pretrained(self, pretrained: Pretrained) -> list[str]:
        """Keep what is needed of its vectors.

        Returns
        -------
        notes for the user on how they are used
        """
        raise NotImplementedError


def needed_layers(method: Method) -> int | None:
    """Layers of a pre-trained model that a method needs; None where it uses none."""
    return method.pretrained_layers() if isinstance(method, UsesPretrained) else None
