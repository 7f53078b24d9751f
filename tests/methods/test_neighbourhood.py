"""Lists both ways, against sets."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.cooccurrence import Lists
from dpaa.methods._popularity import items_of_users, users_of_items
from tests.conftest import random_pairs


def as_sets(lists: Lists, n: int) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(n)]
    for owner, entry in zip(*(part.tolist() for part in lists.entries(torch.arange(n))), strict=True):
        assert entry not in found[owner], "nothing twice"
        found[owner].add(entry)
    assert lists.lengths.tolist() == [len(entries) for entries in found]
    return found


@given(seed=st.integers(0, 9999))
def test_users_and_items_list_each_other(seed: int) -> None:
    pairs = random_pairs(np.random.default_rng(seed), 6, 5)
    graph = BipartiteGraph.from_pairs(pairs, 6, 5)
    taken = set(zip(pairs.user.tolist(), pairs.item.tolist(), strict=True))
    assert as_sets(items_of_users(graph), 6) == [{i for i in range(5) if (u, i) in taken} for u in range(6)]
    assert as_sets(users_of_items(graph), 5) == [{u for u in range(6) if (u, i) in taken} for i in range(5)]
