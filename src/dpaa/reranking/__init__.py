"""Scores of candidates become a list: what is changed between scoring and the cut at k."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpaa.reranking.registry import RERANKERS

if TYPE_CHECKING:
    from dpaa.reranking.base import Candidates, Dial, Reranker

__all__ = ["RERANKERS", "Candidates", "Dial", "Reranker"]


def __getattr__(name: str) -> Any:
    """Imported when first used, since they bring torch."""
    if name not in __all__:
        raise AttributeError(f"module 'dpaa.reranking' has no attribute {name!r}")
    return getattr(import_module("dpaa.reranking.base"), name)
