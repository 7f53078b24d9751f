"""What a method changes is what its docstring says it changes, and nothing of the machinery."""

from __future__ import annotations

import re
from types import FunctionType

import pytest
import torch

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods import METHODS
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.base import Method
from dpaa.methods.hooks import Hooks
from dpaa.methods.lightgcn import LightGCN
from tests.methods.tools import some_graph, started

NOT_HOOKS = {"make_embeddings", "readout_vectors", "l2_term", "tensors", "load_tensors"}
"""What the hooks know of the machinery, and what follows from `saved_shapes`."""
HOOKS = {
    name
    for kind in (Method, Hooks)
    for name, member in vars(kind).items()
    if not name.startswith("_") and isinstance(member, FunctionType | property) and name not in NOT_HOOKS
}
on_the_graph = pytest.mark.parametrize("name", [name for name in METHODS if issubclass(METHODS[name], GraphMethod)])


@on_the_graph
def test_the_docstring_says_all_that_a_method_changes(name: str) -> None:
    kind = METHODS[name]
    assert kind.__doc__
    told = set(re.findall(r"`(\w+)`", kind.__doc__.partition("Changes:")[2]))
    assert "Changes:" in kind.__doc__
    assert told == {member for member in vars(kind) if member in HOOKS}


@on_the_graph
def test_no_method_overrides_the_machinery(name: str) -> None:
    machinery = {member for member, value in vars(GraphMethod).items() if callable(value) and member[0] != "_"} - HOOKS
    assert not machinery & set(vars(METHODS[name]))


def test_the_hook_set_is_small() -> None:
    own = {name for name in HOOKS if name in vars(Hooks)}
    assert len(own) <= 20, sorted(own)


class ByAutograd(GraphMethod):
    """LightGCN by automatic differentiation.  Changes: nothing but how gradients come about."""

    name = "by-autograd"
    title = "LightGCN by automatic differentiation"
    uses_whole_table = True


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_both_ways_from_table_to_gradient_agree(layers: int) -> None:
    graph: BipartiteGraph = some_graph()
    slow, fast = (started(kind, graph, embedding_size=8, layers=layers, l2=0.01) for kind in (ByAutograd, LightGCN))
    batch = next(fast.batches(1))
    gradients = []
    for method in (slow, fast):
        rows = method.forward(batch)
        method.loss(batch, rows).backward()
        gradients.append(torch.cat([method.tile_gradient(rows, tile) for tile in range(len(method.ego.tiles))], dim=1))
        method.finish()
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(slow.user_embedding, fast.user_embedding)
    torch.testing.assert_close(slow.item_message, fast.item_message)
