"""LightGCN and what every graph method inherits from it, against dense definitions and numbers by hand."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from dpaa import InputError, LightGCN
from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Histories, attach
from dpaa.training.trainer import Trainer
from tests.methods import reference_lightgcn
from tests.methods.tools import TOY_EGO, ego_of, readout_of, some_graph, started


@pytest.mark.parametrize(
    ("layers", "expected"), [(1, [2.6642, 2.0607, 2.4571, 2.3536, 2.5]), (2, [2.2618, 1.8250, 2.8595, 2.5893, 1.6667])]
)
def test_toy_readout(toy_graph: BipartiteGraph, layers: int, expected: list[float]) -> None:
    method = started(LightGCN, toy_graph, embedding_size=1, layers=layers)
    method.tables.ego.copy_(TOY_EGO)
    np.testing.assert_allclose(readout_of(method)[:, 0], expected, atol=1e-4)


def test_fold_in_is_one_aggregation_over_the_item_vectors() -> None:
    """A new user with user u's history gets u's read-out without layer 0; item order and repeats of users aside."""
    graph = some_graph()
    method = started(LightGCN, graph, embedding_size=10, layers=1)
    method.finish()
    user = int(graph.edge_user[0])
    items = graph.edge_item[graph.edge_user == user].numpy()
    new = method.vectors(None, Histories(Pairs.of(np.zeros(len(items)), items[::-1].copy()), 1))
    own = method.user_embedding[user] - ego_of(method)[user] / 2
    torch.testing.assert_close(new.queries(torch.tensor([0]))[0], own, rtol=1e-5, atol=1e-6)


def test_without_layers_a_new_user_cannot_be_scored() -> None:
    method = started(LightGCN, some_graph(), embedding_size=4, layers=0)
    method.finish()
    with pytest.raises(InputError, match="layers=0 cannot score users unseen in training; train with layers >= 1"):
        method.scorer(None, Histories(Pairs.of([0], [0]), 1))


@pytest.mark.parametrize(("count", "size", "batches"), [(1000, 2048, 1), (5_000_000, 10_000, 500)])
def test_automatic_batch_size_keeps_the_number_of_batches(count: int, size: int, batches: int) -> None:
    """Interactions of a pair count as often as they occurred."""
    graph = BipartiteGraph.from_pairs(Pairs.of([0], [0], [count]), 1, 2)
    compute = attach(LightGCN(batch_size="auto"), graph).compute
    assert (compute.batch_size, compute.n_batches) == (size, batches)


PAGE = Path(__file__).parents[2] / "docs" / "lightgcn.md"


@pytest.mark.parametrize(("layers", "kernel"), [(3, "bag"), (1, "csr"), (0, "wide-bag")])
def test_three_epochs_give_the_same_tables(layers: int, kernel: str) -> None:
    graph = some_graph()
    size = {"layers": layers, "embedding_size": 40, "l2": 0.01}
    fast = started(LightGCN, graph, **size, kernel=kernel, batch_size=16, epochs=3, seed=5)
    slow = reference_lightgcn.ReferenceLightGCN(  # type: ignore[no-untyped-call]
        graph.edge_user.long(), graph.edge_item.long(), graph.n_users, graph.n_items, **size
    )
    slow.table.data.copy_(fast.tables.ego.rows())
    before = fast.tables.ego.rows()

    def batches(epoch: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        for batch in fast.batches(epoch):
            yield batch.users, batch.positive, batch.negative

    reference_lightgcn.train(slow, batches, epochs=3)  # type: ignore[no-untyped-call]
    Trainer(fast).run()
    torch.testing.assert_close(fast.tables.ego.rows(), slow.table.detach(), rtol=0, atol=1e-5)
    readout = torch.cat([fast.user_embedding, fast.item_embedding])
    torch.testing.assert_close(readout, slow.readout().detach(), rtol=0, atol=1e-5)
    assert (fast.tables.ego.rows() - before).abs().max() > 1e-3, "something was trained"


def test_the_documentation_prints_the_tested_code() -> None:
    code = Path(reference_lightgcn.__file__).read_text(encoding="utf-8")
    assert f"```python\n{code}```" in PAGE.read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 45
