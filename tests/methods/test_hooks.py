"""What a method changes is what its docstring says it changes, and nothing of the machinery."""

from __future__ import annotations

import re
from types import FunctionType

import pytest

from dpaa.methods import METHODS
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.base import Method
from dpaa.methods.hooks import Hooks

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
