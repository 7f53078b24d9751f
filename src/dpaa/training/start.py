"""Where a training begins, if not at random numbers in step 1."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from dpaa.methods.graph_method import GraphMethod


@dataclass(frozen=True, eq=False)
class Start:
    """Tables that were trained before, and how far the schedule has come."""

    table: Tensor
    """Users then items, (n_nodes, d)."""
    parameters: dict[str, Tensor] = field(default_factory=dict)
    """What a method trains besides the table, as far as it is known."""
    epoch: int = 1
    """The first to be trained."""
    step: int = 0
    """Steps that count as done: the learning rate goes on from there."""
    best_epoch: int = 0
    """Of the training before, in which the table was best."""
    patience_share: float = 1.0
    """Of the epochs of patience."""
    measured: bool = True
    """Whether the table is validated before the first epoch, and kept where no epoch is better."""
    history: tuple[dict[str, Any], ...] = ()
    """Lines of the epochs before."""
    origin: dict[str, Any] = field(default_factory=dict)
    """Where it comes from, for the manifest."""

    def patience(self, method: GraphMethod) -> int:
        """Epochs without a better one before training ends."""
        return max(1, math.ceil(self.patience_share * method.patience))

    @property
    def digest(self) -> str:
        """Of all numbers: a checkpoint belongs to one start."""
        found = hashlib.sha256(f"{self.epoch} {self.step} {sorted(self.parameters)}".encode())
        for tensor in (self.table, *(self.parameters[name] for name in sorted(self.parameters))):
            found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return found.hexdigest()
