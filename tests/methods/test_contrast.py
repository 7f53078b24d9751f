"""Contrastive losses against dense formulas, their gradients, and the methods built on noisy or thinned views."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize, softplus

from dpaa.methods.contrast import batch_softmax, info_nce, log_sum_exp, mean_of_layers, same_sign_noise, uniformity
from dpaa.methods.paac import PAAC, crossed_info_nce, halves
from dpaa.methods.sgl import thinned_weights
from dpaa.methods.simgcl import SimGCL
from dpaa.methods.tables import margins
from tests.methods.tools import ITEMS, gradient_of, some_graph, started


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("kept", [0, 1 << 20])
@pytest.mark.parametrize("cells", [1, 7, 1 << 20])
@given(n=st.integers(1, 8), m=st.integers(1, 9), seed=st.integers(0, 99), biased=st.booleans())
def test_blocks_equal_the_whole_matrix(cells: int, kept: int, n: int, m: int, seed: int, biased: bool) -> None:
    one, two = (part.requires_grad_() for part in (drawn(n, 4, seed=seed), drawn(m, 4, seed=seed + 1)))
    bias = drawn(m, seed=seed + 2) if biased else None
    mask = drawn(n, m, seed=seed + 3) > 0.5
    dense = (one @ two.T / 0.3 + (0 if bias is None else bias)).masked_fill(mask, -torch.inf)
    some, weight = ~mask.all(dim=1), drawn(n, seed=seed + 4)
    expected = torch.autograd.grad((torch.logsumexp(dense[some], dim=1) * weight[some]).sum(), (one, two))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.methods.contrast.BLOCK_CELLS", cells)
        patch.setattr("dpaa.methods.contrast.KEPT_CELLS", kept)
        found = log_sum_exp(one, two, 0.3, bias, lambda logits, part: logits.masked_fill_(mask[part], -torch.inf))
        by = torch.autograd.grad((found[some] * weight[some]).sum(), (one, two))
    torch.testing.assert_close(found, torch.logsumexp(dense, dim=1))
    assert (found[~some] == -torch.inf).all()
    for mine, theirs in zip(by, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("named", [True, False])
@given(index=st.lists(st.integers(0, 4), min_size=1, max_size=9), seed=st.integers(0, 99))
def test_softmax_of_a_batch_against_all_other_rows(named: bool, index: list[int], seed: int) -> None:
    """Equal items are multiplied once; a row's own occurrence is no negative, other occurrences of its item are."""
    table, user = drawn(5, 3, seed=seed).requires_grad_(), drawn(len(index), 3, seed=seed + 1)
    item = table[index]
    found = batch_softmax(user, item, 0.3, torch.tensor(index) if named else None)
    dense = (user @ item.T / 0.3).masked_fill(torch.eye(len(index), dtype=torch.bool), -torch.inf)
    slow = softplus(dense.logsumexp(1) - (user * item).sum(dim=1) / 0.3).mean()
    torch.testing.assert_close(found, slow)
    if len(index) > 1:
        mine, theirs = (torch.autograd.grad(part, table, retain_graph=True)[0] for part in (found, slow))
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("cells", [1, 7, 1 << 20])
def test_uniformity_and_its_gradient(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.methods.contrast.BLOCK_CELLS", cells)
    rows = normalize(drawn(6, 3)).requires_grad_()
    slow = (2 - 2 * (rows @ rows.T)[torch.triu_indices(6, 6, 1).unbind()]).mul(-2).exp().mean().log()  # at length 1
    torch.testing.assert_close(uniformity(rows), slow)
    mine, theirs = (torch.autograd.grad(part, rows, retain_graph=True)[0] for part in (uniformity(rows), slow))
    torch.testing.assert_close(mine, theirs)
    assert uniformity(torch.ones(1, 2)).item() == 0, "there is no pair"


def test_the_clean_gradient_is_that_of_all_three_passes() -> None:
    """SimGCL against automatic differentiation through the noisy passes themselves."""
    graph = some_graph()
    method = started(SimGCL, graph, embedding_size=8, layers=2, contrast_weight=0.7, l2=0)
    batch = next(method.batches(1))
    batch_rows = method.tables.forward(batch)
    method.loss(batch, batch_rows).backward()
    table = method.tables.ego.rows().requires_grad_()
    rows = batch.split(method.table_readout(table, None).index_select(0, batch.nodes(graph.n_users)))
    slow = torch.nn.functional.softplus(-margins(*rows)).mean()
    views = []
    for number in (0, 1):
        noise = same_sign_noise(0.1, method.generator(1, batch.epoch, batch.number, number))
        views.append(mean_of_layers(list(method.tables.propagation.differentiable_layers(table, noise)), False))
    for nodes in (batch.users.unique(), batch.positive.unique() + graph.n_users):
        slow = slow + 0.7 * info_nce(views[0][nodes], views[1][nodes], 0.2)
    slow.backward()
    torch.testing.assert_close(gradient_of(method, batch_rows), table.grad, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("dropped", [0.0, 0.3, 0.9])
def test_thinned_graphs_count_degrees_on_what_is_left(dropped: float) -> None:
    graph = some_graph()
    found = thinned_weights(graph, dropped, torch.Generator().manual_seed(3)).to_user
    kept = found > 0
    assert kept.sum() == int(graph.n_edges * (1 - dropped))
    users = torch.bincount(graph.edge_user[kept], minlength=graph.n_users).float()
    items = torch.bincount(graph.edge_item[kept], minlength=graph.n_items).float()
    expected = (users[graph.edge_user[kept].long()] * items[graph.edge_item[kept].long()]).rsqrt()
    torch.testing.assert_close(found[kept], expected)


def test_pairs_of_paac_equal_the_slow_twin_and_come_once_an_epoch() -> None:
    graph = some_graph()
    count, taken, expected = graph.item_degree.numpy(), {}, []
    for user, item in zip(graph.edge_user.tolist(), graph.edge_item.tolist(), strict=True):
        taken.setdefault(user, []).append(item)
    for mine in taken.values():
        ordered = sorted(mine, key=lambda item: (count[item], item))
        half = len(ordered) // 2
        expected += list(zip(ordered[:half], ordered[len(ordered) - half :], strict=True))
    method = started(PAAC, graph, embedding_size=4, batch_size=16, sampler="interaction")
    assert list(zip(*(side.tolist() for side in method.pairs), strict=True)) == expected
    batches = list(method.batches(3))
    seen = [pair for batch in batches for pair in zip(*(side.tolist() for side in batch.more_items), strict=True)]
    assert sorted(seen) == sorted(expected)
    assert torch.equal(next(method.batches(3, 2)).more_items[0], batches[2].more_items[0])


def test_halves_by_hand() -> None:
    """Draws 4 4 1 0 2 0 with counts 9 8 5 – 1: in order 4 4 2 | 1 0 0."""
    rare, popular = halves(torch.tensor([4, 4, 1, 0, 2, 0]), torch.tensor([9.0, 8.0, 5.0, 7.0, 1.0]))
    assert (rare.tolist(), popular.tolist()) == ([2, 4], [0, 1])
    rare, popular = halves(torch.tensor([3, 3, 3]), torch.ones(5))  # one item in both halves counts as popular
    assert (rare.tolist(), popular.tolist()) == ([], [3])


def test_crossed_contrast_worked_number() -> None:
    """x = i0 against y: itself 1, i1 0.7071 (its own half) and i3 0.7071 (the other, counting 0.5), τ = 0.5; and i1."""
    own, other = ITEMS[:2], ITEMS[3:]
    first = np.log(np.exp(2) + np.exp(np.sqrt(2)) + 0.5 * np.exp(np.sqrt(2))) - 2
    second = np.log(np.exp(2) + np.exp(np.sqrt(2)) + 0.5) - 2
    assert crossed_info_nce(own, own, other, 0.5, 0.5).item() == pytest.approx((first + second) / 2, abs=1e-6)
    assert crossed_info_nce(own, own, other, 0.5, 0).item() == pytest.approx(info_nce(own, own, 0.5).item())
    assert crossed_info_nce(own[:0], own[:0], other, 0.5, 0.5).item() == 0
