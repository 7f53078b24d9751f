"""What a method changes is what its docstring says it changes, and nothing of the machinery."""

from __future__ import annotations

import re
from types import FunctionType

import pytest
from dpaa.methods.hooks import Hooks

from dpaa.methods import METHODS
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.weighted_messages import WeightedMessages

NOT_HOOKS = {"make_embeddings", "readout_vectors", "triples", "l2_term", "tensors", "load_tensors"}
"""What the hooks know of the machinery, and what follows from `saved_shapes`."""
HOOKS = {
    name
    for kind in (Method, Hooks)
    for name, member in vars(kind).items()
    if not name.startswith("_") and isinstance(member, FunctionType | property) and name not in NOT_HOOKS
}
SHARED = (WeightedMessages,)
"""Backbones between `GraphMethod` and methods: what several of them offer."""
on_the_graph = pytest.mark.parametrize("name", [name for name in METHODS if issubclass(METHODS[name], GraphMethod)])


@on_the_graph
def test_the_docstring_says_all_that_a_method_changes(name: str) -> None:
    kind = METHODS[name]
    shared = {base.__name__ for base in kind.__bases__ if base in SHARED}
    assert told_of(kind) == {member for member in vars(kind) if member in HOOKS} | shared


def told_of(kind: type) -> set[str]:
    """What a docstring says that a class changes."""
    assert kind.__doc__
    assert "Changes:" in kind.__doc__
    return set(re.findall(r"`(\w+)`", kind.__doc__.partition("Changes:")[2]))


@pytest.mark.parametrize("kind", SHARED)
def test_what_methods_share_is_no_method_and_says_what_it_changes(kind: type[GraphMethod]) -> None:
    assert told_of(kind) == {member for member in vars(kind) if member in HOOKS}
    assert not machinery() & set(vars(kind))
    assert not hasattr(kind, "name")


@on_the_graph
def test_methods_derive_from_no_other_method(name: str) -> None:
    """But for a preset, which changes nothing."""
    kind = METHODS[name]
    others = {other.name for other in kind.__mro__[1:] if issubclass(other, GraphMethod) and hasattr(other, "name")}
    assert not others or not told_of(kind)


@on_the_graph
def test_no_method_overrides_the_machinery(name: str) -> None:
    assert not machinery() & set(vars(METHODS[name]))


def machinery() -> set[str]:
    return {member for member, value in vars(GraphMethod).items() if callable(value) and member[0] != "_"} - HOOKS


def test_the_hook_set_is_small() -> None:
    own = {name for name in HOOKS if name in vars(Hooks)}
    assert len(own) <= 21, sorted(own)
