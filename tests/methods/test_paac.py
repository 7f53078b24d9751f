from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.methods.contrast import info_nce, noisy_readout
from dpaa.methods.paac import PAAC, BatchWithItemPairs, crossed_info_nce, halves
from tests.methods.tools import ITEMS, loss_of, readout_of, some_graph, started


def test_pairs_equal_the_slow_twin() -> None:
    graph = some_graph()
    count = graph.item_degree.numpy()
    taken: dict[int, list[int]] = {}
    for user, item in zip(graph.edge_user.tolist(), graph.edge_item.tolist(), strict=True):
        taken.setdefault(user, []).append(item)
    expected = []
    for mine in taken.values():
        ordered = sorted(mine, key=lambda item: (count[item], item))
        half = len(ordered) // 2
        expected += list(zip(ordered[:half], ordered[len(ordered) - half :], strict=True))
    method = started(PAAC, graph, embedding_size=4)
    assert list(zip(*(side.tolist() for side in method.pairs), strict=True)) == expected


def test_every_pair_once_an_epoch() -> None:
    method = started(PAAC, some_graph(), embedding_size=4, batch_size=16, sampler="interaction")
    batches = list(method.batches(3))
    assert all(isinstance(batch, BatchWithItemPairs) for batch in batches)
    seen = [pair for batch in batches for pair in zip(batch.rare.tolist(), batch.popular.tolist(), strict=True)]  # type: ignore[attr-defined]
    assert sorted(seen) == sorted(zip(*(side.tolist() for side in method.pairs), strict=True))
    again = next(method.batches(3, 2))
    assert torch.equal(again.rare, batches[2].rare)  # type: ignore[attr-defined]


def test_halves_by_hand() -> None:
    """Draws 4 4 1 0 2 0 with counts 9 8 5 – 1: in order 4 4 2 | 1 0 0."""
    rare, popular = halves(torch.tensor([4, 4, 1, 0, 2, 0]), torch.tensor([9.0, 8.0, 5.0, 7.0, 1.0]))
    assert rare.tolist() == [2, 4]
    assert popular.tolist() == [0, 1]
    rare, popular = halves(torch.tensor([3, 3, 3]), torch.ones(5))  # one item in both halves counts as popular
    assert rare.tolist() == []
    assert popular.tolist() == [3]


def test_crossed_contrast_worked_number() -> None:
    """x = i0 against y: itself 1, i1 .7071 (its own half) and i3 .7071 (the other, counting .5), τ = .5; and i1."""
    own, other = ITEMS[:2], ITEMS[3:]
    first = np.log(np.exp(2) + np.exp(np.sqrt(2)) + 0.5 * np.exp(np.sqrt(2))) - 2
    second = np.log(np.exp(2) + np.exp(np.sqrt(2)) + 0.5) - 2
    assert crossed_info_nce(own, own, other, 0.5, 0.5).item() == pytest.approx((first + second) / 2, abs=1e-6)
    assert crossed_info_nce(own, own, other, 0.5, 0).item() == pytest.approx(info_nce(own, own, 0.5).item())
    assert crossed_info_nce(own[:0], own[:0], other, 0.5, 0.5).item() == 0


def test_loss_equals_the_formula() -> None:
    graph = some_graph()
    size = {"embedding_size": 8, "layers": 2}
    method = started(PAAC, graph, **size, alignment_weight=0.4, contrast_weight=0.7, popular_share=0.3)
    plain = started(PAAC, graph, **size, alignment_weight=0, contrast_weight=0)
    batch, vectors = next(method.batches(1)), readout_of(method)
    assert isinstance(batch, BatchWithItemPairs)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    gap = unit[batch.rare + graph.n_users] - unit[batch.popular + graph.n_users]
    expected = loss_of(plain, next(plain.batches(1))) + 0.4 * np.mean(np.sum(gap**2, axis=1))
    everybody = torch.arange(graph.n_nodes)
    one, two = (
        noisy_readout(
            method.tables.propagation,
            method.tables.ego.rows(),
            0.2,
            method.generator(1, 1, 0, number),
            False,
            everybody,
        )
        for number in (0, 1)
    )
    users = batch.users.unique()
    rare, popular = (side + graph.n_users for side in halves(batch.positive, graph.item_degree))
    contrast = info_nce(one[users], two[users], 0.2)
    contrast = contrast + 0.3 * crossed_info_nce(one[popular], two[popular], two[rare], 0.2, 0.5)
    contrast = contrast + 0.7 * crossed_info_nce(one[rare], two[rare], two[popular], 0.2, 0.5)
    assert loss_of(method, batch) == pytest.approx(expected + 0.7 * contrast.item(), abs=1e-5)
