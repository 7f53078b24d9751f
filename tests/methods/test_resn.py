from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.methods.resn import ReSN, principal_energy
from tests.methods.spec import ITEMS, USERS, WholeLightGCN, spec_graph, triples
from tests.methods.tools import loss_of, readout_of, some_graph, started, trained


def test_by_hand() -> None:
    assert principal_energy(USERS, ITEMS, "sigmoid").item() == pytest.approx(4.65691, abs=1e-5)
    assert principal_energy(USERS, ITEMS, "linear").item() == pytest.approx(4.5, abs=1e-5)


@pytest.mark.parametrize("cells", [1, 1 << 20])
@given(seed=st.integers(0, 99), n=st.integers(1, 6))
def test_it_is_never_above_the_largest_singular_value(cells: int, seed: int, n: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    users, items = (torch.randn(size, 3, generator=draw).double() for size in (n, 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.methods.resn.BLOCK_CELLS", cells)
        for kind, matrix in (("sigmoid", torch.sigmoid(users @ items.T)), ("linear", users @ items.T)):
            largest = torch.linalg.svdvals(matrix)[0].item() ** 2
            assert principal_energy(users, items, kind).item() <= largest * (1 + 1e-9) + 1e-12


def test_the_gradient_is_that_of_the_formula() -> None:
    users, items = (tensor.double().requires_grad_() for tensor in (USERS, ITEMS))
    found = torch.autograd.grad(principal_energy(users, items, "sigmoid"), (users, items))
    columns = torch.sigmoid(users @ items.T).sum(dim=0).detach()
    plain = (torch.sigmoid(users @ items.T) @ (columns / columns.norm())).square().sum()
    for one, other in zip(found, torch.autograd.grad(plain, (users, items)), strict=True):
        torch.testing.assert_close(one, other)


def test_blocks_have_the_gradient_of_the_whole() -> None:
    users, items = USERS.clone().requires_grad_(), ITEMS.clone().requires_grad_()
    whole = torch.autograd.grad(principal_energy(users, items, "sigmoid"), (users, items))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.methods.resn.BLOCK_CELLS", 1)
        parts = torch.autograd.grad(principal_energy(users, items, "sigmoid"), (users, items))
    for one, other in zip(parts, whole, strict=True):
        torch.testing.assert_close(one, other)


def test_without_weight_and_with_bpr_it_is_lightgcn_bit_for_bit() -> None:
    graph = some_graph()
    plain = trained(WholeLightGCN, graph)
    assert torch.equal(trained(ReSN, graph, spectral_weight=0, error="bpr").ego.rows(), plain.ego.rows())
    assert not torch.equal(trained(ReSN, graph, error="bpr").ego.rows(), plain.ego.rows())


def test_the_squared_fit_by_hand() -> None:
    """User 0 with item 1 (score .5) against item 2 (score 0)."""
    batch, rows = triples((0, 1, 2))
    method = started(ReSN, spec_graph(), embedding_size=2, l2=0, spectral_weight=0)
    assert method.loss(batch, rows).item() == pytest.approx((1 - 0.62246) ** 2 + 0.25, abs=1e-5)


@pytest.mark.parametrize("kind", ["sigmoid", "linear"])
def test_loss_equals_the_formula(kind: str) -> None:
    graph = some_graph()
    settings = {"embedding_size": 8, "layers": 2, "scores": kind}
    plain, method = (started(ReSN, graph, **settings, spectral_weight=weight) for weight in (0, 0.7))
    batch = next(method.batches(1))
    final = torch.from_numpy(readout_of(method)).float()
    users, items = final[batch.users.unique()], final[graph.n_users :]
    expected = loss_of(plain, batch) + 0.7 * principal_energy(users, items, kind).item() / len(users)
    assert loss_of(method, batch) == pytest.approx(expected, rel=1e-5)
