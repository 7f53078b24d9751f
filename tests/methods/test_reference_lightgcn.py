"""The fast LightGCN trains to the tables of a readable one, which the documentation prints."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from dpaa.methods.lightgcn import LightGCN
from dpaa.training.trainer import Trainer
from tests.methods import reference_lightgcn
from tests.methods.tools import some_graph, started

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
