"""The training loop of graph methods: optimizer, schedule, early stopping, checkpoints, several processes."""

from __future__ import annotations

from dpaa.training._stopping import EpochReport
from dpaa.training.checkpoint import Checkpoint, CheckpointFolder, Start
from dpaa.training.trainer import MONITOR, Interrupted, Trainer

__all__ = ["MONITOR", "Checkpoint", "CheckpointFolder", "EpochReport", "Interrupted", "Start", "Trainer"]
