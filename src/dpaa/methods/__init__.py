"""Graph in, scores out: one small file per method; `registry` has the only list of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpaa.methods.registry import METHODS, find_method
from dpaa.plugins import on_first_use

if TYPE_CHECKING:
    from dpaa.methods.base import Method
    from dpaa.methods.graph_method import GraphMethod

__all__ = ["METHODS", "GraphMethod", "Method", "find_method"]
__getattr__ = on_first_use(__name__, {"GraphMethod": "dpaa.methods.graph_method", "Method": "dpaa.methods.base"})
"""The base classes that a plug-in derives from; imported when first used, since they bring torch."""
