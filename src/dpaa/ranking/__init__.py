"""Scores become lists, in one place: masks, candidates, cold users, quotas, the popularity dial and re-rankers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpaa.ranking.registry import RERANKERS

if TYPE_CHECKING:
    from dpaa.ranking.rank import ColdUsers, RankedBlock, Ranker, rank
    from dpaa.ranking.reranker import Candidates, Dial, Reranker

__all__ = ["RERANKERS", "Candidates", "ColdUsers", "Dial", "RankedBlock", "Ranker", "Reranker", "rank"]


def __getattr__(name: str) -> Any:
    """Import on first use, since these bring torch."""
    if name not in __all__:
        raise AttributeError(f"module 'dpaa.ranking' has no attribute {name!r}")
    home = "reranker" if name in ("Candidates", "Dial", "Reranker") else "rank"
    return getattr(import_module(f"dpaa.ranking.{home}"), name)
