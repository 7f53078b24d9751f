"""A table becomes a log: which column is what, ids of one type, times that can be compared, positives only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace

import numpy as np
import polars as pl

from dpaa.data.columns import Column
from dpaa.data.ids import checked_type, distinct_ids, encode, integers_if_unchanged, is_text, kind
from dpaa.data.positive import PositiveRule
from dpaa.data.tables import ListTable, Table
from dpaa.errors import InputError, need_type
from dpaa.words import counted

KNOWN_NAMES: dict[str, tuple[str, ...]] = {
    Column.USER: (
        *("user_id", "user", "userid", "uid", "user_idx", "visitorid", "visitor_id", "customer_id", "customerid"),
        *("reviewerid", "reviewer_id", "member_id", "memberid", "session_id", "sessionid", "account_id", "u"),
    ),
    Column.ITEM: (
        *("item_id", "item", "itemid", "iid", "item_idx", "movieid", "movie_id", "product_id", "productid", "asin"),
        *("parent_asin", "video_id", "videoid", "song_id", "songid", "track_id", "artist_id", "artistid", "book_id"),
        *("isbn", "article_id", "news_id", "business_id", "i"),
    ),
    Column.RATING: ("rating", "ratings", "score", "stars", "overall", "rate", "watch_ratio"),
    Column.TIMESTAMP: (
        *("timestamp", "time", "ts", "unixreviewtime", "unix_time", "datetime", "date", "created_at", "event_time"),
    ),
}
"""What columns are usually called, the likeliest first; compared without regard to case."""


@dataclass(frozen=True)
class ColumnNames:
    """What the columns are called; None = one of the usual names."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    timestamp: str | None = None

    def __post_init__(self) -> None:
        for role in fields(self):
            if not isinstance(name := getattr(self, role.name), str | None):
                raise InputError(f"the {role.name} column must be given by its name, got {name!r}; write text")


@dataclass(frozen=True, eq=False)
class Log:
    """Positive interactions in file order: `user_id`, `item_id`, and `rating`, `timestamp` where they are known."""

    frame: pl.DataFrame
    source: str
    typed: bool
    """Whether the ids came with a type; those of a text file may be taken as text where other files need it."""
    notes: tuple[str, ...] = ()


def read_log(table: Table, names: ColumnNames | None = None, positive: PositiveRule | None = None) -> Log:
    """The positive interactions of a table."""
    names = ColumnNames() if names is None else names
    need_type(names, ColumnNames, "names", "give ColumnNames(user=…, item=…)")
    roles = _find_columns(table, names)
    rule_column = None if positive is None else _rule_column(table, roles, positive)
    frame = table.read(list(dict.fromkeys([*roles.values(), *([rule_column] if rule_column else [])])))
    if not frame.height:
        raise InputError(f"{table.name} has no rows; add some or leave it out")
    columns = [id_column(frame[roles[role]], table).alias(role) for role in (Column.USER, Column.ITEM)]
    if Column.RATING in roles:
        columns.append(number_column(frame[roles[Column.RATING]], table).alias(Column.RATING))
    if Column.TIMESTAMP in roles:
        columns.append(_times(frame[roles[Column.TIMESTAMP]], table).alias(Column.TIMESTAMP))
    log = Log(pl.DataFrame(columns), table.name, table.typed)
    if positive is None or rule_column is None:
        return log
    return _positives(log, positive, complete_column(number_column(frame[rule_column], table), table))


def once_each(log: Log, keep_duplicates: bool = False) -> Log:
    """Each pair once: its first row by time, else by position; `keep_duplicates` adds a `count` of its rows."""
    frame = log.frame
    users, items = (distinct_ids([frame[column]]) for column in (Column.USER, Column.ITEM))
    keys = encode(frame[Column.USER], users).astype(np.int64) * len(items) + encode(frame[Column.ITEM], items)
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1])))
    counts = np.diff(starts, append=frame.height)
    repeated = frame.height - len(starts)
    if repeated and Column.TIMESTAMP in frame.columns:
        several = np.repeat(counts > 1, counts)
        rows = order[several]
        time = frame[Column.TIMESTAMP].to_physical().to_numpy()[rows]
        order[several] = rows[np.lexsort((time, keys[rows]))]
    first = order[starts]
    in_file = np.argsort(first)
    if repeated:
        frame = frame[first[in_file]]
    if keep_duplicates:
        frame = frame.with_columns(pl.Series(Column.COUNT, counts[in_file], dtype=pl.Int32))
    if not repeated:
        return replace(log, frame=frame)
    pairs = counted(repeated, "duplicate pair", "duplicate pairs")
    told = "all are counted" if keep_duplicates else "each counts once; pass --keep-duplicates to count them all"
    return replace(log, frame=frame, notes=(*log.notes, f"{log.source} has {pairs}; {told}"))


def as_one_type(logs: Sequence[Log]) -> list[Log]:
    """Logs whose ids agree in type: integers of a text file become text where another log has text."""
    logs = list(logs)
    for column in (Column.USER, Column.ITEM):
        places = [place for place, log in enumerate(logs) if column in log.frame.columns]
        if any(is_text(logs[place].frame[column]) for place in places):
            for place in places:
                log = logs[place]
                if not log.typed:
                    logs[place] = replace(log, frame=log.frame.with_columns(pl.col(column).cast(pl.String)))
        by_kind = {kind(logs[place].frame[column]): logs[place].source for place in places}
        if len(by_kind) > 1:
            text, integers = by_kind["text"], by_kind["integers"]
            raise InputError(f"column {column!r} is text in {text} and integers in {integers}; cast one of them")
    return logs


def read_candidates(table: Table, item: str | None = None) -> Log:
    """The items that may be recommended: the `item_id` column of a table, or every word of a file in list form."""
    if isinstance(table, ListTable):
        ids = pl.Series(Column.ITEM, [word for line in table.words() for word in line], dtype=pl.String)
    else:
        column = find_column(table, Column.ITEM, item)
        ids = table.read([column])[column]
    if not len(ids):
        raise InputError(f"{table.name} has no rows; leave the candidates out to allow every item")
    return Log(id_column(ids, table).alias(Column.ITEM).to_frame(), table.name, table.typed)


def _find_columns(table: Table, names: ColumnNames) -> dict[str, str]:
    """Which column plays which role; rating and timestamp may be missing."""
    given = dict(zip(KNOWN_NAMES, astuple(names), strict=True))
    roles = {
        role: find_column(table, role, name)
        for role, name in given.items()
        if role in (Column.USER, Column.ITEM) or name is not None or _usual(table, role) is not None
    }
    if roles[Column.USER] == roles[Column.ITEM]:
        raise InputError(
            f"column {roles[Column.USER]!r} of {table.name} cannot hold both users and items; "
            "name the columns with --user-column and --item-column"
        )
    return roles


def find_column(table: Table, role: str, name: str | None) -> str:
    """The column that plays a role: the one that is named, else the one with a usual name."""
    if name is not None and name in table.columns:
        return name
    found = _usual(table, role) if name is None else None
    if found is not None:
        return found
    wanted = f"column {name!r}" if name is not None else f"column that is known as {role}"
    option = role.removesuffix("_id")
    raise InputError(
        f"{table.name} has no {wanted} (it has {_listed(table)}); name the column with --{option}-column (in Python "
        f"{option}=…), or add a header line if the file has none"
    )


def _usual(table: Table, role: str) -> str | None:
    by_lower = {column.strip().lower(): column for column in reversed(table.columns)}
    return next((by_lower[name] for name in KNOWN_NAMES[role] if name in by_lower), None)


def _listed(table: Table) -> str:
    return ", ".join(repr(column) for column in table.columns[:12]) + (", …" if len(table.columns) > 12 else "")


def _rule_column(table: Table, roles: dict[str, str], rule: PositiveRule) -> str:
    if rule.column in table.columns:
        return rule.column
    if rule.column in roles:
        return roles[rule.column]
    raise InputError(
        f"{table.name} has no column {rule.column!r} for the rule {str(rule)!r} (it has {_listed(table)}); "
        "name one of them in --positive"
    )


def _positives(log: Log, rule: PositiveRule, values: pl.Series) -> Log:
    kept = rule.holds(values)
    dropped = len(kept) - int(kept.sum())
    if dropped == len(kept):
        low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
        raise InputError(
            f"no row of {log.source} is positive by the rule {str(rule)!r}: the values run from {low:g} to {high:g}; "
            "choose another --positive"
        )
    if not dropped:
        return log
    note = f"{log.source}: {dropped:,} of {len(kept):,} rows are not positive ({rule}) and were dropped"
    return replace(log, frame=log.frame.filter(kept), notes=(*log.notes, note))


def id_column(ids: pl.Series, table: Table) -> pl.Series:
    """Ids as integers or text; an empty one is an error."""
    if table.typed:
        ids = checked_type(ids, f"the ids in column {ids.name!r} of {table.name}")
    complete_column(ids.replace("", None) if is_text(ids) else ids, table)
    return ids if table.typed else integers_if_unchanged(ids)


def number_column(values: pl.Series, table: Table) -> pl.Series:
    """A column of numbers; text of a text file becomes Float64; empty values stay empty."""
    if values.dtype.is_numeric():
        numbers = plain_numbers(values)
    elif values.dtype in (pl.String, pl.Null):
        numbers = values.str.strip_chars().cast(pl.Float64, strict=False) if values.dtype == pl.String else values
    else:
        raise InputError(f"column {values.name!r} of {table.name} is {values.dtype}; give a column of numbers")
    wrong = numbers.is_null() & values.is_not_null()
    if numbers.dtype.is_float():
        wrong = wrong | (numbers.is_infinite() | numbers.is_nan()).fill_null(value=False)
    _refuse(values, wrong, table, "which is not a number; correct the row or name another column")
    return numbers


def _refuse(values: pl.Series, wrong: pl.Series, table: Table, why: str) -> None:
    """Name the first value that is wrong, and its row."""
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise InputError(f"column {values.name!r} has {values[row]!r} in {table.place(row)}, {why}")


def plain_numbers(values: pl.Series) -> pl.Series:
    """Numbers in a type that numpy has too: decimals and short floats as Float64, integers of 128 bits if need be."""
    if values.dtype.is_integer():
        if values.dtype not in (pl.Int128, pl.UInt128):
            return values
        whole = values.cast(pl.Int64, strict=False)
        if whole.null_count() == values.null_count():
            return whole
    return values if values.dtype == pl.Float32 else values.cast(pl.Float64)


def complete_column(values: pl.Series, table: Table) -> pl.Series:
    """The column itself; an empty value is an error that names its row."""
    if values.has_nulls():
        row = int(values.is_null().arg_max() or 0)
        raise InputError(f"column {values.name!r} is empty in {table.place(row)}; fill it in or remove the row")
    return values


def _times(values: pl.Series, table: Table) -> pl.Series:
    """Times as they are if they are numbers, else as Datetime in UTC; times without a zone are taken as UTC."""
    if values.dtype.is_temporal() and values.dtype not in (pl.Date, pl.Datetime):
        raise InputError(f"column {values.name!r} of {table.name} is {values.dtype}; give dates, datetimes or numbers")
    if values.dtype in (pl.Date, pl.Datetime) and (outside := outside_calendar(values)).any():
        row = int(outside.arg_max() or 0)
        raise InputError(
            f"column {values.name!r} has a time outside of the years 1 to 9999 in {table.place(row)}; correct the row"
        )
    if values.dtype == pl.Date:
        values = values.cast(pl.Datetime("us"))
    if isinstance(values.dtype, pl.Datetime):
        zone = values.dtype.time_zone
        times = values.dt.replace_time_zone("UTC") if zone is None else values.dt.convert_time_zone("UTC")
        return complete_column(times, table)
    if values.dtype == pl.String:
        values = complete_column(values, table)
        for dtype in (pl.Int64, pl.Float64):
            numbers = values.str.strip_chars().cast(dtype, strict=False)
            if not numbers.has_nulls():
                return number_column(numbers, table)
        if numbers.null_count() < len(numbers) / 2:  # mostly numbers: the odd one out is a mistake, not a date
            return number_column(values, table)
        return _iso_times(values, table)
    return complete_column(number_column(values, table), table)


def outside_calendar(times: pl.Series) -> pl.Series:
    """Which dates or datetimes are not in the years 1 to 9999, beyond which neither Python nor polars can tell them."""
    unit = times.dtype.time_unit if isinstance(times.dtype, pl.Datetime) else None
    days = times.to_physical().cast(pl.Float64) / {None: 1, "ms": 864e5, "us": 864e8, "ns": 864e11}[unit]
    return ~days.is_between(-719_162, 2_932_897, closed="left").fill_null(value=True)


def _iso_times(values: pl.Series, table: Table) -> pl.Series:
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
    wanted = "which is neither a number nor an ISO date or time (2024-05-31T10:00:00Z)"
    remedy = "correct the row or name another column with --timestamp-column"
    _refuse(values, times.is_null(), table, f"{wanted}; {remedy}")
    return times
