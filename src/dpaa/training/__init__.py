"""The training loop of graph methods: optimizer, schedule, early stopping, checkpoints, several processes."""

from dpaa.training._checkpoint import Checkpoint, CheckpointFolder, Start
from dpaa.training._state import Callbacks, EpochReport
from dpaa.training.trainer import MONITOR, Interrupted, Trainer

__all__ = ["MONITOR", "Callbacks", "Checkpoint", "CheckpointFolder", "EpochReport", "Interrupted", "Start", "Trainer"]
