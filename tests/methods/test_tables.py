"""Rows gathered once for each distinct node, and the common terms of losses, against plain autograd."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import Propagation, Selection
from dpaa.methods.tables import Batch, Rows, margins
from tests.conftest import random_pairs

N_USERS, N_ITEMS = 6, 5


def of_everything(rows: Rows, n: int) -> Tensor:
    """A loss that uses the rows in every way, each with its own factor."""
    user, positive, _ = torch.split(rows.index, n)
    return (
        rows.readout.square().sum()
        + 2 * rows.ego.sin().sum()
        + 7 * (rows.margins(n) * torch.arange(n)).sum()
        + 11 * rows.half_squares(2 * n)
        + 13 * rows.dots(user, positive).sin().sum()
        + 17 * rows.projections(positive, torch.arange(3.0).double()).cos().sum()
    )


def by_autograd(final: Tensor, ego: Tensor, n: int) -> Tensor:
    """The same of gathered rows with their repeats."""
    user, positive, negative = torch.split(final, n)
    return (
        final.square().sum()
        + 2 * ego.sin().sum()
        + 7 * (margins(user, positive, negative) * torch.arange(n)).sum()
        + 11 * 0.5 * ego[: 2 * n].square().sum()
        + 13 * (user * positive).sum(dim=1).sin().sum()
        + 17 * (positive @ torch.arange(3.0).double()).cos().sum()
    )


@given(
    seed=st.integers(0, 9999),
    n=st.integers(1, 9),
    whole_from=st.sampled_from([0.0, 0.6, 2.0]),
    round_to=st.integers(1, 4),
)
def test_distinct_rows_are_the_repeated_ones(seed: int, n: int, whole_from: float, round_to: int) -> None:
    rng = np.random.default_rng(seed)
    graph = BipartiteGraph.from_pairs(random_pairs(rng, N_USERS, N_ITEMS), N_USERS, N_ITEMS)
    nodes = Batch(*(torch.from_numpy(rng.integers(0, high, n)) for high in (N_USERS, N_ITEMS, N_ITEMS))).nodes(N_USERS)
    final, ego = torch.from_numpy(rng.normal(size=(2, graph.n_nodes, 3)))
    selection = Selection(graph, nodes, round_to, whole_from)
    tiles = [tile[selection.nodes] for tile in ego.split(2, dim=1)]
    rows = Rows(selection, nodes, final[selection.nodes], tiles)
    leaves = final.clone().requires_grad_(), ego.clone().requires_grad_()
    expected = by_autograd(*(leaf[nodes] for leaf in leaves), n)
    total = of_everything(rows, n)
    torch.testing.assert_close(total, expected)
    total.backward()  # type: ignore[no-untyped-call]
    by_table = sum(torch.autograd.grad(expected, leaves))
    propagation = Propagation(graph, 0)  # without layers, what reaches the read-out reaches the table
    for number, columns in enumerate((slice(0, 2), slice(2, 3))):
        torch.testing.assert_close(rows.tile_gradient(propagation, number, columns), by_table[:, columns])


def test_bpr_by_hand_and_with_huge_margins() -> None:
    user = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    positive, negative = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    assert softplus(-margins(user, positive, negative)).mean().item() == pytest.approx((0.3132617 + 0.6931472) / 2)
    huge = torch.full((1, 1), 1e4, requires_grad=True)
    loss = softplus(-margins(huge, torch.zeros(1, 1), torch.ones(1, 1))).mean()
    assert torch.isfinite(torch.stack([loss, *torch.autograd.grad(loss, huge)[0][0]])).all()
