from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpaa.graph import reference
from dpaa.methods.samplers import draw_missing, gap_keys
from tests.conftest import random_pairs


class FixedRanks:
    """Stands for a random generator that draws the ranks it was given."""

    def __init__(self, ranks: np.ndarray) -> None:
        self.ranks = ranks

    def integers(self, low: int, high: np.ndarray) -> np.ndarray:
        assert ((low <= self.ranks) & (self.ranks < high)).all()
        return self.ranks


@given(
    seed=st.integers(0, 2**32 - 1), n_users=st.integers(1, 6), n_items=st.integers(1, 12), density=st.floats(0, 0.95)
)
def test_every_rank_is_the_missing_item_of_that_rank(seed: int, n_users: int, n_items: int, density: float) -> None:
    pairs = random_pairs(np.random.default_rng(seed), n_users, n_items, density)
    indptr = pairs.indptr(n_users)
    keys = gap_keys(indptr, pairs.item, n_items)
    for user in range(n_users):
        taken = pairs.item[indptr[user] : indptr[user + 1]].tolist()
        ranks = np.arange(n_items - len(taken))
        users = np.full(len(ranks), user)
        found = draw_missing(FixedRanks(ranks), users, indptr, keys, n_items)  # type: ignore[arg-type]
        assert found.tolist() == [reference.nth_missing(taken, int(rank)) for rank in ranks]
        assert sorted([*found.tolist(), *taken]) == list(range(n_items))
