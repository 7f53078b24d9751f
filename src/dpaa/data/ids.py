"""Names of columns and splits, and the user's own ids: their two types and the way from ids to indices."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from dpaa.errors import InputError

ABOUT_FILE: Final = "dataset.json"
"""What a prepared dataset says of itself."""
Array = npt.NDArray[Any]
Ints = npt.NDArray[Any]
"""Indices, counts or keys, of any width."""
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
SplitName = Literal["train", "valid", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "valid", "test")


class Column:
    """Column names in every table the package writes."""

    USER: Final = "user_id"
    ITEM: Final = "item_id"
    RATING: Final = "rating"
    TIMESTAMP: Final = "timestamp"
    COUNT: Final = "count"


IDS = (Column.USER, Column.ITEM)
WHOLE_NUMBER = "0|-?[1-9][0-9]*"
"""Text that an integer column gives back unchanged: no leading zeros, signs or blanks."""
FEW = 64
"""One value for so many ids is looked up by bisection: a hash table of all ids would take longer."""
DENSE = 4
"""Integer ids that fill at least one number in so many are looked up in an array: ten times as fast as a hash table."""


def is_text(ids: pl.Series) -> bool:
    """Whether the ids are text; otherwise they are integers."""
    return ids.dtype == pl.String


def kind(ids: pl.Series) -> str:
    """The type of the ids in words: `text` or `integers`."""
    return "text" if is_text(ids) else "integers"


def integers_if_unchanged(ids: pl.Series) -> pl.Series:
    """Text that consists of whole numbers only ("12", not "007") as integers; any other text as it is."""
    distinct = ids.unique()
    fitting = _integers(distinct) if distinct.str.contains(f"^({WHOLE_NUMBER})$").all() else None
    return ids if fitting is None else ids.cast(fitting.dtype)


def _integers(ids: pl.Series) -> pl.Series | None:
    """Ids as Int64, or as UInt64 where that is too small, if one of them can hold them all."""
    both = (ids.cast(dtype, strict=False) for dtype in (pl.Int64, pl.UInt64))
    return next((fitting for fitting in both if fitting.null_count() == ids.null_count()), None)


def checked_type(ids: pl.Series, place: str) -> pl.Series:
    """Convert ids of a typed column to Int64, UInt64 (only where Int64 is too small) or String.

    Parameters
    ----------
    ids : the column; a type that is neither integers nor text is refused
    place : where the ids are, for the message
    """
    if ids.dtype in (pl.Categorical, pl.Enum, pl.String):
        return ids.cast(pl.String)
    fitting = _integers(ids) if ids.dtype.is_integer() or not len(ids) else None
    if fitting is None:
        raise InputError(f"{place} cannot be {ids.dtype}; cast them to integers or to text")
    return fitting


def one_type(columns: Sequence[pl.Series], name: str) -> list[pl.Series]:
    """Give the id columns of several tables their common type: text where one of them is text.

    Parameters
    ----------
    columns : Int64, UInt64 or String; empty ones adapt
    name : of the column
    """
    filled = [column for column in columns if len(column)]
    dtypes: set[pl.DataType] = {column.dtype for column in filled}
    common = dtypes.pop() if len(dtypes) == 1 else pl.String() if dtypes else pl.Int64()
    return [column.cast(common).alias(name) for column in columns]


def distinct_ids(columns: Iterable[pl.Series]) -> pl.Series:
    """All ids of the columns, once each, ascending."""
    return pl.concat([column.unique() for column in columns]).unique().sort()


def encode(values: pl.Series, ids: pl.Series) -> npt.NDArray[np.int32]:
    """Look up values among ids.

    Parameters
    ----------
    values : (n,) ids to look up
    ids : ascending, distinct

    Returns
    -------
    (n,) index of each value in `ids`, -1 where it is not there
    """
    if not len(ids) or (is_text(ids) and not is_text(values)):
        return np.full(len(values), -1, dtype=np.int32)
    values = values.cast(ids.dtype, strict=False)
    if len(values) * FEW <= len(ids):
        index = ids.search_sorted(values).clip(upper_bound=len(ids) - 1)
        known = (ids.gather(index) == values).fill_null(value=False)
        return np.where(known.to_numpy(), index.to_numpy(), -1).astype(np.int32)
    low, high = ids[0], ids[-1]
    if ids.dtype == pl.Int64 and high - low < DENSE * len(ids):
        rows = np.full(high - low + 1, -1, dtype=np.int32)
        rows[(ids - low).to_numpy()] = np.arange(len(ids), dtype=np.int32)
        positions: npt.NDArray[np.int32] = rows[(values.clip(low, high).fill_null(low) - low).to_numpy()]
        # What was clipped looks like the first or the last id.
        positions[~values.is_between(low, high).fill_null(value=False).to_numpy()] = -1
        return positions
    numbers = pl.int_range(len(ids), dtype=pl.Int32, eager=True)
    return values.replace_strict(ids, numbers, default=-1, return_dtype=pl.Int32).to_numpy(writable=True)


def check_ids(given: Iterable[object] | pl.Series, ids: pl.Series, what: str) -> pl.Series:
    """Take ids that a user gave as a series of the type of `ids`; an unknown id is no error.

    Parameters
    ----------
    given : the ids
    ids : of the dataset
    what : "user" or "item", for messages
    """
    if isinstance(given, str | bytes):
        raise InputError(f"{given!r} is one {what} id where a list of ids is needed; write [{given!r}]")
    rule = f"this dataset's {what} ids are {kind(ids)} (such as {ids[0]!r})"
    try:
        values = given if isinstance(given, pl.Series) else pl.Series(values=list(given))
        values = checked_type(values, f"the {what} ids") if len(values) else ids.clear()
    except (TypeError, OverflowError, UnicodeEncodeError, pl.exceptions.PolarsError) as error:
        raise InputError(f"the {what} ids given are neither all integers nor all text; {rule}") from error
    if values.has_nulls() or is_text(values) != is_text(ids):
        raise InputError(f"{rule}, but those given are {kind(values)} (such as {values[0]!r}), or empty; cast them")
    return values


def look_up(given: Iterable[object] | pl.Series, ids: pl.Series, what: str) -> npt.NDArray[np.int32]:
    """Look up ids that a user gave; unknown ids and other types are refused.

    Parameters
    ----------
    given : the ids
    ids : of the dataset, ascending
    what : "user" or "item", for messages

    Returns
    -------
    (n,) the index of each id
    """
    values = check_ids(given, ids, what)
    index = encode(values, ids)
    if (index < 0).any():
        unknown = values.filter(pl.Series(index < 0)).unique(maintain_order=True)
        some = ", ".join(map(repr, unknown.head(3)))
        raise InputError(f"{len(unknown):,} of the {what} ids given are not in the dataset ({some}); leave them out")
    return index
