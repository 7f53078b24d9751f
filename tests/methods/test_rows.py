"""Rows gathered once for each distinct node, against rows with their repeats."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import Propagation, Selection
from dpaa.methods.rows import Batch, GatheredRows, Rows, TableRows
from tests.conftest import random_pairs

N_USERS, N_ITEMS = 6, 5
N_NODES = N_USERS + N_ITEMS


def some_batch(rng: np.random.Generator, n: int) -> Batch:
    draw = lambda high: torch.from_numpy(rng.integers(0, high, n))  # noqa: E731
    return Batch(draw(N_USERS), draw(N_ITEMS), draw(N_ITEMS))


def test_nodes_of_a_batch_and_their_rows_by_hand() -> None:
    batch = Batch(torch.tensor([1, 0]), torch.tensor([2, 2]), torch.tensor([0, 1]))
    nodes = batch.nodes(N_USERS)
    assert nodes.tolist() == [1, 0, 8, 8, 6, 7]
    user, positive, negative = batch.split(nodes[:, None])
    assert (user.tolist(), positive.tolist(), negative.tolist()) == ([[1], [0]], [[8], [8]], [[6], [7]])


def of_everything(rows: Rows, n: int) -> Tensor:
    """A loss that takes every way to the rows, each in its own measure."""
    return (
        rows.readout.square().sum()
        + 2 * rows.ego.sin().sum()
        + 3 * rows.of_ego(lambda ego: ego.exp()).sum()
        + 5 * (rows.of_item_ego(lambda ego: ego.cos(), n) * torch.arange(2 * n)[:, None]).sum()
        + 7 * (rows.margins(n) * torch.arange(n)).sum()
        + 11 * rows.half_squares(2 * n)
    )


@given(
    seed=st.integers(0, 9999),
    n=st.integers(1, 9),
    whole_from=st.sampled_from([0.0, 0.6, 2.0]),
    round_to=st.integers(1, 4),
)
def test_distinct_rows_are_the_repeated_ones_in_value_and_gradient(
    seed: int, n: int, whole_from: float, round_to: int
) -> None:
    rng = np.random.default_rng(seed)
    graph = BipartiteGraph.from_pairs(random_pairs(rng, N_USERS, N_ITEMS), N_USERS, N_ITEMS)
    nodes = some_batch(rng, n).nodes(N_USERS)
    final, ego = torch.from_numpy(rng.normal(size=(2, N_NODES, 3)))
    selection = Selection(graph, nodes, round_to, whole_from)
    tiles = [tile[selection.nodes] for tile in ego.split(2, dim=1)]
    found = GatheredRows(selection, nodes, final[selection.nodes], tiles)
    leaves = final.clone().requires_grad_(), ego.clone().requires_grad_()
    expected = of_everything(Rows(*(leaf[nodes] for leaf in leaves)), n)
    total = of_everything(found, n)
    torch.testing.assert_close(total, expected)
    total.backward()
    expected.backward()
    by_final, by_ego = (leaf.grad for leaf in leaves)
    assert by_final is not None
    assert by_ego is not None
    propagation = Propagation(graph, 0)  # without layers, what reaches the read-out reaches the table
    propagation.set_weights([])
    for number, columns in enumerate((slice(0, 2), slice(2, 3))):
        torch.testing.assert_close(found.by_ego(number), by_ego[selection.nodes][:, columns])
        gradient = found.tile_gradient(propagation, number, columns)
        torch.testing.assert_close(gradient, (by_final + by_ego)[:, columns])


def test_a_whole_table_collects_its_gradient_and_that_of_layer_0() -> None:
    rng = np.random.default_rng(1)
    graph = BipartiteGraph.from_pairs(random_pairs(rng, N_USERS, N_ITEMS), N_USERS, N_ITEMS)
    nodes = some_batch(rng, 4).nodes(N_USERS)
    selection = Selection(graph, nodes, 1, 2.0)
    start = torch.from_numpy(rng.normal(size=(N_NODES, 3)))
    table, twin = (start.clone().requires_grad_() for _ in range(2))
    readout = table.tanh().cumsum(0)[selection.nodes]  # every row hears of those before it
    rows = TableRows(selection, nodes, readout, table, list(start[selection.nodes].split(2, dim=1)))
    (of_everything(rows, 4) + table[0].sum()).backward()
    expected = of_everything(Rows(twin.tanh().cumsum(0)[nodes], twin[nodes]), 4) + twin[0].sum()
    expected.backward()
    assert twin.grad is not None
    for number, columns in enumerate((slice(0, 2), slice(2, 3))):
        found = rows.tile_gradient(Propagation(graph, 0), number, columns)
        torch.testing.assert_close(found, twin.grad[:, columns])


def test_what_a_loss_does_not_ask_for_has_no_gradient(toy_graph: BipartiteGraph) -> None:
    nodes = torch.tensor([0, 2, 4])
    rows = GatheredRows(Selection(toy_graph, nodes, 1, 2.0), nodes, torch.ones(3, 2), [torch.ones(3, 2)])
    rows.readout.sum().backward()
    assert rows.by_ego(0).tolist() == [[0.0, 0.0]] * 3
