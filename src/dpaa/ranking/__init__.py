"""Conversion of scores to lists: masks, candidates, cold users, quotas, the popularity dial and re-rankers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpaa.plugins import on_first_use
from dpaa.ranking.registry import RERANKERS

if TYPE_CHECKING:
    from dpaa.ranking.rank import ColdUsers, RankedBlock, Ranker, rank
    from dpaa.ranking.reranker import Candidates, Dial, Reranker

__all__ = ["RERANKERS", "Candidates", "ColdUsers", "Dial", "RankedBlock", "Ranker", "Reranker", "rank"]
_HOME = dict.fromkeys(("Candidates", "Dial", "Reranker"), "dpaa.ranking.reranker")
__getattr__ = on_first_use(__name__, dict.fromkeys(__all__[1:], "dpaa.ranking.rank") | _HOME)
"""Imported on first use, since these bring torch."""
