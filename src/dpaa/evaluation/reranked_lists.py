"""Anybody's recommendations through a re-ranker: lists in, shorter lists out, nothing trained and no model needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from dpaa._text import counted
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.recommendations import NO_ITEM, Recommendations, read_recommendations
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.reranking.base import Candidates, Reranker

BLOCK_PLACES = 4_000_000
"""Places of lists that are worked on at once."""


@dataclass(frozen=True, eq=False)
class RerankedLists:
    """New lists of a recommendation file's users, to be had a block at a time."""

    base: Recommendations
    blocks: Iterator[pl.DataFrame]
    """`user_id, item_id, score, rank`."""
    schema: dict[str, Any]
    notes: list[str]


def rerank_file(path: str | Path | Any, data: Dataset, reranker: Reranker, k: int = 20) -> RerankedLists:
    """Re-rank a recommendation file (or frame); popularity and histories are those of the training split.

    All of a user's list are candidates, as far as the re-ranker looks (`depth`); scores in the result are those that
    the re-ranker gives, the file's own where it only chooses.
    """
    k = need_whole(k, "k")
    if type(reranker).scorer is not Reranker.scorer:
        raise InputError(
            f"re-ranker {reranker.name} needs the scores of all items, which a file does not have; name a run instead"
        )
    base = read_recommendations(path, data.user_ids, data.item_ids, with_scores=True)
    notes, width = list(base.notes), base.items.shape[1]
    assert base.scores is not None
    if ((base.items == NO_ITEM) & (base.scores > -np.inf)).any():
        notes.append("items that are not in the data are left out of the new lists")
        base = known_items_only(base)
    if width <= k:
        notes.append(
            f"the lists of {base.name} have at most {counted(width, 'place', 'places')}: of lists of {k} only the "
            "order can change; recommend more items to choose from, 100 say"
        )
    schema = {
        Column.USER: data.user_ids.dtype,
        Column.ITEM: data.item_ids.dtype,
        "score": pl.Float32(),
        "rank": pl.Int32(),
    }
    return RerankedLists(base, _blocks(base, data, reranker, min(k, width)), schema, notes)


def known_items_only(base: Recommendations) -> Recommendations:
    """Without the places of items that the dataset does not know: what follows moves up."""
    assert base.scores is not None
    last = (base.items == NO_ITEM).argsort(axis=1, kind="stable")
    items = np.take_along_axis(base.items, last, axis=1)
    scores = np.where(items == NO_ITEM, -np.inf, np.take_along_axis(base.scores, last, axis=1))
    return replace(base, items=items, scores=scores)


def _blocks(base: Recommendations, data: Dataset, reranker: Reranker, k: int) -> Iterator[pl.DataFrame]:
    assert base.scores is not None
    about = Candidates(BipartiteGraph.from_pairs(data.train, data.n_users, data.n_items), None)
    step = max(1, BLOCK_PLACES // base.items.shape[1])
    for first in range(0, len(base.users), step):
        part = slice(first, first + step)
        items, scores = (torch.from_numpy(table[part]) for table in (base.items.astype(np.int64), base.scores))
        users = torch.from_numpy(base.users[part].astype(np.int64))
        with torch.no_grad():
            values, places = reranker.rerank_lists(scores, items, users, k, about)
        chosen = torch.where(places < 0, NO_ITEM, items.gather(1, places.clamp(min=0)))
        yield _frame(data, base.users[part], chosen.numpy(), values.float().numpy())


def _frame(data: Dataset, users: NDArray[Any], items: NDArray[Any], scores: NDArray[Any]) -> pl.DataFrame:
    n, k = items.shape
    there = (items >= 0).ravel()
    return pl.DataFrame(
        [
            data.user_ids.gather(np.repeat(users, k)[there]).alias(Column.USER),
            data.item_ids.gather(items.ravel()[there]).alias(Column.ITEM),
            pl.Series("score", scores.ravel()[there]),
            pl.Series("rank", np.tile(np.arange(1, k + 1, dtype=np.int32), n)[there]),
        ]
    )
