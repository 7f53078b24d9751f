"""Lists for any users: by the model with training pairs, else by their history, else by popularity.

Which list a user gets is one rule, here: a user with training pairs gets the model's list; of the others, those with a
history of items that the model knows get one computed from it; the rest get the most popular items
(`dpaa.ranking.rank.ColdUsers`).  The service follows it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypedDict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._text import counted
from dpaa.data.attributes import ItemAttributes
from dpaa.data.ids import Column, Ints, Mask, check_ids, encode
from dpaa.data.pairs import Pairs, positions_within
from dpaa.errors import InputError, need_type, need_whole
from dpaa.methods.base import Histories
from dpaa.ranking.quotas import NO_VALUE, Quota
from dpaa.ranking.rank import RankedBlock
from dpaa.ranking.reranker import Reranker

Ids = Iterable[object] | pl.Series
Dial = float | str | None
Rerank = Reranker | str | None
SCORE, RANK, SOURCE = "score", "rank", "source"
MODEL, HISTORY, POPULARITY = "model", "history", "popularity"
SOURCES = (MODEL, HISTORY, POPULARITY)
"""Where a list comes from: values of column `source`."""
BY_MODEL, BY_HISTORY, BY_POPULARITY = range(len(SOURCES))
BLOCK_USERS = 4096
"""Users whose lists are put in order at once."""


class ListOptions(TypedDict, total=False):
    """How lists are made; everything that recommends takes these."""

    seen: bool
    """Whether items that a user has already taken may be recommended again (no)."""
    items: Ids | None
    """An allow list, what is in stock for example; None allows all candidates."""
    exclude: Ids
    """Items to leave out."""
    exclude_pairs: pl.DataFrame | None
    """Items to leave out of single users' lists: `user_id, item_id`."""
    only: Mapping[str, object] | None
    """Column of the items → the value that items must have there, or several values."""
    at_most: Mapping[str, int] | None
    """Column of the items → how many items of one value a list may have."""
    at_least: Mapping[str, int] | None
    """Column of the items → how many different values a list must have, as far as there are so many."""
    popularity_dial: Dial
    """κ: above 0 leans to popular items, below 0 away from them, 0 is the method itself; None or "run": the run's."""
    rerank: Rerank
    """Re-ranker that makes lists from scores: "run" (the default) is the one that the run keeps, None is none."""


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists, computed lazily in blocks.

    Parameters
    ----------
    blocks : `user_id, item_id, score, rank`, and `source` where some are not the model's own
    schema : column → type
    notes : on ids that the model does not know
    """

    blocks: Iterator[pl.DataFrame]
    schema: dict[str, Any]
    notes: list[str]


@dataclass(frozen=True, eq=False)
class People:
    """Users to recommend to, in this order, and the source of each list.

    Parameters
    ----------
    ids : of the users
    source : (n,) index into `SOURCES`
    index : (n,) within the source: of the model's users, of the histories', 0 … of the others
    histories : of users that the model does not know
    """

    ids: pl.Series
    source: NDArray[np.int8]
    index: Ints
    histories: Histories | None = None

    @property
    def marked(self) -> bool:
        """Whether some lists are not the model's own, so that column `source` is needed."""
        return bool((self.source != BY_MODEL).any())

    @property
    def notes(self) -> list[str]:
        """How many users have no training pairs, and which lists they get."""
        folded, unknown = (int((self.source == source).sum()) for source in (BY_HISTORY, BY_POPULARITY))
        if not folded + unknown:
            return []
        who = counted(folded + unknown, "user has", "users have")
        lists = [f"lists from the history for {folded:,}"] if folded else []
        if unknown:
            first = self.ids[int(np.flatnonzero(self.source == BY_POPULARITY)[0])]
            lists.append(f"the popularity list for {unknown:,}, such as {first!r}")
        return [f"{who} no training pairs: {', '.join(lists)} (column {SOURCE!r})"]

    def blocks(
        self, rank: Callable[[int, Ints], Iterator[RankedBlock]], step: int, part: slice | None = None
    ) -> Iterator[tuple[slice, RankedBlock]]:
        """Lists in the order of the people, a block at a time.

        Parameters
        ----------
        rank : ranks for people (by their index here) of one source
        step : people whose scores are computed at once
        part : only these of the people.  Scores are computed in the same blocks whatever the part, so that the lists
            of all parts are those of the whole, bit by bit.

        Returns
        -------
        pairs of a slice of the people and their lists
        """
        part = part or slice(0, len(self.ids))

        def reader(source: int) -> Iterator[tuple[Ints, Ints]]:
            members = np.flatnonzero(self.source == source)
            first, last = (int(index) for index in np.searchsorted(members, [part.start, part.stop]))
            if first == last:
                return iter(())
            # A product of fewer rows may round differently: blocks begin where those of the whole would.
            begin, end = first // step * step, -(-last // step) * step  # whole blocks are computed
            blocks = rank(source, members[begin:end])
            rows = ((items, scores) for top in blocks for items, scores in zip(top.items, top.scores, strict=True))
            return islice(rows, first - begin, None)

        readers = list(map(reader, range(len(SOURCES))))
        for first in range(part.start, part.stop, BLOCK_USERS):
            where = slice(first, min(first + BLOCK_USERS, part.stop))
            rows = [next(readers[source]) for source in self.source[where]]
            items, scores = (np.stack(column) for column in zip(*rows, strict=True))
            yield where, RankedBlock(np.arange(where.start, where.stop), items, scores)


def people_of(
    users: Ids | None, histories: pl.DataFrame | None, user_ids: pl.Series, item_ids: pl.Series, warm: Mask
) -> People:
    """Users whose lists are wanted, and where each list comes from.

    Parameters
    ----------
    users : ids; default: all who have a history, or all of the log
    histories : `user_id, item_id` of users that the model does not know
    user_ids, item_ids : of the model
    warm : (n_users,) which users have training pairs

    Returns
    -------
    the users
    """
    if users is None:
        ids = user_ids if histories is None else pairs_frame(histories, "histories")[Column.USER].unique().sort()
    else:
        ids = check_ids(users, user_ids, "user").alias(Column.USER)
    # Histories alone are of new users, whatever their ids.
    known = np.full(len(ids), -1) if users is None and histories is not None else encode(ids, user_ids)
    index = np.where((known >= 0) & warm[known], known, -1).astype(np.int64)
    source = np.where(index >= 0, BY_MODEL, BY_POPULARITY).astype(np.int8)
    folded = None
    if histories is not None:
        pairs_frame(histories, "histories")
        rows = histories.filter(pl.Series(encode(histories[Column.ITEM], item_ids) >= 0))
        owners = rows[Column.USER].unique().sort()
        owner = encode(ids, owners).astype(np.int64)
        mine = (index < 0) & (owner >= 0)
        source[mine], index[mine] = BY_HISTORY, owner[mine]
        pairs = Pairs.of(encode(rows[Column.USER], owners), encode(rows[Column.ITEM], item_ids))
        folded = Histories(pairs, len(owners))
    unknown = source == BY_POPULARITY
    index[unknown] = np.arange(int(unknown.sum()))
    return People(ids, source, index, folded)


def pairs_frame(pairs: Any, name: str) -> pl.DataFrame:
    """Check that an argument is a frame with the columns of pairs."""
    need_type(pairs, pl.DataFrame, name, "give a polars frame of user_id and item_id")
    frame: pl.DataFrame = pairs
    if missing := {Column.USER, Column.ITEM} - set(frame.columns):
        raise InputError(f"{name} have no column {min(missing)!r}; give a frame of user_id and item_id")
    return frame


def known_ids(given: Ids, ids: pl.Series, what: str) -> tuple[Ints, list[str]]:
    """Indices of the ids that are known, and a note on the others.

    Parameters
    ----------
    given : ids of a user
    ids : known ones
    what : "user" or "item"

    Returns
    -------
    indices, and a note where some are unknown
    """
    values = check_ids(given, ids, what)
    index = encode(values, ids)
    unknown = values.filter(pl.Series(index < 0)).unique(maintain_order=True)
    if not len(unknown):
        return index, []
    some = ", ".join(map(repr, unknown.head(3))) + (", …" if len(unknown) > 3 else "")
    are = counted(len(unknown), f"{what} is", f"{what}s are")
    return index[index >= 0], [f"{are} not known to the model and left out ({some})"]


def excluded_pairs(pairs: pl.DataFrame, people: People, item_ids: pl.Series) -> Pairs:
    """Look up the items that single people must not get.

    Parameters
    ----------
    pairs : `user_id, item_id`; rows of others, or of unknown items, are ignored
    people : whose lists are wanted
    item_ids : of the model

    Returns
    -------
    pairs of an index in `people` and an item
    """
    pairs_frame(pairs, "exclude_pairs")
    owners = check_ids(pairs[Column.USER], people.ids, "user").cast(people.ids.dtype, strict=False)
    items = encode(check_ids(pairs[Column.ITEM], item_ids, "item"), item_ids)
    given = pl.DataFrame([owners.alias(Column.USER), pl.Series(Column.ITEM, items)]).filter(pl.col(Column.ITEM) >= 0)
    persons = pl.DataFrame([people.ids.alias(Column.USER), pl.Series("person", np.arange(len(people.ids)))])
    mine = given.join(persons, on=Column.USER)
    return Pairs.of(mine["person"].to_numpy(), mine[Column.ITEM].to_numpy())


def masked_pairs(taken: Pairs | None, excluded: Pairs | None, members: Ints, users: Ints) -> Pairs | None:
    """Pairs that some people must not get, by their index in a source.

    Parameters
    ----------
    taken : what users of the source have already
    excluded : pairs of a person and an item
    members, users : (n,) persons, and their indices in the source

    Returns
    -------
    pairs of an index in the source and an item
    """
    if excluded is None or not len(excluded):
        return taken
    # People are numbered by their place in the call, rankers by their index in a source: from one to the other.
    row = np.full(int(max(members.max(), excluded.user.max())) + 1, -1, dtype=np.int64)
    row[members] = users
    owner = row[excluded.user]
    own = Pairs.of(owner[owner >= 0], excluded.item[owner >= 0])
    if taken is None:
        return own
    return Pairs.of(np.concatenate([taken.user, own.user]), np.concatenate([taken.item, own.item]))


# ------------------------------------------------------------------ columns of the items as limits of lists


class ItemColumns:
    """Columns of the items, their values as whole numbers; each is coded when it is first used.

    Parameters
    ----------
    attributes : of the items
    """

    def __init__(self, attributes: ItemAttributes | None) -> None:
        self._attributes = attributes
        self._coded: dict[str, tuple[NDArray[np.int32], pl.Series]] = {}

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [] if self._attributes is None else self._attributes.columns

    def coded(self, name: str) -> tuple[NDArray[np.int32], pl.Series]:
        """Values of each item as numbers, (n_items, most values of an item), −1 where there are fewer; their texts."""
        if name not in self._coded:
            if self._attributes is None:
                raise InputError(f"the items have no columns, so no {name!r} either; make the dataset with --items")
            values = self._attributes.values(name)
            lengths = values.list.len().to_numpy().astype(np.int64)
            codes = np.full((len(values), max(int(lengths.max(initial=0)), 1)), NO_VALUE, dtype=np.int32)
            flat = values.filter(values.list.len() > 0).explode().cast(pl.String)
            rows = np.repeat(np.arange(len(values)), lengths)
            if len(flat):
                codes[rows, positions_within(lengths)] = flat.rank("dense").cast(pl.Int32).to_numpy() - 1
            self._coded[name] = codes, flat.unique().sort()
        return self._coded[name]

    def quotas(self, at_most: Mapping[str, int], at_least: Mapping[str, int]) -> tuple[Quota, ...]:
        """Limits of every named column; items without a value are not limited, those with several count for each.

        Parameters
        ----------
        at_most, at_least : column → number
        """
        for limits, words in ((at_most, "at most"), (at_least, "at least")):
            for name, limit in limits.items():
                need_whole(limit, f"{words} of column {name!r}")
        names = {**at_most, **at_least}
        return tuple(Quota(self.coded(name)[0], at_most.get(name), at_least.get(name)) for name in names)

    def allowed(self, only: Mapping[str, object], some: NDArray[Any]) -> NDArray[Any]:
        """Filter items: those that have a wanted value in every named column.

        Parameters
        ----------
        only : column → a value or several, compared as text
        some : item indices
        """
        for name, wanted in only.items():
            codes, texts = self.coded(name)
            several = wanted if isinstance(wanted, Iterable) and not isinstance(wanted, str) else [wanted]
            values = sorted({str(value).lower() if isinstance(value, bool) else str(value) for value in several})
            present = texts.is_in(values).arg_true().to_numpy()
            if not len(present):
                examples = ", ".join(map(repr, texts.head(3)))
                raise InputError(
                    f"no item has {' or '.join(map(repr, values))} in column {name!r}; some have {examples}"
                )
            some = some[np.isin(codes[some], present).any(axis=1)]
        return some


# ------------------------------------------------------------------ limits as typed: `genre=3`, `in_stock=true`


def read_only(
    given: Sequence[str], option: str, example: str, form: str = "COLUMN=VALUE", pattern: str = ".+"
) -> dict[str, list[str]]:
    """Parse `COLUMN=VALUE`.

    Parameters
    ----------
    given : as typed
    option, example, form : for the message
    pattern : of the values

    Returns
    -------
    column → values that are allowed
    """
    allowed: dict[str, list[str]] = {}
    for text in given:
        column, _, value = (part.strip() for part in text.rpartition("="))
        if not column or not re.fullmatch(pattern, value):
            raise InputError(f"{option} takes {form}, got {text!r}; write for example {example}")
        allowed.setdefault(column, []).append(value)
    return allowed


def read_limits(given: Sequence[str], option: str, example: str) -> dict[str, int]:
    """Parse `COLUMN=N`; a column that is given twice has the last limit.

    Parameters
    ----------
    given : as typed
    option, example : for the message

    Returns
    -------
    column → number
    """
    limits = read_only(given, option, example, "COLUMN=N with N from 1", r"0*[1-9][0-9]{0,8}")
    return {column: int(numbers[-1]) for column, numbers in limits.items()}
