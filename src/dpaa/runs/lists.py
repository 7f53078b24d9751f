"""Lists for anybody: users with training pairs by the model, others by their history, the rest by popularity.

Whose list comes from where is one rule, here: a user with training pairs gets the model's list; of the others, those
with a history of items the model knows get one computed from it; the rest get the most popular items
(`dpaa.ranking.rank.ColdUsers`).  The service follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypedDict

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from dpaa._text import counted
from dpaa.data.attributes import ItemAttributes, no_column
from dpaa.data.columns import Column
from dpaa.data.ids import check_ids, encode, look_up
from dpaa.data.pairs import Pairs
from dpaa.errors import InputError, need_type, need_whole
from dpaa.methods.base import Histories, Method
from dpaa.ranking.dial import DialVectors
from dpaa.ranking.quotas import NO_VALUE, Quota
from dpaa.ranking.rank import RankedBlock, Ranker, rank, users_at_once
from dpaa.ranking.reranker import Reranker

Ids = Iterable[object] | pl.Series
Dial = float | str | None
Ints = NDArray[Any]
SCORE, RANK, SOURCE = "score", "rank", "source"
MODEL, HISTORY, POPULARITY = "model", "history", "popularity"
SOURCES = (MODEL, HISTORY, POPULARITY)
"""Where a list comes from: what column `source` says."""
BLOCK_USERS = 4096
"""Users of several sources whose lists are put in order at once."""
LONGEST_NUMBER = 9
"""Digits of a limit: no list is longer."""


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
    """Pairs of a person (index in `People`) and an item that must not be listed."""

    def blocks(self, people: People, part: slice | None = None) -> Iterator[tuple[slice, RankedBlock]]:
        """Lists in the order of the people, a block at a time; users are indices into `people`.

        Parameters
        ----------
        people : whose lists
        part : only these of them.  Scores are computed in the same blocks whatever the part, so that the lists of all
            parts are those of the whole, bit by bit.

        Returns
        -------
        pairs of a slice of the people and their lists
        """
        if not people.marked and part is None:
            first = 0
            for block in self._of_source(0, people, np.arange(len(people.ids))):
                yield slice(first, first + len(block.users)), block
                first += len(block.users)
            return
        part = part or slice(0, len(people.ids))
        readers = [self._reader(number, people, part) for number in range(len(SOURCES))]
        for first in range(part.start, part.stop, BLOCK_USERS):
            where = slice(first, min(first + BLOCK_USERS, part.stop))
            rows = [next(readers[number]) for number in people.source[where]]
            items, scores = (np.stack(column) for column in zip(*rows, strict=True))
            yield where, RankedBlock(np.arange(where.start, where.stop), items, scores)

    def _reader(self, number: int, people: People, part: slice) -> Iterator[tuple[Ints, Ints]]:
        """Lists of a source one by one, from the first of the part on; whole blocks are computed."""
        members = np.flatnonzero(people.source == number)
        first, last = (int(index) for index in np.searchsorted(members, [part.start, part.stop]))
        step = users_at_once(self.method.graph.n_items, self.candidates)
        begin, end = first // step * step, -(-last // step) * step
        blocks = self._of_source(number, people, members[begin:end] if last > first else members[:0])
        return islice(
            ((row, score) for block in blocks for row, score in zip(block.items, block.scores, strict=True)),
            first - begin,
            None,
        )

    def _of_source(self, number: int, people: People, members: Ints) -> Iterator[RankedBlock]:
        if not len(members):
            return iter(())
        users = people.index[members]
        if number == SOURCES.index(POPULARITY):
            return self._popular(members)
        histories = people.histories if number == SOURCES.index(HISTORY) else None
        taken = None if self.seen else self.train if histories is None else histories.pairs
        return rank(
            self.method,
            users,
            self.k,
            masked=_joined(taken, self._excluded(members, users)),
            candidates=self.candidates,
            histories=histories,
            dial=self.kappa,
            prepared=self.dial,
            reranker=self.reranker,
            quotas=self.quotas,
        )

    def _popular(self, members: Ints) -> Iterator[RankedBlock]:
        """The same list for all, but for what each must not get."""
        masked = self._excluded(members, np.arange(len(members)))
        ranker = Ranker(self.method.graph.n_items, torch.device("cpu"), masked, self.candidates, self.quotas)
        for block, _ in ranker.blocks(np.arange(len(members))):
            yield ranker.rank_popular(self.popularity, block, self.k)

    def _excluded(self, members: Ints, users: Ints) -> Pairs | None:
        """Pairs that these people must not get, by the numbers they have in their source."""
        if self.excluded is None:
            return None
        row = np.full(int(max(members.max(), self.excluded.user.max(initial=0))) + 1, -1, dtype=np.int64)
        row[members] = users
        owner = row[self.excluded.user]
        return Pairs.of(owner[owner >= 0], self.excluded.item[owner >= 0])


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
    return People(ids, source, index, folded), [*notes, *_source_notes(source, histories is not None)]


def _known_rows(histories: pl.DataFrame, item_ids: pl.Series) -> tuple[pl.DataFrame, list[str]]:
    need_type(histories, pl.DataFrame, "histories", "give a polars frame of user_id and item_id")
    if missing := {Column.USER, Column.ITEM} - set(histories.columns):
        raise InputError(f"histories have no column {min(missing)!r}; give a frame of user_id and item_id")
    known = histories.filter(pl.Series(encode(histories[Column.ITEM], item_ids) >= 0))
    if len(known) == len(histories):
        return known, []
    rows = counted(len(histories) - len(known), "history row names", "history rows name")
    return known, [f"{rows} an item the model does not know; left out"]


def _source_notes(source: NDArray[np.int8], with_histories: bool) -> list[str]:
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
    """What single people must not get, by index in `people`; rows of others are not looked at."""
    if pairs is None:
        return None, []
    need_type(pairs, pl.DataFrame, "exclude_pairs", "give a polars frame of user_id and item_id")
    if missing := {Column.USER, Column.ITEM} - set(pairs.columns):
        raise InputError(f"exclude_pairs have no column {min(missing)!r}; give a frame of user_id and item_id")
    owners = check_ids(pairs[Column.USER], people.ids, "user").cast(people.ids.dtype, strict=False)
    items = check_ids(pairs[Column.ITEM], item_ids, "item")
    given = pl.DataFrame([owners.alias(Column.USER), pl.Series(Column.ITEM, encode(items, item_ids))])
    persons = pl.DataFrame([people.ids.alias(Column.USER), pl.Series("person", np.arange(len(people.ids)))])
    mine = given.join(persons, on=Column.USER)
    unknown = mine.filter(pl.col(Column.ITEM) < 0)
    if strict and len(unknown):
        look_up(items, item_ids, "item")
    notes = []
    if len(unknown):
        rows = counted(len(unknown), "row to exclude names", "rows to exclude name")
        notes.append(f"{rows} an item the model does not know; left out")
    mine = mine.filter(pl.col(Column.ITEM) >= 0)
    return Pairs.of(mine["person"].to_numpy(), mine[Column.ITEM].to_numpy()), notes


def shortest(k: int, n_items: int) -> int:
    """Nobody's list is longer than the catalogue."""
    return min(need_whole(k, "k"), max(n_items, 1))


# ------------------------------------------------------------------ columns of the items as limits of lists


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column of the items, its values as whole numbers."""

    name: str
    codes: NDArray[np.int32]
    """Values of each item, −1 where there are fewer.  (n_items, most values of an item)."""
    words: pl.Series
    """What each number stands for, ascending."""

    @classmethod
    def of(cls, values: pl.Series) -> CodedColumn:
        """From the values of each item as lists of text (`ItemAttributes.values`)."""
        lengths = values.list.len().to_numpy().astype(np.int64)
        codes = np.full((len(values), max(int(lengths.max(initial=0)), 1)), NO_VALUE, dtype=np.int32)
        flat = values.filter(values.list.len() > 0).explode().cast(pl.String)
        rows = np.repeat(np.arange(len(values)), lengths)
        slots = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        if len(flat):
            codes[rows, slots] = flat.rank("dense").cast(pl.Int32).to_numpy() - 1
        return cls(values.name, codes, flat.unique().sort())

    def having(self, wanted: object) -> NDArray[np.bool_]:
        """Which items have this value, or one of these values, among theirs; compared as text."""
        several = wanted if isinstance(wanted, Iterable) and not isinstance(wanted, str) else [wanted]
        words = sorted({str(one).lower() if isinstance(one, bool) else str(one) for one in several})
        codes = self.words.is_in(words).arg_true().to_numpy()
        if not len(codes):
            some = ", ".join(repr(one) for one in self.words.head(3))
            raise InputError(
                f"no item has {' or '.join(map(repr, words))} in column {self.name!r} (some have {some}); "
                "give a value that is there"
            )
        return np.asarray(np.isin(self.codes, codes).any(axis=1))

    def quota(self, at_most: int | None, at_least: int | None) -> Quota:
        """Limits by the values; items without one are held to nothing, those with several count for each."""
        for limit, name in ((at_most, "at most"), (at_least, "at least")):
            if limit is not None:
                need_whole(limit, f"{name} of column {self.name!r}")
        return Quota(self.codes, at_most, at_least)


class ItemColumns:
    """Columns of the items by name; each is coded when it is first used, and kept."""

    def __init__(self, attributes: ItemAttributes | None, coded: Iterable[CodedColumn] = ()) -> None:
        self._attributes, self._coded = attributes, {one.name: one for one in coded}

    @property
    def names(self) -> list[str]:
        """Those there are."""
        return list(self._coded) if self._attributes is None else self._attributes.columns

    def __getitem__(self, name: str) -> CodedColumn:
        if name not in self._coded:
            if not self.names:
                raise InputError(
                    f"nothing is known of the items, no column {name!r} either; make the dataset with --items"
                )
            if self._attributes is None:
                raise no_column(name, self.names)
            self._coded[name] = CodedColumn.of(self._attributes.values(name))
        return self._coded[name]

    def quotas(self, at_most: Mapping[str, int], at_least: Mapping[str, int]) -> tuple[Quota, ...]:
        """The limits of every column that is named."""
        return tuple(self[name].quota(at_most.get(name), at_least.get(name)) for name in {**at_most, **at_least})

    def allowed(self, only: Mapping[str, object], some: NDArray[Any]) -> NDArray[Any]:
        """Those of some items that have a wanted value in every column that is named."""
        for name, wanted in only.items():
            some = some[self[name].having(wanted)[some]]
        return some


# ------------------------------------------------------------------ limits as typed: `genre=3`, `in_stock=true`


def read_only(given: Sequence[str], option: str, example: str) -> dict[str, list[str]]:
    """`COLUMN=VALUE` → the values that are allowed in each column."""
    allowed: dict[str, list[str]] = {}
    for text in given:
        column, equals, value = text.rpartition("=")
        if not equals or not column.strip() or not value.strip():
            raise InputError(f"{option} takes COLUMN=VALUE, got {text!r}; write for example {example}")
        allowed.setdefault(column.strip(), []).append(value.strip())
    return allowed


def read_limits(given: Sequence[str], option: str, example: str) -> dict[str, int]:
    """`COLUMN=N` → N of each column."""
    limits: dict[str, int] = {}
    for text in given:
        column, _, number = (part.strip() for part in text.rpartition("="))
        if not column or not re.fullmatch(rf"0*[1-9][0-9]{{0,{LONGEST_NUMBER - 1}}}", number):
            raise InputError(f"{option} takes COLUMN=N with N from 1, got {text!r}; write for example {example}")
        if column in limits:
            raise InputError(f"{option} is given twice for column {column!r}; give it once")
        limits[column] = int(number)
    return limits
