"""Graph in, scores out: one small file per method; `registry` has the only list of their names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpaa.methods.registry import METHODS, find_method

if TYPE_CHECKING:
    from dpaa.methods.base import Method
    from dpaa.methods.graph_method import GraphMethod

__all__ = ["METHODS", "GraphMethod", "Method", "find_method"]

_HOME = {"GraphMethod": "dpaa.methods.graph_method", "Method": "dpaa.methods.base"}


def __getattr__(name: str) -> Any:
    """The base classes that a plug-in derives from; imported when first used, since they bring torch."""
    if name not in _HOME:
        raise AttributeError(f"module 'dpaa.methods' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
