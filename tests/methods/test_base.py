"""What every method answers: what is saved of it, and how it comes back."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Method
from dpaa.methods.settings import Settings


class WidthSettings(Settings):
    width: int = 4


class Parent(Method):
    name = "parent"
    title = "a table"
    settings_type = WidthSettings
    saved = {"table": ("items", "width"), "bias": ("users",)}  # noqa: RUF012

    def scorer(self, items: Any = None, histories: Any = None) -> Any:
        return lambda index: torch.zeros(len(index), self.graph.n_items)


class Child(Parent):
    name = "child"
    saved = {"bias": ("users", 2), "strength": ()}  # noqa: RUF012


def test_shapes_are_inherited_and_may_be_declared_anew(toy_graph: BipartiteGraph) -> None:
    assert Parent(toy_graph, WidthSettings()).saved_shapes() == {"table": (3, 4), "bias": (2,)}
    child = Child(toy_graph, WidthSettings(width=7))
    assert child.saved_shapes() == {"table": (3, 7), "bias": (2, 2), "strength": ()}


def test_tensors_come_back_as_copies_and_a_number_as_a_number(toy_graph: BipartiteGraph) -> None:
    child = Child(toy_graph, WidthSettings())
    child.table, child.bias, child.strength = torch.rand(3, 4).double(), torch.rand(2, 2), 0.25  # type: ignore[attr-defined]
    kept = child.tensors()
    assert {tensor.dtype for tensor in kept.values()} == {torch.float32}
    assert {name: tuple(tensor.shape) for name, tensor in kept.items()} == child.saved_shapes()
    other: Any = Child(toy_graph, WidthSettings())
    other.load_tensors(kept)
    assert (other.strength, type(other.strength)) == (0.25, float)
    before: Tensor = kept["table"].clone()
    kept["table"].zero_()
    assert torch.equal(other.table, before)


def test_settings_know_the_method_that_declared_them() -> None:
    assert WidthSettings.method_type is Parent, "a child with its parent's settings takes nothing from it"


def test_a_method_without_an_answer_says_so(toy_graph: BipartiteGraph) -> None:
    method = Parent(toy_graph, WidthSettings())
    with pytest.raises(NotImplementedError, match="parent is trained in epochs"):
        method.fit()
    assert (method.vectors(), method.item_vectors(), method.pretrained_layers()) == (None, None, None)
    assert (method.popularity_dial, method.message_weights()) == (0.0, [])
    with pytest.raises(TypeError, match="abstract"):
        Method(toy_graph, Settings())  # type: ignore[abstract]
