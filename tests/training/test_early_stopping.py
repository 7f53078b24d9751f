from pathlib import Path
from typing import Any

import pytest
import torch

from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.methods.lightgcn import LightGCN
from dpaa.training._state import Checkpoint, CheckpointFolder, EarlyStopping
from dpaa.training.trainer import learning_rate_at


def test_patience_counts_from_the_best_epoch_and_a_tie_is_not_better() -> None:
    stopping = EarlyStopping(patience=3)
    values = [0.1, 0.3, 0.3, 0.2, 0.29]
    assert [stopping.improved(epoch, value) for epoch, value in enumerate(values, 1)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert (stopping.best.epoch, stopping.best.value) == (2, 0.3)
    assert [stopping.exhausted(epoch) for epoch in (3, 4, 5)] == [False, False, True]


def test_steps_must_have_passed_as_well() -> None:
    stopping = EarlyStopping(patience=2, patience_steps=10, minimum_steps=25)
    assert stopping.improved(1, 0.5, step=3)
    assert not stopping.exhausted(5, step=12), "steps since the best"
    assert not stopping.exhausted(5, step=15), "steps in all"
    assert not stopping.exhausted(2, step=99), "epochs"
    assert stopping.exhausted(5, step=25)


def test_auto_steps_grow_as_the_learning_rate_falls() -> None:
    default = EarlyStopping.of(LightGCN())
    assert (default.patience, default.patience_steps, default.minimum_steps) == (50, 1500, 1500)
    fast = EarlyStopping.of(LightGCN(learning_rate=1e-2))
    assert (fast.patience_steps, fast.minimum_steps) == (150, 150)
    set_by_hand = EarlyStopping.of(LightGCN(patience_steps=7, minimum_steps=0))
    assert (set_by_hand.patience_steps, set_by_hand.minimum_steps) == (7, 0)
    assert EarlyStopping.of(LightGCN(**PAPER_TRAINING)) == EarlyStopping(patience=50)


# ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "rates"),
    [
        ({"warmup_steps": 4}, {1: 0.005, 3: 0.015, 4: 0.02, 5: 0.02, 10_000: 0.02}),
        ({"warmup_steps": 4, "learning_rate_schedule": "inverse-sqrt"}, {1: 0.005, 4: 0.02, 16: 0.01, 400: 0.002}),
        ({"warmup_steps": 0, "learning_rate_schedule": "inverse-sqrt"}, {1: 0.02, 4: 0.01}),
        ({}, {1: 0.02, 50: 0.02, 10_000: 0.02}),
    ],
)
def test_rates_by_hand(given: dict[str, Any], rates: dict[int, float]) -> None:
    configured = LightGCN(learning_rate=0.02, **given)
    assert {step: learning_rate_at(step, configured) for step in rates} == pytest.approx(rates)


# ----------------------------------------------------------------------


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    tensors = {"a.x": torch.arange(6.0).reshape(2, 3), "a.empty": torch.zeros(0, 2), "step": torch.tensor(7)}
    folder = CheckpointFolder(tmp_path / "checkpoint")
    assert folder.load() is None
    folder.save(Checkpoint(tensors, {"epoch": 3}, {"method": "lightgcn"}))
    loaded = folder.load()
    assert (loaded.epoch, loaded.identity) == (3, {"method": "lightgcn"})
    assert all(torch.equal(loaded.tensors[name], tensor) for name, tensor in tensors.items())
