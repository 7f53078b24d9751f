"""Adam tile by tile against torch's own, and its state."""

import pytest
import torch
from torch import Tensor

from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.macr import MACR
from dpaa.methods.tables import Rows
from dpaa.training.trainer import TiledAdam
from tests.methods.tools import some_graph, started

CHOSEN = {"embedding_size": 40, "layers": 2, "batch_size": 16, "learning_rate": 0.01, "kernel": "bag", "seed": 5}


def steps(method: LightGCN, adam: TiledAdam, epoch: int) -> list[tuple[Tensor, list[Tensor]]]:
    """An epoch; the gradients of every step, in the table and in the parameters."""
    gradients = []
    for batch in method.batches(epoch):
        rows: Rows = method.tables.forward(batch)
        method.loss(batch, rows).backward()
        tiles = [method.tables.tile_gradient(rows, tile).clone() for tile in range(len(method.tables.ego.tiles))]
        own = [parameter.grad.clone() for parameter in method.tables.parameters.values() if parameter.grad is not None]
        gradients.append((torch.cat(tiles, dim=1), own))
        adam.step(rows, 0.01)
    return gradients


@pytest.mark.parametrize("kind", [LightGCN, MACR])
def test_every_step_is_that_of_torch(kind: type[LightGCN]) -> None:
    """Two tiles of columns, with and without parameters besides the table."""
    method = started(kind, some_graph(), **CHOSEN)
    assert len(method.tables.ego.tiles) == 2
    twins = [tensor.detach().clone() for tensor in (method.tables.ego.rows(), *method.tables.parameters.values())]
    gradients = steps(method, TiledAdam(method.tables), epoch=1)
    assert len(gradients) > 2
    slow = torch.optim.Adam(twins, lr=0.01)
    for by_table, own in gradients:
        assert len(own) == len(method.tables.parameters)
        for twin, gradient in zip(twins, (by_table, *own), strict=True):
            twin.grad = gradient
        slow.step()
    for found, twin in zip((method.tables.ego.rows(), *method.tables.parameters.values()), twins, strict=True):
        torch.testing.assert_close(found.detach(), twin, rtol=1e-5, atol=1e-6)
    assert all(parameter.grad is None for parameter in method.tables.parameters.values())


def test_a_state_taken_back_goes_on_to_the_same_bits() -> None:
    graph = some_graph()
    method, other = (started(MACR, graph, **CHOSEN) for _ in range(2))
    adam, again = TiledAdam(method.tables), TiledAdam(other.tables)
    steps(method, adam, epoch=1)
    other.tables.restore(method.tables.snapshot())
    again.load_state({name: tensor.clone() for name, tensor in adam.state().items()})
    fresh = started(MACR, graph, **CHOSEN)
    fresh.tables.restore(method.tables.snapshot())
    steps(method, adam, epoch=2)
    steps(other, again, epoch=2)
    steps(fresh, TiledAdam(fresh.tables), epoch=2)
    for name, tensor in method.tables.snapshot().items():
        assert torch.equal(other.tables.snapshot()[name], tensor), name
    assert not torch.equal(fresh.tables.snapshot()["ego"], method.tables.snapshot()["ego"]), "the moments matter"
