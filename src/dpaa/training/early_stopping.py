"""Patience on a number it is handed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class EarlyStopping:
    """Remembers the best value and how long ago it was; larger is better, a tie is not better."""

    patience: int
    best_value: float = float("-inf")
    best_epoch: int = 0

    def improved(self, epoch: int, value: float) -> bool:
        """Whether this epoch is the best so far (and remember it)."""
        if value <= self.best_value:
            return False
        self.best_value, self.best_epoch = value, epoch
        return True

    def exhausted(self, epoch: int) -> bool:
        """Whether `patience` epochs have passed without a better one."""
        return epoch - self.best_epoch >= self.patience
