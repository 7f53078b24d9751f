"""Lists from blocks of scores, against sorting one user at a time."""

from __future__ import annotations

import numpy as np
import pytest

from dpaa.data.dataset import Dataset
from dpaa.evaluation import ranking
from dpaa.evaluation.evaluator import Evaluator
from tests.evaluation.fixed import Fixed


@pytest.mark.parametrize("block", [1, 777, 10**9])
def test_block_size_changes_nothing(small_world: Dataset, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    method = Fixed(small_world, rng.integers(0, 4, (small_world.n_users, small_world.n_items)).astype(np.float32))
    expected = Evaluator(small_world, 20).lists(method)
    monkeypatch.setattr(ranking, "BLOCK_SCORES", block)
    np.testing.assert_array_equal(Evaluator(small_world, 20).lists(method), expected)
