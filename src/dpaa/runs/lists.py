"""Lists for anybody: users with training pairs by the model, others by their history, the rest by popularity.

Whose list comes from where is one rule, here: a user with training pairs gets the model's list; of the others, those
with a history of items the model knows get one computed from it; the rest get the most popular items
(`dpaa.ranking.rank.ColdUsers`).  The service follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from dpaa.data.columns import Column
from dpaa.data.ids import check_ids, encode, look_up
from dpaa.data.pairs import Pairs
from dpaa.errors import InputError, need_type, need_whole
from dpaa.methods.base import Histories, Method
from dpaa.ranking.dial import DialVectors
from dpaa.ranking.quotas import Quota
from dpaa.ranking.rank import RankedBlock, Ranker, rank, users_at_once
from dpaa.ranking.reranker import Reranker
from dpaa.words import counted

Ids = Iterable[object] | pl.Series
Dial = float | str | None
Ints = NDArray[Any]
SCORE, RANK, SOURCE = "score", "rank", "source"
MODEL, HISTORY, POPULARITY = "model", "history", "popularity"
SOURCES = (MODEL, HISTORY, POPULARITY)
"""Where a list comes from: what column `source` says."""
BLOCK_USERS = 4096
"""Users of several sources whose lists are put in order at once."""


class ListOptions(TypedDict, total=False):
    """How lists are made; all that recommends takes these."""

    seen: bool
    """Whether what a user has taken may be recommended again (no)."""
    items: Ids | None
    """An allow list, what is in stock for example; None allows all candidates."""
    exclude: Ids
    """What to leave out."""
    exclude_pairs: pl.DataFrame | None
    """What to leave out of single users' lists: `user_id, item_id`."""
    only: Mapping[str, object] | None
    """Column of the items → the value that items must have there, or several values."""
    at_most: Mapping[str, int] | None
    """Column of the items → how many items of one value a list may have."""
    at_least: Mapping[str, int] | None
    """Column of the items → how many different values a list must have, as far as there are so many."""
    popularity_dial: Dial
    """κ: above 0 leans to popular items, below 0 away from them, 0 is the method itself.

    Without it, or with "run", it stands where the run keeps it.
    """
    rerank: Reranker | str | None
    """What makes lists from scores: "run" (without it) is the one that the run keeps, None is none."""
    strict: bool
    """Whether ids that the model does not know are an error, instead of being counted."""


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists that are made as they are asked for."""

    blocks: Iterator[pl.DataFrame]
    """`user_id, item_id, score, rank`, and `source` where some are not the model's own."""
    schema: dict[str, Any]
    notes: list[str]
    """What was unknown, in words."""


@dataclass(frozen=True, eq=False)
class People:
    """Whose lists are asked for, in this order."""

    ids: pl.Series
    source: NDArray[np.int8]
    """Index into `SOURCES`.  (n,)"""
    index: Ints
    """Within the source: of the model's users, of the histories', 0 … of the unknown.  (n,)"""
    histories: Histories | None = None

    @property
    def marked(self) -> bool:
        """Whether column `source` has anything to say."""
        return bool((self.source != 0).any())


@dataclass(frozen=True, eq=False)
class Engine:
    """What makes lists from scores, the same for everybody."""

    method: Method
    train: Pairs
    k: int
    kappa: float
    seen: bool
    candidates: Ints | None
    dial: DialVectors | None
    reranker: Reranker | None
    quotas: tuple[Quota, ...]
    popularity: torch.Tensor
    """(n_items,): what the list of users without training pairs or history is ranked by."""
    excluded: Pairs | None
    """Pairs of a person (place in `People`) and an item that must not be listed."""

    def blocks(self, people: People, part: slice | None = None) -> Iterator[tuple[slice, RankedBlock]]:
        """Lists in the order of the people, or of a part of them, a block at a time; users are places in `people`.

        Scores are computed in the same blocks whatever the part, so that those of all parts are those of the whole.
        """
        if not people.marked and part is None:
            place = 0
            for block in self._of_source(0, people):
                yield slice(place, place + len(block.users)), block
                place += len(block.users)
            return
        part = part or slice(0, len(people.ids))
        readers = [self._reader(number, people, part) for number in range(len(SOURCES))]
        for first in range(part.start, part.stop, BLOCK_USERS):
            source = people.source[first : min(first + BLOCK_USERS, part.stop)]
            items = np.empty((len(source), self.k), dtype=np.int64)
            scores = np.empty((len(source), self.k), dtype=np.float32)
            for number, reader in enumerate(readers):
                mine = source == number
                items[mine], scores[mine] = reader.take(int(mine.sum()), self.k)
            where = slice(first, first + len(source))
            yield where, RankedBlock(np.arange(where.start, where.stop), items, scores)

    def _reader(self, number: int, people: People, part: slice) -> _Rows:
        """Lists of a source from the first of the part on; whole blocks are computed, those before are left out."""
        places = np.flatnonzero(people.source == number)
        first, last = np.searchsorted(places, [part.start, part.stop])
        step = users_at_once(self.method.graph.n_items, self.candidates)
        begin, end = int(first) // step * step, -(-int(last) // step) * step
        reader = _Rows(self._of_source(number, people, places[begin:end] if last > first else places[:0]))
        if last > first:
            reader.take(int(first) - begin, self.k)
        return reader

    def _of_source(self, number: int, people: People, places: Ints | None = None) -> Iterator[RankedBlock]:
        places = np.flatnonzero(people.source == number) if places is None else places
        if not len(places):
            return iter(())
        users = people.index[places]
        if number == SOURCES.index(POPULARITY):
            return self._popular(places)
        histories = people.histories if number == SOURCES.index(HISTORY) else None
        taken = None if self.seen else self.train if histories is None else histories.pairs
        return rank(
            self.method,
            users,
            self.k,
            masked=_joined(taken, self._excluded(places, users)),
            candidates=self.candidates,
            histories=histories,
            dial=self.kappa,
            prepared=self.dial,
            reranker=self.reranker,
            quotas=self.quotas,
        )

    def _popular(self, places: Ints) -> Iterator[RankedBlock]:
        """The same list for all, but for what each must not get."""
        masked = self._excluded(places, np.arange(len(places)))
        ranker = Ranker(self.method.graph.n_items, torch.device("cpu"), masked, self.candidates, self.quotas)
        for block, _ in ranker.blocks(np.arange(len(places))):
            yield ranker.rank_popular(self.popularity, block, self.k)

    def _excluded(self, places: Ints, users: Ints) -> Pairs | None:
        """Pairs that these people must not get, by the numbers they have in their source."""
        if self.excluded is None:
            return None
        row = np.full(int(max(places.max(), self.excluded.user.max(initial=0))) + 1, -1, dtype=np.int64)
        row[places] = users
        owner = row[self.excluded.user]
        return Pairs.of(owner[owner >= 0], self.excluded.item[owner >= 0])


class _Rows:
    """Lists of one source, handed out some at a time."""

    def __init__(self, blocks: Iterator[RankedBlock]) -> None:
        self._blocks = blocks
        self._items: list[Ints] = []
        self._scores: list[Ints] = []

    def take(self, n: int, k: int) -> tuple[Ints, Ints]:
        """The next n."""
        while sum(map(len, self._items)) < n:
            block = next(self._blocks)
            self._items.append(block.items)
            self._scores.append(block.scores)
        items = np.concatenate([np.empty((0, k), np.int64), *self._items])
        scores = np.concatenate([np.empty((0, k), np.float32), *self._scores])
        self._items, self._scores = [items[n:]], [scores[n:]]
        return items[:n], scores[:n]


def _joined(one: Pairs | None, other: Pairs | None) -> Pairs | None:
    if one is None or other is None or not len(other):
        return other if one is None else one
    return Pairs.of(np.concatenate([one.user, other.user]), np.concatenate([one.item, other.item]))


# ------------------------------------------------------------------ who and what is known


def people_of(
    users: Ids | None,
    histories: pl.DataFrame | None,
    user_ids: pl.Series,
    item_ids: pl.Series,
    warm: NDArray[np.bool_],
) -> tuple[People, list[str]]:
    """Whose lists are asked for: these users (all of the log without), or all who have a history; and notes.

    `warm` says which users have training pairs, (n_users,): about the others the model knows nothing.
    """
    notes: list[str] = []
    known_items = pl.DataFrame()
    if histories is not None:
        known_items, notes = _known_rows(histories, item_ids)
    if users is None and histories is not None:
        ids = histories[Column.USER].unique().sort()
        index = np.full(len(ids), -1, dtype=np.int64)
    elif users is None:
        ids, index = user_ids, np.arange(len(user_ids))
    else:
        ids = check_ids(users, user_ids, "user").alias(Column.USER)
        index = encode(ids, user_ids).astype(np.int64)
    index = np.where((index >= 0) & warm[index], index, -1)
    source = np.where(index >= 0, 0, SOURCES.index(POPULARITY)).astype(np.int8)
    folded = None
    if histories is not None:
        owners = known_items[Column.USER].unique().sort()
        owner = encode(ids, owners).astype(np.int64)
        mine = (index < 0) & (owner >= 0)
        source[mine], index[mine] = SOURCES.index(HISTORY), owner[mine]
        pairs = Pairs.of(encode(known_items[Column.USER], owners), encode(known_items[Column.ITEM], item_ids))
        folded = Histories(pairs, len(owners))
    unknown = source == SOURCES.index(POPULARITY)
    index[unknown] = np.arange(int(unknown.sum()))
    return People(ids, source, index, folded), [*notes, *_told(source, histories is not None)]


def _known_rows(histories: pl.DataFrame, item_ids: pl.Series) -> tuple[pl.DataFrame, list[str]]:
    need_type(histories, pl.DataFrame, "histories", "give a polars frame of user_id and item_id")
    if missing := {Column.USER, Column.ITEM} - set(histories.columns):
        raise InputError(f"histories have no column {min(missing)!r}; give a frame of user_id and item_id")
    known = histories.filter(pl.Series(encode(histories[Column.ITEM], item_ids) >= 0))
    if len(known) == len(histories):
        return known, []
    rows = counted(len(histories) - len(known), "history row names", "history rows name")
    return known, [f"{rows} an item the model does not know; left out"]


def _told(source: NDArray[np.int8], with_histories: bool) -> list[str]:
    """How many are not known, and what they get."""
    folded, unknown = (int((source == SOURCES.index(one)).sum()) for one in (HISTORY, POPULARITY))
    if not unknown and (not folded or (with_histories and folded == len(source))):
        return []
    get = [
        *([f"{folded:,} get lists from their history"] if folded else []),
        *([f"{unknown:,} get the popularity list"] if unknown else []),
    ]
    who = counted(folded + unknown, "user has", "users have")
    return [f"{who} no training pairs: {', '.join(get)} (column {SOURCE!r})"]


def known_ids(given: Ids, ids: pl.Series, what: str, role: str, strict: bool) -> tuple[Ints, list[str]]:
    """Indices of the ids that are known, and a note on the others; with `strict` they are an error."""
    if strict:
        return look_up(given, ids, what), []
    values = check_ids(given, ids, what)
    index = encode(values, ids) if len(values) else np.empty(0, dtype=np.int32)
    unknown = values.filter(pl.Series(index < 0)).unique(maintain_order=True) if len(values) else values
    if not len(unknown):
        return index, []
    some = ", ".join(repr(one) for one in unknown.head(3)) + (", …" if len(unknown) > 3 else "")
    are = counted(len(unknown), f"{what} {role} is", f"{what}s {role} are")
    return index[index >= 0], [f"{are} not known to the model and left out ({some})"]


def excluded_pairs(
    pairs: pl.DataFrame | None, people: People, item_ids: pl.Series, strict: bool
) -> tuple[Pairs | None, list[str]]:
    """What single people must not get, by place in `people`; rows of others are not looked at."""
    if pairs is None:
        return None, []
    need_type(pairs, pl.DataFrame, "exclude_pairs", "give a polars frame of user_id and item_id")
    if missing := {Column.USER, Column.ITEM} - set(pairs.columns):
        raise InputError(f"exclude_pairs have no column {min(missing)!r}; give a frame of user_id and item_id")
    owners = check_ids(pairs[Column.USER], people.ids, "user").cast(people.ids.dtype, strict=False)
    items = check_ids(pairs[Column.ITEM], item_ids, "item")
    given = pl.DataFrame([owners.alias(Column.USER), pl.Series(Column.ITEM, encode(items, item_ids))])
    places = pl.DataFrame([people.ids.alias(Column.USER), pl.Series("place", np.arange(len(people.ids)))])
    mine = given.join(places, on=Column.USER)
    unknown = mine.filter(pl.col(Column.ITEM) < 0)
    if strict and len(unknown):
        look_up(items, item_ids, "item")
    notes = []
    if len(unknown):
        rows = counted(len(unknown), "row to exclude names", "rows to exclude name")
        notes.append(f"{rows} an item the model does not know; left out")
    mine = mine.filter(pl.col(Column.ITEM) >= 0)
    return Pairs.of(mine["place"].to_numpy(), mine[Column.ITEM].to_numpy()), notes


def shortest(k: int, n_items: int) -> int:
    """Nobody's list is longer than the catalogue."""
    return min(need_whole(k, "k"), max(n_items, 1))
