"""What the values of a column mean: ids of one type, numbers (decimal commas too), times that can be compared.

Each takes the table, for its words, and `Faults` where they are to be collected; else the first is refused.  What text
means is told by the whole column: where it comes in blocks, by what all of them have shown (`Seen`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._text import counted
from dpaa.data.faults import Faults, Refusing
from dpaa.data.ids import checked_type, integers_if_unchanged, is_text
from dpaa.data.table import Table
from dpaa.errors import InputError

DECIMAL_COMMA = r"^[-+]?\d+(,\d+)?$"


@dataclass
class Seen:
    """What a column of text has shown so far."""

    given: int = 0
    not_whole: int = 0
    """Values that are no integers …"""
    not_number: int = 0
    """… and no numbers at all."""
    comma: str | None = None
    """The first number with a decimal comma."""
    points: bool = False
    """Whether one has a point in it."""

    @classmethod
    def of(cls, values: pl.Series) -> Seen:
        """Of a whole column."""
        seen = cls()
        seen.add(values)
        return seen

    def add(self, values: pl.Series) -> None:
        """Look at some more; columns of numbers show nothing."""
        if values.dtype != pl.String:
            return
        filled = values.replace("", None).str.strip_chars()
        missing = filled.null_count()
        numbers = filled.cast(pl.Float64, strict=False)
        self.given += len(values) - missing
        self.not_whole += filled.cast(pl.Int64, strict=False).null_count() - missing
        self.not_number += numbers.null_count() - missing
        self.points = self.points or bool(filled.str.contains(".", literal=True).any())
        if self.comma is None:
            odd = filled.filter(numbers.is_null() & filled.is_not_null())
            found = odd.filter(odd.str.contains(DECIMAL_COMMA))
            self.comma = found[0] if len(found) else None


def id_column(ids: pl.Series, table: Table, faults: Faults | None = None) -> pl.Series:
    """Ids as integers or text; an empty one is a fault."""
    if table.typed:
        ids = checked_type(ids, f"the ids in column {ids.name!r} of {table.name}")
    given = ids.replace("", None) if is_text(ids) else ids
    complete_column(given, table, faults)
    if table.typed:
        return ids
    return integers_if_unchanged(given)


def number_column(values: pl.Series, table: Table, faults: Faults | None = None, seen: Seen | None = None) -> pl.Series:
    """A column of numbers; text becomes Float64; empty values stay empty."""
    faults = faults or Refusing(table)
    if values.dtype.is_numeric():
        numbers = plain_numbers(values)
    elif values.dtype in (pl.String, pl.Null):
        numbers = _read_numbers(values, faults, seen) if values.dtype == pl.String else values
    else:
        raise InputError(f"column {values.name!r} of {table.name} is {values.dtype}; give a column of numbers")
    wrong = numbers.is_null() & values.is_not_null()
    if numbers.dtype.is_float():
        wrong = wrong | (numbers.is_infinite() | numbers.is_nan()).fill_null(value=False)
    remedy = "correct the row or name another column"
    faults.add(values, wrong, "no number", "which is not a number", remedy)
    return numbers


def _read_numbers(text: pl.Series, faults: Faults, seen: Seen | None) -> pl.Series:
    """Numbers with a decimal point; with a decimal comma where a column has these and no point."""
    seen = seen or Seen.of(text)
    text = text.str.strip_chars()
    if seen.comma is None or seen.points:
        return text.cast(pl.Float64, strict=False)
    faults.notes.append(f"{faults.table.name}: column {text.name!r} has decimal commas, such as {seen.comma!r}")
    return text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)


def plain_numbers(values: pl.Series) -> pl.Series:
    """Numbers in a type that numpy has too: decimals and short floats as Float64, integers of 128 bits if need be."""
    if values.dtype.is_integer():
        if values.dtype not in (pl.Int128, pl.UInt128):
            return values
        whole = values.cast(pl.Int64, strict=False)
        if whole.null_count() == values.null_count():
            return whole
    return values if values.dtype == pl.Float32 else values.cast(pl.Float64)


def complete_column(values: pl.Series, table: Table, faults: Faults | None = None) -> pl.Series:
    """The column itself; an empty value is a fault."""
    faults = faults or Refusing(table)
    faults.add(values, values.is_null(), "nothing", "", "fill it in or remove the row")
    return values


def time_column(
    values: pl.Series, table: Table, faults: Faults | None = None, needed: bool = True, seen: Seen | None = None
) -> pl.Series | None:
    """Times as they are if they are numbers, else as Datetime in UTC; times without a zone are taken as UTC.

    Where they are not `needed`, one that is missing or cannot be read stays empty, and a note says so; None where all
    are.
    """
    if needed:
        return _times(values, table, faults or Refusing(table), seen)
    found = Faults(table)
    times, rows = times_or_nothing(values, table, found)
    if faults is not None:
        faults.notes += found.notes
        if len(rows):
            faults.notes.append(without_time(table, values.name, len(rows), int(rows[0])))
    return None if len(rows) == len(times) else times


def times_or_nothing(
    values: pl.Series, table: Table, found: Faults, seen: Seen | None = None
) -> tuple[pl.Series, NDArray[np.int64]]:
    """Times, empty where one is missing or cannot be read, and those rows."""
    times = _times(values, table, found, seen)
    rows = found.rows
    if len(rows):
        wrong = pl.Series(np.isin(np.arange(len(times)), rows))
        times = times.to_frame().select(pl.when(~wrong).then(pl.first()).alias(times.name)).to_series()
    return times, rows


def without_time(table: Table, column: str, rows: int, first: int) -> str:
    """The sentence about rows that are kept without a time."""
    return (
        f"{table.name}: {counted(rows, 'row has', 'rows have')} no time that can be read in column {column!r} (first "
        f"in {table.place(first).removesuffix(f' of {table.name}')}); they are kept without a time, since nothing is "
        "split by it"
    )


def _times(values: pl.Series, table: Table, faults: Faults, seen: Seen | None) -> pl.Series:
    if values.dtype.is_temporal() and values.dtype not in (pl.Date, pl.Datetime):
        raise InputError(f"column {values.name!r} of {table.name} is {values.dtype}; give dates, datetimes or numbers")
    if values.dtype in (pl.Date, pl.Datetime):
        outside = outside_calendar(values)
        faults.add(
            *(values, outside, "no time", "a time outside of the years 1 to 9999", "correct the row"), quote=False
        )
        values = values.to_frame().select(pl.when(~outside).then(pl.first()).alias(values.name)).to_series()
    if values.dtype == pl.Date:
        values = values.cast(pl.Datetime("us"))
    if isinstance(values.dtype, pl.Datetime):
        zone = values.dtype.time_zone
        times = values.dt.replace_time_zone("UTC") if zone is None else values.dt.convert_time_zone("UTC")
        missing = times.is_null() & ~outside
        faults.add(times, missing, "nothing", "", "fill it in or remove the row")
        return times
    if values.dtype != pl.String:
        return complete_column(number_column(values, table, faults), table, faults)
    values = complete_column(values.replace("", None), table, faults)
    seen = seen or Seen.of(values)
    for dtype, wrong in ((pl.Int64, seen.not_whole), (pl.Float64, seen.not_number)):
        if not wrong:
            return number_column(values.str.strip_chars().cast(dtype, strict=False), table, faults)
    if seen.not_number < seen.given / 2:  # mostly numbers: the odd one out is a mistake, no date
        return number_column(values, table, faults, seen)
    return _iso_times(values, faults)


def outside_calendar(times: pl.Series) -> pl.Series:
    """Which dates or datetimes are not in the years 1 to 9999, beyond which neither Python nor polars can tell them."""
    unit = times.dtype.time_unit if isinstance(times.dtype, pl.Datetime) else None
    days = times.to_physical().cast(pl.Float64) / {None: 1, "ms": 864e5, "us": 864e8, "ns": 864e11}[unit]
    return ~days.is_between(-719_162, 2_932_897, closed="left").fill_null(value=True)


def _iso_times(values: pl.Series, faults: Faults) -> pl.Series:
    """ISO 8601 text, `2024-05-01`, `2024-05-01T10:00:00Z`, `2024-05-01 10:00:00.5+02:00`, as Datetime in UTC."""
    full = (
        values.str.strip_chars()
        .str.replace(r"^(\d{4}-\d\d-\d\d)[Tt]", "$1 ")
        .str.replace(r"^(\d{4}-\d\d-\d\d)$", "$1 00:00:00")
        .str.replace(r" (\d\d:\d\d)([Zz+-]|$)", " $1:00$2")
        .str.replace(r"[Zz]$", "+0000")
        .str.replace(r"([+-]\d\d):?(\d\d)$", "$1$2")
        .str.replace(r"( \d\d:\d\d:\d\d(\.\d+)?)([+-]\d\d)$", "${1}${3}00")
        .str.replace(r"( \d\d:\d\d:\d\d(\.\d+)?)$", "${1}+0000")
    )
    times = full.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%z", time_unit="us", strict=False)
    why = "which is neither a number nor an ISO date or time (2024-05-31T10:00:00Z)"
    remedy = "correct the row or name another column with --timestamp-column"
    faults.add(values, times.is_null() & values.is_not_null(), "no time", why, remedy)
    return times
