"""Recommendations of any system: a table of `user_id, item_id[, score][, rank]` becomes lists of item indices.

The order of a list is that of `rank` (the lowest is best; gaps do not matter), else of `score` (largest first, ties by
lower item index), else of the rows.  A user the dataset does not know is left out, with a note.  An item it does not
know keeps its rank: the slot holds −1, so that what follows keeps its own; it cannot be relevant, and metrics of
popularity, which know nothing about it, leave it out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from dpaa.data._values import Wanted, read_frame
from dpaa.data.dataset import Dataset
from dpaa.data.ids import IDS, Column, Floats, Ints, encode, integers_if_unchanged, is_text, kind
from dpaa.data.inputs import open_log, open_table
from dpaa.data.log import KNOWN_NAMES
from dpaa.data.shards import check_complete
from dpaa.data.tables import Table, as_table
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.bias import among
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.ranking.reranker import Candidates, Dial, Reranker

LISTS = ("items", "item_ids", "recommendations", "recs")
"""What a column of whole lists is usually called."""
NO_ITEM = -1
"""In lists: the list has ended, or an item the dataset does not know."""
BLOCK_SLOTS = 4_000_000
"""Slots of lists that are re-ranked at once."""


@dataclass(frozen=True, eq=False)
class Recommendations:
    """Lists of some users."""

    name: str
    """The file's name."""
    users: Ints
    """(n,) ascending user indices."""
    items: Ints
    """(n, k) item indices, best first; −1 where a list ends early or the dataset does not know the item."""
    notes: list[str]
    """What was left out, and what to know before believing the numbers."""
    scores: Floats | None = None
    """(n, k) scores of those items, falling along a list, −inf where it has ended; None unless read with them."""

    def for_users(self, users: Ints, k: int) -> Ints:
        """Return the lists of some users.

        Parameters
        ----------
        users : (n,) indices
        k : length of the lists

        Returns
        -------
        (n, k) item indices, −1 where a list ends early or a user has none
        """
        lists = np.full((len(users), k), NO_ITEM, dtype=self.items.dtype)
        row = np.minimum(np.searchsorted(self.users, users), len(self.users) - 1)
        listed = self.users[row] == users
        width = min(k, self.items.shape[1])
        lists[listed, :width] = self.items[row[listed], :width]
        return lists


def read_recommendations(
    path: str | Path | Any, user_ids: pl.Series, item_ids: pl.Series, k: int | None = None, with_scores: bool = False
) -> Recommendations:
    """Read recommendation lists.

    Parameters
    ----------
    path : a file (CSV, TSV, JSON lines, Parquet, list form), a folder of them or a dataframe: a row per item, or a row
        per user with a column of lists
    user_ids, item_ids : those of the dataset, ascending
    k : where lists are cut; default: nowhere
    with_scores : keep scores, for a re-ranker: those of the file, or, where it has none that fall with the rank, ranks
        from the end; items that the dataset does not know are then left out

    Returns
    -------
    Recommendations
    """
    k = None if k is None else need_whole(k, "k")
    table = _open(path) if isinstance(path, str | Path) else as_table(path, "the frame")
    table = _one_item_per_row(table)
    columns = _columns(table, with_scores)
    kinds = {role: Wanted(column, "id" if role in IDS else "exact") for role, column in columns.items()}
    frame = read_frame(table, kinds).with_row_index("row")
    frame = frame.with_columns(
        _indices(frame[Column.USER], user_ids, table, "user").alias("user"),
        _indices(frame[Column.ITEM], item_ids, table, "item").alias("item"),
    )
    _refuse_repeats(frame, table)
    unknown = (frame["user"] < 0).sum(), ((frame["user"] >= 0) & (frame["item"] < 0)).sum()
    notes = []
    if any(unknown):
        rows_of = f"{unknown[0]:,} rows of users and {unknown[1]:,} of items that are not in the data"
        also = "such items are ignored, too" if with_scores else "such items are never relevant"
        notes.append(f"{table.name}: {rows_of}; such users are left out, {also}")
    if not {"rank", "score"} & set(columns):
        notes.append(f"{table.name} has neither a rank nor a score column; the order of its rows is used")
    least = 0 if with_scores else NO_ITEM
    rows = _in_order(frame.filter((pl.col("user") >= 0) & (pl.col("item") >= least)))
    if not len(rows):
        raise InputError(f"no row of {table.name} has both a user and an item of the dataset; check the ids")
    user = rows["user"].to_numpy()
    users, row = np.unique(user, return_inverse=True)  # ascending, as `for_users` searches them
    # Within a user, whose rows are neighbours by now; ranks of the file may have gaps.
    rank = np.arange(len(user)) - np.searchsorted(user, user)
    width = int(rank.max()) + 1 if k is None else k
    kept = rank < width
    lists = np.full((len(users), width), NO_ITEM, dtype=np.int32)
    lists[row[kept], rank[kept]] = rows["item"].to_numpy()[kept]
    name = Path(path).name if isinstance(path, str | Path) else "the frame"
    if not with_scores:
        return Recommendations(name, users, lists, notes)
    score = rows["score"].cast(pl.Float64).to_numpy() if "score" in columns else None
    if score is None or ((score[1:] > score[:-1]) & (user[1:] == user[:-1])).any():
        # Scores that rise along a list contradict its order, and the order is what was shown to people.
        score = (np.bincount(row)[row] - rank).astype(np.float64)
        notes.append(f"{table.name} has no scores that decrease with the rank; ranks are used as scores")
    scores = np.full(lists.shape, -np.inf)
    scores[row[kept], rank[kept]] = score[kept]
    return Recommendations(name, users, lists, notes, scores)


def _open(path: str | Path) -> Table:
    """Open a file, or a folder of them: shards, or what Spark and Ray write."""
    if not Path(path).is_dir():
        return open_table(path)
    check_complete(Path(path))
    return open_log(path)


def _one_item_per_row(table: Table) -> Table:
    """Unfold a table of a row per user (a list, or ids with commas between) to a row per item."""
    user, lists = table.named(KNOWN_NAMES[Column.USER]), table.named(LISTS)
    if user is None or lists is None or table.named(KNOWN_NAMES[Column.ITEM]) is not None:
        return table
    items = table.read([lists]).to_series()
    items = items.str.split(",") if items.dtype == pl.String else items
    if not isinstance(items.dtype, pl.List):
        return table
    frame = read_frame(table, {Column.USER: Wanted(user, "id")}).with_columns(
        items.alias(Column.ITEM), rank=pl.int_ranges(1, items.list.len() + 1)
    )
    frame = frame.filter(pl.col(Column.ITEM).list.len() > 0).explode(Column.ITEM, "rank")
    if is_text(frame[Column.ITEM]):
        frame = frame.with_columns(integers_if_unchanged(frame[Column.ITEM].str.strip_chars()))
    return as_table(frame, table.name)


def _columns(table: Table, with_scores: bool) -> dict[str, str]:
    """Find the columns of user and item, and that of the order: rank before score; or both of them."""
    columns = {}
    for role in IDS:
        if (column := table.named(KNOWN_NAMES[role])) is None:
            raise InputError(
                f"{table.name} has no column {role!r} (it has {', '.join(map(repr, table.columns[:12]))}); rename it"
            )
        columns[role] = column
    ordering = {role: column for role in ("rank", "score") if (column := table.named((role,))) is not None}
    return columns | dict(list(ordering.items())[: 2 if with_scores else 1])


def _indices(values: pl.Series, ids: pl.Series, table: Table, what: str) -> pl.Series:
    """Index of each id of the file among the dataset's, −1 where it is not there; another type is an error."""
    given = values.cast(pl.String) if is_text(ids) and not table.typed else values  # numbers of a text file may be text
    if is_text(given) != is_text(ids):
        own = f"those of the dataset are {kind(ids)} (such as {ids[0]!r}); cast them"
        raise InputError(f"the {what}s in {table.name} are {kind(given)} (such as {given[0]!r}), {own}")
    index = encode(given, ids)
    if (index < 0).all():
        raise InputError(
            f"no {what} in {table.name} is in the dataset (it has {given[0]!r}, the dataset {ids[0]!r}); check the ids"
        )
    return pl.Series(index)


def _refuse_repeats(frame: pl.DataFrame, table: Table) -> None:
    """Refuse an item or a rank that occurs twice in a list."""
    for column in (Column.ITEM, *(["rank"] if "rank" in frame.columns else [])):
        again = frame.filter(~pl.struct(Column.USER, column).is_first_distinct())
        if len(again):
            row, user, twice = again.row(0, named=True)["row"], again[Column.USER][0], column.removesuffix("_id")
            raise InputError(
                f"{table.place(row)} has {twice} {again[column][0]!r} of user {user!r} a second time; keep one"
            )


def _in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows by user and then by rank, else by score; an unknown item, without an index, loses every tie."""
    if "rank" in frame.columns or "score" not in frame.columns:
        return frame.sort("user", "rank" if "rank" in frame.columns else "row")
    return frame.sort("user", "score", pl.col("item") < 0, "item", descending=[False, True, False, False])


def rerank_file(
    path: str | Path | Any, data: Dataset, reranker: Reranker | None, k: int = 20, *, kappa: float | None = None
) -> tuple[Iterator[pl.DataFrame], list[str]]:
    """Re-rank a recommendation file (or frame); popularity and histories are those of the training split.

    Parameters
    ----------
    path : as in `read_recommendations`; all of a user's list are candidates, as far as the re-ranker looks (`depth`)
    data : the dataset
    reranker : makes the new lists; None keeps the highest scores
    k : length of the new lists
    kappa : treat the lists like a model's: the popularity dial at κ (or 0) over their scores, and no training pair or
        item that is no candidate in the new ones; by default everything that is listed may stay

    Returns
    -------
    blocks of `user_id, item_id, score, rank`, at least one, and notes; scores are those that the re-ranker gives, the
    file's own where it only chooses
    """
    k = need_whole(k, "k")
    base = read_recommendations(path, data.user_ids, data.item_ids, with_scores=True)
    return _reranked_blocks(base, data, reranker, min(k, base.items.shape[1]), kappa), base.notes


def _reranked_blocks(
    base: Recommendations, data: Dataset, reranker: Reranker | None, k: int, kappa: float | None
) -> Iterator[pl.DataFrame]:
    assert base.scores is not None
    graph = BipartiteGraph.from_pairs(data.train, data.n_users, data.n_items, attributes=data.attributes)
    about = Candidates(graph, None)
    allowed = torch.from_numpy(among(data.n_items, data.candidates))
    together = reranker is not None and reranker.together
    step = len(base.users) if together else max(1, BLOCK_SLOTS // base.items.shape[1])
    for first in range(0, len(base.users), step):
        part = slice(first, first + step)
        items, scores = torch.from_numpy(base.items[part]).long(), torch.from_numpy(base.scores[part])
        users = torch.from_numpy(base.users[part]).long()
        with torch.no_grad():
            if kappa is not None:
                scores, items = _like_a_model(scores, items, users, kappa, about, allowed)
            values, slots = (reranker or Dial()).rerank_lists(scores, items, users, k, about)
        row, rank = np.nonzero((slots >= 0).numpy())
        chosen = items.gather(1, slots.clamp(min=0)).numpy()[row, rank]
        ids = data.user_ids.gather(base.users[part][row]), data.item_ids.gather(chosen)
        score, ranks = pl.Series(values.float().numpy()[row, rank]), pl.Series(rank + 1, dtype=pl.Int32)
        yield pl.DataFrame({Column.USER: ids[0], Column.ITEM: ids[1], "score": score, "rank": ranks})


def _like_a_model(
    scores: Tensor, items: Tensor, users: Tensor, kappa: float, about: Candidates, allowed: Tensor
) -> tuple[Tensor, Tensor]:
    """Lists with the dial at κ, then without what a model would not recommend; both sorted again."""
    width, n_items = items.shape[1], len(allowed)
    scores, slots = Dial(kappa=kappa).rerank_lists(scores, items, users, width, about)
    items = items.gather(1, slots.clamp(min=0))
    owner, taken = about.taken(users)
    keys = torch.arange(len(users))[:, None] * n_items + items
    scores = scores.masked_fill(torch.isin(keys, owner * n_items + taken) | ~allowed[items], -torch.inf)
    scores, slots = Dial().rerank_lists(scores, items, users, width, about)
    return scores, items.gather(1, slots.clamp(min=0))
