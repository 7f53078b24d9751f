from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.kernels import KERNELS
from dpaa.graph.propagation import Propagation, Selection
from dpaa.graph.tiles import Columns, TiledTable, Workers, unit_sums
from dpaa.methods._options import TILE_COLUMNS
from dpaa.training import distributed
from dpaa.training.distributed import split_columns
from tests.conftest import random_pairs
from tests.graph import reference
from tests.threads import in_threads


def dense_matrices(graph: BipartiteGraph, weights: list[EdgeWeights]) -> list[np.ndarray]:
    user, item = graph.edge_user.numpy(), graph.edge_item.numpy()
    return [
        reference.adjacency(
            graph.n_users, graph.n_items, user, item, layer.to_user.double().numpy(), layer.back.double().numpy()
        )
        for layer in weights
    ]


def random_weights(graph: BipartiteGraph, layers: int, seed: int, symmetric: bool, dtype: Any) -> list[EdgeWeights]:
    generator = torch.Generator().manual_seed(seed)
    draw = lambda: torch.randn(graph.n_edges, generator=generator, dtype=dtype)  # noqa: E731
    return [EdgeWeights(draw(), None if symmetric else draw()) for _ in range(layers)]


@given(
    seed=st.integers(0, 2**31),
    shape=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    layers=st.integers(0, 4),
    columns=st.integers(1, 70),
    symmetric=st.booleans(),
    residual=st.sampled_from([0.0, 0.3]),
    kernel=st.sampled_from(sorted(KERNELS)),
    threads=st.integers(1, 3),
)
def test_readout_and_layers_equal_the_dense_reference(
    seed: int,
    shape: tuple[int, int],
    layers: int,
    columns: int,
    symmetric: bool,
    residual: float,
    kernel: str,
    threads: int,
) -> None:
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(seed), *shape), *shape)
    weights = random_weights(graph, layers, seed, symmetric, torch.float64)
    ego = torch.randn(graph.n_nodes, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    propagation = Propagation(graph, layers, kernel, Workers(threads), residual)
    propagation.set_weights(weights)
    table = TiledTable.from_dense(ego, TILE_COLUMNS[kernel])
    found = torch.cat(propagation.dense_readout(table))
    matrices = dense_matrices(graph, weights)
    expected_readout = reference.readout(matrices, ego.numpy(), residual)
    np.testing.assert_allclose(found.numpy(), expected_readout, atol=1e-9)
    for some in (torch.tensor([0]), torch.tensor([graph.n_nodes - 1, 0]), torch.arange(graph.n_nodes).repeat(3)):
        nodes = some.unique()
        readout, first = propagation.rows_of(table, Selection(graph, some, round_to=1, whole_from=2.0))
        np.testing.assert_allclose(readout.numpy(), expected_readout[nodes.numpy()], atol=1e-9)
        assert torch.equal(torch.cat(first, dim=1), ego[nodes])
    for layer, expected in zip(
        propagation.layers(table), reference.layers(matrices, ego.numpy(), residual), strict=True
    ):
        np.testing.assert_allclose(layer.rows().numpy(), expected, atol=1e-9)


class _Readout(torch.autograd.Function):
    """The hand-written pair of forward and backward, as autograd sees it."""

    @staticmethod
    def forward(ctx: Any, ego: Tensor, propagation: Propagation, width: int) -> Tensor:
        ctx.propagation, ctx.width = propagation, width
        table = TiledTable.from_dense(ego.detach(), width)
        return torch.cat(propagation.dense_readout(table))

    @staticmethod
    def backward(ctx: Any, by_readout: Tensor) -> tuple[Tensor, None, None]:
        everything = Selection(ctx.propagation.graph, torch.arange(ctx.propagation.graph.n_nodes))
        found = [gradient(ctx.propagation, everything, tile) for tile in torch.split(by_readout, ctx.width, dim=1)]
        return torch.cat(found, dim=1), None, None


def gradient(propagation: Propagation, selection: Selection, by_readout: Tensor) -> Tensor:
    nothing = torch.zeros_like(by_readout)
    return propagation.gradient_tile(selection, by_readout, nothing)


@pytest.mark.parametrize(("symmetric", "residual", "layers"), [(True, 0.0, 3), (False, 0.4, 3), (False, 0.4, 0)])
def test_gradient_passes_gradcheck_for_any_weights(symmetric: bool, residual: float, layers: int) -> None:
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(3), 5, 4), 5, 4)
    propagation = Propagation(graph, layers, "bag", Workers(1), residual)
    propagation.set_weights(random_weights(graph, layers, 5, symmetric, torch.float64))
    ego = torch.randn(graph.n_nodes, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda table: _Readout.apply(table, propagation, 2), ego)


@pytest.mark.parametrize(("layers", "residual", "threads"), [(0, 0.0, 1), (1, 0.4, 2), (3, 0.4, 1), (3, 0.0, 2)])
def test_a_selection_of_all_nodes_gives_the_bits_of_one_of_some(layers: int, residual: float, threads: int) -> None:
    """Whole tables or gathered rows: a batch's share of the nodes changes no digit, and nothing is overwritten."""
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(3), 12, 9), 12, 9)
    propagation = Propagation(graph, layers, "bag", Workers(threads), residual)
    propagation.set_weights(random_weights(graph, layers, 5, False, torch.float32))
    ego, before = TiledTable.from_dense(torch.randn(21, 10), 4), graph.neighbours.clone()
    table, asked = ego.rows(), torch.tensor([3, 20, 3, 0, 14])
    some, whole = Selection(graph, asked, 1, 2.0), Selection(graph, asked, whole_from=0.0)
    assert (some.whole, whole.whole) == (False, True)
    index = whole.index.long()[some.nodes]
    for few, all_ in zip(flat(propagation.rows_of(ego, some)), flat(propagation.rows_of(ego, whole)), strict=True):
        assert torch.equal(few, all_[index])
    by_rows, by_ego = torch.randn(2, len(some), 4)
    of_all = [torch.zeros(21, 4).index_copy_(0, some.nodes, rows) for rows in (by_rows, by_ego)]
    for _ in range(2):  # one after the other, with the same buffers
        found = propagation.gradient_tile(whole, *of_all)
        assert torch.equal(propagation.gradient_tile(some, by_rows, by_ego), found)
    assert torch.equal(ego.rows(), table)
    assert torch.equal(graph.neighbours, before)


def flat(rows: tuple[Tensor, list[Tensor]]) -> list[Tensor]:
    return [rows[0], *rows[1]]


def some_nodes(seed: int) -> tuple[BipartiteGraph, Selection, torch.Tensor]:
    rng = np.random.default_rng(seed)
    graph = BipartiteGraph.from_pairs(random_pairs(rng, 9, 7, 0.4), 9, 7)
    nodes = torch.from_numpy(rng.integers(0, graph.n_nodes, rng.integers(1, 30)))
    return graph, Selection(graph, nodes, round_to=1, whole_from=2.0), nodes


@given(seed=st.integers(0, 10_000), round_to=st.integers(2, 40))
def test_a_round_number_of_nodes_holds_those_asked_for(seed: int, round_to: int) -> None:
    graph, exact, nodes = some_nodes(seed)
    selection = Selection(graph, nodes, round_to, whole_from=2.0)
    assert len(selection) == min(-(-len(exact) // round_to) * round_to, graph.n_nodes)
    assert torch.equal(selection.nodes, selection.nodes.unique())
    assert torch.equal(selection.nodes[selection.index[nodes].long()], nodes)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@given(seed=st.integers(0, 10_000), n_tiles=st.sampled_from([0, 1, 2, 8, 1000]))
def test_rows_are_those_of_the_whole_product_whether_cut_or_not(kernel: str, seed: int, n_tiles: int) -> None:
    graph, selection, _ = some_nodes(seed)
    multiply = KERNELS[kernel]
    values, table = torch.randn(2 * graph.n_edges), torch.randn(graph.n_nodes, 3)
    whole = multiply(graph.indptr, graph.neighbours, values, table)
    found = torch.full((len(selection), 3), torch.nan)
    for block in selection.rows(n_tiles):
        rows = multiply(block.indptr, block.neighbours, block.values(values), table)
        found[block.part] = rows if block.wanted is None else rows[block.wanted]
    torch.testing.assert_close(found, whole[selection.nodes])


def random_rows(n: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, columns, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("size", "count"), [(64, 2), (256, 4), (50, 3)])
def test_sums_and_whole_rows_over_processes(size: int, count: int) -> None:
    rows, weight = random_rows(7, size), random_rows(7, size, 1)
    alone = Columns(size).sum(unit_sums(rows))
    seen = []

    def work(_rank: int) -> None:
        columns = split_columns(size, distributed.peers())
        own = columns.cut(rows).clone().requires_grad_()
        total = columns.sum(unit_sums(own.detach()))
        whole = columns.whole(own)
        (whole * weight).sum().backward()  # type: ignore[no-untyped-call]
        collected = columns.to_leader(own.detach())
        seen.append(
            torch.equal(total, alone)
            and torch.equal(whole, rows)
            and torch.equal(own.grad, columns.cut(weight))
            and torch.equal(collected, rows if columns.leads else torch.empty(0))
        )

    sent = in_threads(count, work).sent
    assert seen == [True] * count
    if (size, count) != (50, 3):
        assert sent[0] == 7 * 4, "who holds an aligned block of columns sends one number a row"
