"""Which users a process holds, and sums over all of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.data.pairs import Pairs
from dpaa.errors import InputError
from dpaa.graph import users as module
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.users import Users
from tests.threads import ThreadGroup, in_threads


class Some:
    """One of so many, who is never asked."""

    def __init__(self, rank: int, count: int) -> None:
        self.rank, self.count = rank, count


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("kind", ["even", "one has nearly all", "the last has nearly all", "nobody has any"])
def test_everybody_has_users_and_about_as_many_interactions(count: int, kind: str) -> None:
    taken = {
        "even": np.full(70, 5),
        "one has nearly all": np.array([1000] + [1] * 20),
        "the last has nearly all": np.array([1] * 20 + [1000]),
        "nobody has any": np.zeros(9, dtype=np.int64),
    }[kind]
    users = Users.balanced(taken, Some(0, count))  # type: ignore[arg-type]
    assert users.bounds[0] == 0
    assert users.bounds[-1] == len(taken) == users.n
    assert all(first < last for first, last in zip(users.bounds, users.bounds[1:], strict=False))
    if kind == "even":
        parts = [taken[first:last].sum() for first, last in zip(users.bounds, users.bounds[1:], strict=False)]
        assert max(parts) - min(parts) <= 2 * 5


def test_more_processes_than_users_are_refused() -> None:
    with pytest.raises(InputError, match="3 users cannot be shared by 4 processes; use fewer parts of users"):
        Users.balanced(np.ones(3, dtype=np.int64), Some(0, 4))  # type: ignore[arg-type]


@pytest.mark.parametrize("sent_rows", [2, 100])
def test_rows_are_added_up_collected_and_cut(sent_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SENT_ROWS", sent_rows)
    whole = torch.randn(9 + 5, 3)
    items = torch.randn(3, 5, 2)
    seen = {}

    def work(group: ThreadGroup) -> None:
        users = Users((0, 2, 6, 9), group.user_peers)
        own = users.cut(whole)
        assert torch.equal(own, torch.cat([whole[users.own], whole[9:]]))
        collected = users.to_leader(own)
        assert torch.equal(collected, whole) if users.leads else not collected.numel()
        part = items[group.rank].clone()
        assert users.add_up_(part) is part
        seen[group.rank] = part
        assert users.mean_over_nodes(own[:, 0]).item() == pytest.approx(whole[:, 0].mean().item(), rel=1e-5)

    in_threads(3, work, work, user_parts=3)
    assert all(torch.equal(part, items[0] + items[1] + items[2]) for part in seen.values())
    assert len(seen) == 3


def test_a_graph_of_some_users_has_their_edges_and_the_degrees_of_all_items() -> None:
    rng = np.random.default_rng(0)
    pairs = Pairs.of(rng.integers(0, 10, 60), rng.integers(0, 7, 60), rng.integers(1, 4, 60))
    whole = BipartiteGraph.from_pairs(pairs, 10, 7)
    weights = whole.symmetric_weights().to_user
    found = []
    for rank in range(3):
        users = Users((0, 3, 4, 10), Some(rank, 3))  # type: ignore[arg-type]
        part = BipartiteGraph.of_users(pairs, users, 7)
        assert part.n_users == users.n_own
        assert torch.equal(part.item_degree, whole.item_degree)
        assert torch.equal(part.user_degree, whole.user_degree[users.own])
        assert part.all_pairs is pairs
        found.append(part.symmetric_weights().to_user)
    assert torch.equal(torch.cat(found), weights)
