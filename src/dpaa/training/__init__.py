"""The training loop of graph methods: optimizer, schedule, early stopping, checkpoints, several processes."""

from __future__ import annotations

from dpaa.training._state import Checkpoint, CheckpointFolder, EpochReport, Start
from dpaa.training.trainer import MONITOR, Interrupted, Trainer

__all__ = ["MONITOR", "Checkpoint", "CheckpointFolder", "EpochReport", "Interrupted", "Start", "Trainer"]
