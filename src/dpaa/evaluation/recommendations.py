"""Anybody's recommendations: a table of `user_id, item_id[, score][, rank]` becomes lists of item indices.

The order of a list is that of `rank` (1 is best; gaps do not matter), else of `score` (largest first, ties by lower
item index), else of the rows.  A user the dataset does not know is left out, with a note.  An item it does not know
keeps its place: the slot holds −1, so that what follows keeps its rank; it cannot be relevant, and metrics of
popularity, which know nothing about it, leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from dpaa._machine import memory_at_hand
from dpaa._text import counted
from dpaa.data._values import Wanted, read_frame
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.ids import encode, integers_if_unchanged, is_text, kind
from dpaa.data.inputs import open_log, open_table
from dpaa.data.log import KNOWN_NAMES
from dpaa.data.shards import check_complete
from dpaa.data.tables import Table, as_table
from dpaa.errors import InputError, need_whole
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.ranking.reranker import Candidates, Reranker

Ints = NDArray[Any]


IDS = (Column.USER, Column.ITEM)
LISTS = ("items", "item_ids", "recommendations", "recs")
"""What a column of whole lists is usually called."""
NUMBERED = re.compile(r"(?:item|rec|recommendation|top)s?_?([0-9]+)")
NO_ITEM = -1
"""In lists: the list has ended, or an item the dataset does not know."""
LARGEST_RANK = 2**31
"""A user and a rank fit into one integer of 64 bits."""


@dataclass(frozen=True, eq=False)
class Recommendations:
    """Lists of some users."""

    name: str
    """The file's name."""
    users: Ints
    """(n,) ascending user indices."""
    items: Ints
    """(n, k) item indices, best first; −1 where a list ends early or the dataset does not know the item."""
    notes: list[str] = field(default_factory=list)
    """What was left out, and what to know before believing the numbers."""
    scores: NDArray[np.float64] | None = None
    """(n, k) scores of those items where they were asked for: falling along a list, −inf where it has ended."""

    def for_users(self, users: Ints, k: int | None = None) -> Ints:
        """The lists of these users (indices), (len(users), k); a user without a list has −1 everywhere."""
        width = self.items.shape[1] if k is None else k
        found = np.full((len(users), width), NO_ITEM, dtype=self.items.dtype)
        if not len(self.users):
            return found
        place = np.minimum(np.searchsorted(self.users, users), len(self.users) - 1)
        there = self.users[place] == users
        shared = min(width, self.items.shape[1])
        found[there, :shared] = self.items[place[there], :shared]
        return found


def read_recommendations(
    path: str | Path | Any, user_ids: pl.Series, item_ids: pl.Series, k: int | None = None, with_scores: bool = False
) -> Recommendations:
    """The lists in a file (CSV, TSV, Parquet, list form), a folder of them or a dataframe; `k` cuts them.

    Without `k` they are kept whole.  `user_ids` and `item_ids` are those of the dataset, ascending; a list longer than
    k is cut after k places, a shorter one is filled with −1.  Where there is a rank, scores are not looked at unless
    asked for: then those of the file, or, where it has none that fall with the rank, places in the list from n to 1.
    """
    if k is not None:
        k = need_whole(k, "k")
    table = open_recommendations(path) if isinstance(path, str | Path) else as_table(path, "the frame")
    table = _row_per_item(table)
    columns = _columns(table, with_scores)
    kinds = {role: Wanted(column, "id" if role in IDS else "exact") for role, column in columns.items()}
    try:
        frame = read_frame(table, kinds)
    except InputError as error:
        if "has no rows" in str(error):
            raise InputError(f"{table.name} has no rows; a recommendation file needs at least one") from None
        raise
    user_id, item_id = (frame[role] for role in IDS)
    rows = _Rows(
        table,
        user_id,
        item_id,
        _indices(user_id, user_ids, table, "user"),
        _indices(item_id, item_ids, table, "item"),
        _ranks(frame["rank"], columns["rank"], table) if "rank" in columns else None,
        frame["score"].to_numpy() if "score" in columns else None,
    )
    rows.check_pairs_once(len(item_ids))
    name = Path(path).name if isinstance(path, str | Path) else "the frame"
    order = rows.order()
    users, items = rows.users[order], rows.items[order]
    lists, notes = _as_lists(users, items, k, table), rows.notes()
    if not with_scores:
        return Recommendations(name, *lists, notes)
    falling, note = rows.falling_scores(order)
    return Recommendations(name, *lists, notes + note, _as_lists(users, falling, k, table, -np.inf)[1])


def open_recommendations(path: str | Path) -> Table:
    """A file, or a folder of them: shards, or what Spark and Ray write."""
    place = Path(path)
    if not place.is_dir():
        return open_table(path)
    check_complete(place)
    return open_log(place)


def _row_per_item(table: Table) -> Table:
    """The same with a row for each item, where a file has one for each user.

    Its lists are in columns `rec_1, rec_2 …`, or in one column: a list, or text with commas between the ids.
    """
    by_lower = {column.strip().lower(): column for column in reversed(table.columns)}
    user = next((by_lower[name] for name in KNOWN_NAMES[Column.USER] if name in by_lower), None)
    numbered = {int(match[1]): column for name, column in by_lower.items() if (match := NUMBERED.fullmatch(name))}
    whole = next((by_lower[name] for name in LISTS if name in by_lower), None)
    if user is None or any(name in by_lower for name in KNOWN_NAMES[Column.ITEM]) or not (numbered or whole):
        return table
    users = read_frame(table, {Column.USER: Wanted(user, "id")})[Column.USER]
    columns = [numbered[number] for number in sorted(numbered)] if numbered else [str(whole)]
    frame = table.read(columns)
    if numbered:
        lists = frame.select(pl.concat_list(pl.all()).list.drop_nulls()).to_series()
    elif frame.schema[columns[0]] == pl.String:
        lists = frame[columns[0]].str.split(",")
    else:
        lists = frame[columns[0]]
    if not isinstance(lists.dtype, pl.List):
        return table
    long = pl.DataFrame([users, lists.alias(Column.ITEM)]).with_columns(
        rank=pl.int_ranges(1, pl.col(Column.ITEM).list.len() + 1)
    )
    long = long.filter(pl.col(Column.ITEM).list.len() > 0).explode(Column.ITEM, "rank")
    if is_text(long[Column.ITEM]):
        words = long[Column.ITEM].str.strip_chars()
        long = long.with_columns(words if table.typed and numbered else integers_if_unchanged(words))
    return as_table(long, table.name)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a recommendation file; indices are −1 where the dataset does not know the user or the item."""

    table: Table
    user_id: pl.Series
    item_id: pl.Series
    users: Ints
    items: Ints
    rank: NDArray[np.int64] | None
    score: NDArray[Any] | None
    """Only where there is no rank, or where scores are asked for."""

    @cached_property
    def kept(self) -> Ints:
        """The rows of users the dataset knows."""
        return np.flatnonzero(self.users >= 0)

    def check_pairs_once(self, n_items: int) -> None:
        """Refuse a pair that is there twice; items the dataset does not know are told apart by their ids."""
        codes = self.items[self.kept].astype(np.int64)
        strange = codes < 0
        if strange.any():
            codes[strange] = n_items + self.item_id.gather(self.kept[strange]).rank("dense").to_numpy()
        keys = self.users[self.kept] * (codes.max() + 1) + codes
        self._refuse_repeats(
            keys, "{place} recommends item {item!r} to user {user!r} a second time; each pair may occur once"
        )

    def order(self) -> Ints:
        """The kept rows, by user and then by place in the list."""
        users, items = self.users[self.kept], self.items[self.kept]
        if self.rank is not None:
            ranks = self.rank[self.kept]
            # One sort of whole numbers is several times as fast as one by two columns.
            keys = users * (ranks.max() + 1) + ranks
            order = np.argsort(keys)
            self._refuse_repeats(
                keys, "{place} has rank {rank} of user {user!r} a second time; each place of a list may be taken once"
            )
        elif self.score is not None:
            # An item the dataset does not know has no index to break a tie with: it comes last.
            tie = np.where(items < 0, np.iinfo(items.dtype).max, items)
            score = self.score[self.kept]
            falling = -score if score.dtype.kind == "f" else ~score  # −x of the least integer is not one
            order = np.lexsort((tie, falling, users))
        else:
            order = np.argsort(users, kind="stable")
        return self.kept[order]

    def falling_scores(self, order: Ints) -> tuple[NDArray[np.float64], list[str]]:
        """Scores of the rows in this order; places where there are none or they contradict the ranks, with a note."""
        users = self.users[order]
        if self.score is not None:
            scores = self.score[order]
            if not ((scores[1:] > scores[:-1]) & (users[1:] == users[:-1])).any():
                return scores.astype(np.float64), []
        begin = np.flatnonzero(np.concatenate([[True], users[1:] != users[:-1]]))
        length = np.diff(begin, append=len(users))
        left = np.repeat(begin + length, length) - np.arange(len(users))
        why = "has no scores" if self.score is None else "has scores that do not fall with the rank"
        return left.astype(np.float64), [f"{self.table.name} {why}; places in the lists are taken for scores"]

    def notes(self) -> list[str]:
        """What the dataset does not know, and where the order comes from if from nowhere else."""
        notes, name = [], self.table.name
        if len(self.kept) < len(self.users):
            unknown = self.user_id.filter(pl.Series(self.users < 0))
            who = counted(unknown.n_unique(), "user is", "users are")
            notes.append(f"{name}: {who} not in the data and left out ({counted(len(unknown), 'row', 'rows')})")
        strange = self.kept[self.items[self.kept] < 0]
        if len(strange):
            what = counted(self.item_id.gather(strange).n_unique(), "item is", "items are")
            slots = counted(len(strange), "place of a list", "places of lists")
            notes.append(f"{name}: {what} not in the data; {slots}, never right and left out of popularity")
        if self.rank is None and self.score is None:
            notes.append(f"{name} has neither a rank nor a score column; the order of its rows is taken")
        return notes

    def _refuse_repeats(self, keys: Ints, sentence: str) -> None:
        """Name the row of the file where a key occurs for the second time."""
        in_order = np.sort(keys)
        again = np.flatnonzero(in_order[1:] == in_order[:-1])
        if len(again):
            row = int(self.kept[np.flatnonzero(keys == in_order[again[0]])[1]])
            named = {"user": self.user_id[row], "item": self.item_id[row]}
            rank = None if self.rank is None else self.rank[row]
            raise InputError(sentence.format(place=self.table.place(row), rank=rank, **named))


def _columns(table: Table, with_scores: bool = False) -> dict[str, str]:
    """Which column is user and item, and which one the order comes from: rank before score; or both of them."""
    by_lower = {column.strip().lower(): column for column in reversed(table.columns)}
    listed = ", ".join(repr(column) for column in table.columns[:12]) + (", …" if len(table.columns) > 12 else "")
    found = {}
    for role in (Column.USER, Column.ITEM):
        name = next((by_lower[usual] for usual in KNOWN_NAMES[role] if usual in by_lower), None)
        if name is None:
            raise InputError(
                f"{table.name} has no column {role!r} (it has {listed}); recommendations need user_id and item_id, "
                "and rank or score for their order"
            )
        found[role] = name
    ordering = [role for role in ("rank", "score") if role in by_lower]
    return found | {role: by_lower[role] for role in (ordering if with_scores else ordering[:1])}


def _indices(values: pl.Series, ids: pl.Series, table: Table, what: str) -> Ints:
    """Where each id of the file is among the dataset's, −1 where it is not there; another type is an error."""
    given = values.cast(pl.String) if is_text(ids) and not table.typed else values  # numbers of a text file may be text
    if is_text(given) != is_text(ids):
        raise InputError(
            f"the {what}s in {table.name} are {kind(given)} (such as {given[0]!r}), those of the dataset are "
            f"{kind(ids)} (such as {ids[0]!r}); cast them"
        )
    index = encode(given, ids)
    if (index < 0).all():
        raise InputError(
            f"no {what} in {table.name} is in the dataset (it has {given[0]!r}, the dataset {ids[0]!r}); "
            f"use the {what} ids of the training log"
        )
    return index


def _ranks(values: pl.Series, column: str, table: Table) -> NDArray[np.int64]:
    ranks = values.cast(pl.Float64)
    wrong = (ranks < 1) | (ranks > LARGEST_RANK) | (ranks != ranks.floor())
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise InputError(f"column {column!r} has {values[row]!r} in {table.place(row)}; ranks are whole numbers from 1")
    return ranks.cast(pl.Int64).to_numpy()


def _as_lists(users: Ints, items: Ints, k: int | None, table: Table, ended: float = NO_ITEM) -> tuple[Ints, Ints]:
    """Sorted rows as (n,) users and (n, k) lists of what belongs to each row."""
    start = np.flatnonzero(np.concatenate([[True], users[1:] != users[:-1]]))
    length = np.diff(start, append=len(users))
    width = int(length.max()) if k is None else k
    if len(start) * width * items.itemsize > memory_at_hand() / 4:
        raise InputError(
            f"the {len(start):,} lists of {table.name} at {width:,} places each are more than memory holds; "
            "cut them with a smaller k"
        )
    place = np.arange(len(users)) - np.repeat(start, length)
    lists = np.full((len(start), width), ended, dtype=items.dtype)
    within = place < width
    lists[np.repeat(np.arange(len(start)), length)[within], place[within]] = items[within]
    return users[start], lists


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
