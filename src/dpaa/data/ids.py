"""The user's own ids: their two types (integer, text) and the way from ids to indices."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from dpaa.errors import InputError

WHOLE_NUMBER = r"^(0|-?[1-9][0-9]*)$"
"""Text that an integer column gives back unchanged: no leading zeros, signs or blanks."""

LARGEST_TABLE = 20_000_000
"""Ids that lie closer together than this are looked up in a table, several times as fast as by bisection."""
FEW = 64
"""One value for so many ids is looked up by bisection: preparing for many would take longer than the looking."""


def is_text(ids: pl.Series) -> bool:
    """Whether the ids are text; otherwise they are integers."""
    return ids.dtype == pl.String


def kind(ids: pl.Series) -> str:
    """The type of the ids in a user's words."""
    return "text" if is_text(ids) else "integers"


def integers_if_unchanged(ids: pl.Series) -> pl.Series:
    """Text that consists of whole numbers only ("12", not "007") as integers; any other text as it is."""
    distinct = ids.unique()
    if not distinct.str.contains(WHOLE_NUMBER).all():
        return ids
    fitting = _integers(distinct)
    return ids if fitting is None else ids.cast(fitting.dtype)


def _integers(ids: pl.Series) -> pl.Series | None:
    """Ids as Int64, or as UInt64 where that is too small, if one of them can hold them all."""
    for dtype in (pl.Int64, pl.UInt64):
        fitting = ids.cast(dtype, strict=False)
        if fitting.null_count() == ids.null_count():
            return fitting
    return None


def checked_type(ids: pl.Series, place: str) -> pl.Series:
    """Ids of a typed column as Int64, UInt64 (only where Int64 is too small) or String; any other type is an error."""
    if ids.dtype in (pl.Categorical, pl.Enum):
        return ids.cast(pl.String)
    if ids.dtype == pl.Null and not len(ids):
        return ids.cast(pl.Int64)
    if ids.dtype == pl.String:
        return ids
    if ids.dtype.is_integer() and (fitting := _integers(ids)) is not None:
        return fitting
    raise InputError(f"{place} cannot be {ids.dtype}; cast them to integers or to text")


def one_type(columns: Sequence[pl.Series], name: str) -> list[pl.Series]:
    """The id columns of several tables in their common type; text beside integers is an error. Empty columns adapt."""
    filled = [column for column in columns if len(column)]
    if len({kind(column) for column in filled}) > 1:
        raise InputError(f"column {name!r} is text in one split and integers in another; cast one of them")
    dtypes: set[pl.DataType] = {column.dtype for column in filled}
    if dtypes == {pl.Int64, pl.UInt64}:
        if any(column.dtype == pl.Int64 and (column < 0).any() for column in filled):
            raise InputError(f"column {name!r} mixes negative integers with integers above 2⁶³; cast all to text")
        dtypes = {pl.UInt64()}
    common = dtypes.pop() if dtypes else pl.Int64()
    return [column.cast(common).alias(name) for column in columns]


def distinct_ids(columns: Iterable[pl.Series]) -> pl.Series:
    """All ids of the columns, once each, ascending."""
    return pl.concat([column.unique() for column in columns]).unique().sort()


def encode(values: pl.Series, ids: pl.Series) -> npt.NDArray[np.int32]:
    """The index of each value in `ids` (ascending, distinct), -1 where it is not there. Returns (n,)."""
    if not len(ids) or (is_text(ids) and not is_text(values)):
        return np.full(len(values), -1, dtype=np.int32)
    few = len(values) * FEW <= len(ids)
    if is_text(ids):
        if few:
            return _bisected(values, ids)
        codes = values.cast(pl.Enum(ids), strict=False).to_physical().cast(pl.Int32)
        return codes.fill_null(-1).to_numpy().copy()
    known = ids.to_numpy()
    fitting = values.cast(ids.dtype, strict=False)
    wanted = fitting.fill_null(int(known[0])).to_numpy()
    place = _place(np.clip(wanted, known[0], known[-1]), known, few)
    place[known[place] != wanted] = -1
    if fitting.has_nulls():
        place[fitting.is_null().to_numpy()] = -1
    return place


def _bisected(values: pl.Series, ids: pl.Series) -> npt.NDArray[np.int32]:
    """Text in ascending text; polars orders it as Python does, by code point."""
    found = np.full(len(values), -1, dtype=np.int32)
    for row, value in enumerate(values):
        place = 0 if value is None else bisect_left(ids, value)
        if value is not None and place < len(ids) and ids[place] == value:
            found[row] = place
    return found


def _place(wanted: npt.NDArray[np.integer], known: npt.NDArray[np.integer], few: bool = False) -> npt.NDArray[np.int32]:
    """Where each value is in `known`, or some place if it is not there; all are between the first and the last."""
    span = int(known[-1]) - int(known[0]) + 1
    if few or span > LARGEST_TABLE:
        return np.searchsorted(known, wanted).astype(np.int32)
    table = np.zeros(span, dtype=np.int32)
    table[known - known[0]] = np.arange(len(known), dtype=np.int32)
    place: npt.NDArray[np.int32] = table[wanted - known[0]]
    return place


def check_ids(given: Iterable[object] | pl.Series, ids: pl.Series, what: str) -> pl.Series:
    """Ids a user gave, of the type of `ids`; another type is an error, an unknown id is not."""
    if isinstance(given, str | bytes):
        raise InputError(f"{given!r} is one {what} id where a list of ids is needed; write [{given!r}]")
    try:
        values = given if isinstance(given, pl.Series) else pl.Series(values=list(given))
        if not len(values):
            return ids.clear()
        if values.has_nulls():
            raise InputError(f"one of the {what} ids given is empty; leave it out")
        values = checked_type(values, f"the {what} ids")
    except (TypeError, OverflowError, UnicodeEncodeError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"the {what} ids given are neither all integers nor all text; this dataset's {what} ids are {kind(ids)}"
        ) from error
    if is_text(values) != is_text(ids):
        found = "text" if is_text(values) else "an integer"
        raise InputError(
            f"this dataset's {what} ids are {kind(ids)} (such as {ids[0]!r}), but {values[0]!r} is {found}; "
            f"give {kind(ids)}"
        )
    return values


def look_up(given: Iterable[object] | pl.Series, ids: pl.Series, what: str) -> npt.NDArray[np.int32]:
    """The index of each id a user gave; `what` is "user" or "item". Unknown ids and other types are errors."""
    values = check_ids(given, ids, what)
    if not len(values):
        return np.empty(0, dtype=np.int32)
    index = encode(values, ids)
    if (index < 0).any():
        unknown = values.filter(pl.Series(index < 0)).unique(maintain_order=True)
        some = ", ".join(repr(value) for value in unknown.head(3))
        are, them = ("is", "it") if len(unknown) == 1 else ("are", "them")
        more = ", …" if len(unknown) > 3 else ""
        raise InputError(
            f"{len(unknown):,} of the {what} ids given {are} not in the dataset ({some}{more}); leave {them} out"
        )
    return index
