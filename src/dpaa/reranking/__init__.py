"""Scores of candidates become a list: what is changed between scoring and the cut at k."""

from __future__ import annotations

from dpaa.reranking.base import RERANKERS, Candidates, Dial, Reranker

__all__ = ["RERANKERS", "Candidates", "Dial", "Reranker"]
