from __future__ import annotations

from dpaa.training.early_stopping import EarlyStopping


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
    assert (stopping.best_epoch, stopping.best_value) == (2, 0.3)
    assert [stopping.exhausted(epoch) for epoch in (3, 4, 5)] == [False, False, True]
