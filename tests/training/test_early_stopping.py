from __future__ import annotations

from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.methods.lightgcn import LightGCN
from dpaa.training._stopping import EarlyStopping


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
