"""Trainings that are stopped on the way, models compared bit by bit, and datasets with other splits."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from dpaa import Dataset, Model
from dpaa.data.ids import SPLITS
from dpaa.methods.base import Method
from dpaa.runs.fit import Callbacks, fit_into
from dpaa.training.trainer import Interrupted


def interrupted(after: int, folder: Path, data: Dataset, method: Method, **how: Any) -> None:
    """Train into a folder; a checkpoint is asked for, and written, with the question of this number."""
    questions = iter(range(1, 10**6))
    with pytest.raises(Interrupted):
        fit_into(folder, data, method, callbacks=Callbacks(stop_requested=lambda: next(questions) == after), **how)


def same_state(one: Model, other: Model) -> bool:
    """Whether runs of the two would hold the same tensors, bit for bit."""
    mine, theirs = one.method.state(), other.method.state()
    return mine.keys() == theirs.keys() and all(torch.equal(tensor, theirs[name]) for name, tensor in mine.items())


def resplit(data: Dataset, name: str, **splits: pl.DataFrame) -> Dataset:
    """A dataset of these splits, the others as they are."""
    return Dataset.of({split: data.frame(split) for split in SPLITS} | splits, name=name, about={})
