"""A table becomes a log: which column is what, ids of one type, times that can be compared, positives only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace

import numpy as np
import polars as pl

from dpaa._text import counted
from dpaa.data.columns import Column
from dpaa.data.faults import Faults
from dpaa.data.ids import distinct_ids, encode, integers_if_unchanged, is_text, kind
from dpaa.data.positive import PositiveRule
from dpaa.data.tables import ListTable, Table
from dpaa.data.values import complete_column, id_column, number_column, time_column
from dpaa.errors import InputError, UnreadableError, need_type

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
    invalid: pl.DataFrame | None = None
    """Rows that were left out: `source, row, fault, content`; None where there are none."""


@dataclass(frozen=True)
class Reading:
    """How the rows of a log are read."""

    drop_invalid: bool = False
    """Whether rows with faults are left out; else they are refused, all kinds of faults in one sentence."""
    times_needed: bool = False
    """Whether a row without a time has a fault."""
    may_drop: bool = True
    """Whether a refusal may say that they can be left out."""


def read_log(
    table: Table,
    names: ColumnNames | None = None,
    positive: PositiveRule | None = None,
    reading: Reading = Reading(),  # noqa: B008  (frozen)
) -> Log:
    """The positive interactions of a table."""
    roles, rule_column = find_columns(table, names, positive)
    wanted = list(dict.fromkeys([*roles.values(), *([rule_column] if rule_column else [])]))
    table, frame, faults = _read(table, wanted)
    if not frame.height and not faults.found:
        raise InputError(f"{table.name} has no rows; add some or leave it out")
    columns = [id_column(frame[roles[role]], table, faults).alias(role) for role in (Column.USER, Column.ITEM)]
    if Column.RATING in roles:
        columns.append(number_column(frame[roles[Column.RATING]], table, faults).alias(Column.RATING))
    if Column.TIMESTAMP in roles:
        times = time_column(frame[roles[Column.TIMESTAMP]], table, faults, reading.times_needed)
        columns += [] if times is None else [times.alias(Column.TIMESTAMP)]
    values = None
    if rule_column is not None:
        values = number_column(frame[rule_column], table, faults)
        complete_column(frame[rule_column], table, faults)
    log = Log(pl.DataFrame(columns), table.name, table.typed, (*table.notes, *dict.fromkeys(faults.notes)))
    if faults.found:
        log, values = _without_faults(log, values, faults, reading, wanted)
    return log if positive is None or values is None else _positives(log, positive, values)


def _read(table: Table, columns: list[str]) -> tuple[Table, pl.DataFrame, Faults]:
    """The columns of the rows that are rows, and what the others are; those are looked for where reading fails."""
    try:
        return table, table.read(columns), Faults(table)
    except UnreadableError:
        raise
    except InputError:
        table, torn = table.without_torn(columns)
        if not torn:
            raise
        faults = Faults(table)
        faults.add_torn(torn)
        return table, table.read(columns), faults


def _without_faults(
    log: Log, values: pl.Series | None, faults: Faults, reading: Reading, columns: list[str]
) -> tuple[Log, pl.Series | None]:
    """The rows without faults, where those with faults are not wanted."""
    if not reading.drop_invalid:
        faults.raise_if_any(reading.may_drop)
    kept = np.ones(log.frame.height, dtype=bool)
    kept[faults.rows] = False
    if not kept.any():
        raise all_invalid(log.source, faults)
    sound = pl.Series(kept)
    note = faults.note(log.frame.height)
    log = replace(log, frame=log.frame.filter(sound), notes=(*log.notes, note), invalid=faults.as_table(columns))
    ids = [_integers_again(log, column) for column in (Column.USER, Column.ITEM)]
    log = replace(log, frame=log.frame.with_columns(ids))
    return log, None if values is None else values.filter(sound)


def all_invalid(source: str, faults: Faults) -> InputError:
    """The sentence where nothing is left."""
    return InputError(f"every row of {source} is invalid: {faults.in_words()}; check how the file is read")


def _integers_again(log: Log, column: str) -> pl.Series:
    """Ids of a text file are integers where all that is left are: a torn one may have made them text."""
    ids = log.frame[column]
    return integers_if_unchanged(ids) if not log.typed and is_text(ids) else ids


def once_each(log: Log, keep_duplicates: bool = False) -> Log:
    """Each pair once: its first row by time, of several at that time the one with the lowest rating.

    So the order of rows changes nothing; `keep_duplicates` adds a `count` of a pair's rows.
    """
    frame = log.frame
    users, items = (distinct_ids([frame[column]]) for column in (Column.USER, Column.ITEM))
    keys = encode(frame[Column.USER], users).astype(np.int64) * len(items) + encode(frame[Column.ITEM], items)
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1]))[: len(keys)])
    counts = np.diff(starts, append=frame.height)
    repeated = frame.height - len(starts)
    if repeated:
        several = np.repeat(counts > 1, counts)
        rows = order[several]
        by = [column for column in (Column.RATING, Column.TIMESTAMP) if column in frame.columns]
        values = (frame[column].to_physical().to_numpy()[rows] for column in by)
        order[several] = rows[np.lexsort((*values, keys[rows]))]
    first = order[starts]
    in_file = np.argsort(first)
    if repeated:
        frame = frame[first[in_file]]
    if keep_duplicates:
        frame = frame.with_columns(pl.Series(Column.COUNT, counts[in_file], dtype=pl.Int32))
    if not repeated:
        return replace(log, frame=frame)
    return replace(log, frame=frame, notes=(*log.notes, duplicates_note(log.source, repeated, keep_duplicates)))


def duplicates_note(source: str, repeated: int, keep_duplicates: bool) -> str:
    """What became of repeated pairs."""
    pairs = counted(repeated, "duplicate pair", "duplicate pairs")
    told = "all are counted" if keep_duplicates else "each counts once; pass --keep-duplicates to count them all"
    return f"{source} has {pairs}; {told}"


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


def find_columns(
    table: Table, names: ColumnNames | None, positive: PositiveRule | None
) -> tuple[dict[str, str], str | None]:
    """Which column plays which role (rating and timestamp may be missing), and which one the rule looks at."""
    names = ColumnNames() if names is None else names
    need_type(names, ColumnNames, "names", "give ColumnNames(user=…, item=…)")
    roles = _roles(table, names)
    return roles, None if positive is None else _rule_column(table, roles, positive)


def _roles(table: Table, names: ColumnNames) -> dict[str, str]:
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
        f"{option}=…); if the file has no header line, name its columns with --columns"
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
        raise none_positive(log.source, rule, float(values.min()), float(values.max()))  # type: ignore[arg-type]
    if not dropped:
        return log
    note = negatives_note(log.source, rule, dropped, len(kept))
    return replace(log, frame=log.frame.filter(kept), notes=(*log.notes, note))


def none_positive(source: str, rule: PositiveRule, low: float, high: float) -> InputError:
    """The sentence where the rule leaves nothing."""
    return InputError(
        f"no row of {source} is positive by the rule {str(rule)!r}: the values run from {low:g} to {high:g}; "
        "choose another --positive"
    )


def negatives_note(source: str, rule: PositiveRule, dropped: int, rows: int) -> str:
    """What the rule left out."""
    return f"{source}: {dropped:,} of {rows:,} rows are not positive ({rule}) and were dropped"
