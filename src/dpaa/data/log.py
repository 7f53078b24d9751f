"""A table becomes a log: which column is what, ids of one type, times that can be compared, positives only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace

import polars as pl

from dpaa._text import counted
from dpaa.data._engine import Engine, SqlEngine, in_words, name
from dpaa.data._values import Values, Wanted, read_frame, read_values
from dpaa.data.columns import Column
from dpaa.data.ids import integers_if_unchanged, is_text, kind
from dpaa.data.positive import PositiveRule
from dpaa.data.tables import ListPart, Table, as_table
from dpaa.errors import InputError, need_type

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
    """Positive interactions: `user_id`, `item_id`, and `rating`, `timestamp`, `count` where they are known."""

    frame: pl.DataFrame
    source: str
    typed: bool
    """Whether the ids came with a type; those of a text file may be taken as text where other files need it."""
    notes: tuple[str, ...] = ()
    invalid: pl.DataFrame | None = None
    """Rows that were left out: `source, row, fault, content`; None where there are none."""


@dataclass(frozen=True)
class Reading:
    """How the rows of a log are read.

    Parameters
    ----------
    drop_invalid : leave out rows with faults; else they are refused, all kinds of faults in one sentence
    times_needed : a row without a time has a fault
    may_drop : a refusal mentions that they can be left out
    """

    drop_invalid: bool = False
    times_needed: bool = False
    may_drop: bool = True


def define_log(
    engine: Engine,
    table: Table,
    names: ColumnNames | None = None,
    positive: PositiveRule | None = None,
    reading: Reading = Reading(),  # noqa: B008  (frozen)
) -> Values:
    """Make the positive rows of a table the view `log` of an engine.

    Parameters
    ----------
    engine : where the table is read
    table : the table
    names : what its columns are called
    positive : which rows count; None = all
    reading : what becomes of rows with faults

    Returns
    -------
    the columns of the view, notes, and the rows that were left out
    """
    roles, rule_column = find_columns(table, names, positive)
    wanted = {role: Wanted(roles[role], "id") for role in (Column.USER, Column.ITEM)}
    if Column.RATING in roles:
        wanted[Column.RATING] = Wanted(roles[Column.RATING], "number", required=False)
    if Column.TIMESTAMP in roles:
        wanted[Column.TIMESTAMP] = Wanted(roles[Column.TIMESTAMP], "time", required=reading.times_needed)
    if rule_column is not None:
        wanted["_rule"] = Wanted(rule_column, "number")
    values = read_values(engine, table, wanted, drop_invalid=reading.drop_invalid, may_drop=reading.may_drop)
    columns = [role for role in values.columns if role != "_rule"]
    where = ""
    if positive is not None:
        where = f" WHERE _rule {positive.sql}"
        kept, low, high = engine.row(f"SELECT count_if(_rule {positive.sql}), min(_rule), max(_rule) FROM sound")
        if not kept:
            raise InputError(
                f"no row of {table.name} is positive by the rule {str(positive)!r}: the values run from {low:g} to "
                f"{high:g}; choose another --positive"
            )
        if dropped := values.rows - kept:
            values.notes.append(
                f"{table.name}: {dropped:,} of {values.rows:,} rows are not positive ({positive}) and were dropped"
            )
        values.rows = kept
    engine.run(f"CREATE OR REPLACE TEMP VIEW log AS SELECT {', '.join(map(name, columns))} FROM sound{where}")
    values.columns.pop("_rule", None)
    return values


def define_pairs(engine: SqlEngine, columns: Sequence[str], keep_duplicates: bool) -> int:
    """Make the pairs of the view `log`, each once, the table `pairs`.

    A pair has the time of its first row, of several at that time the lowest rating, so the order of rows changes
    nothing; empty values come last.

    Parameters
    ----------
    engine : has the view
    columns : those of the view
    keep_duplicates : whether pairs have a `count` of their rows

    Returns
    -------
    number of pairs
    """
    timed, rated = Column.TIMESTAMP in columns, Column.RATING in columns
    rows, counts = "log", "count(*)"
    if timed and rated:
        rows = (
            "(SELECT user_id, item_id, timestamp, min(rating) AS rating, count(*) AS n "
            "FROM log GROUP BY user_id, item_id, timestamp) AS moments"
        )
        counts = "sum(n)"
    selected = ["user_id", "item_id"]
    if rated:
        first = f"CASE WHEN min(timestamp) IS NULL THEN min(rating) ELSE {engine.first_by}(rating, timestamp) END"
        selected.append(f"{first if timed else 'min(rating)'} AS rating")
    if timed:
        selected.append("min(timestamp) AS timestamp")
    if keep_duplicates:
        selected.append(f"CAST({counts} AS INTEGER) AS count")
    engine.define("pairs", f"SELECT {', '.join(selected)} FROM {rows} GROUP BY user_id, item_id")
    return int(engine.row("SELECT count(*) FROM pairs")[0])


def read_log(
    table: Table,
    names: ColumnNames | None = None,
    positive: PositiveRule | None = None,
    reading: Reading = Reading(),  # noqa: B008  (frozen)
    *,
    once: bool = False,
    keep_duplicates: bool = False,
) -> Log:
    """The positive interactions of a table, in memory.

    Parameters
    ----------
    table, names, positive, reading : as in `define_log`
    once : each pair once, sorted; else rows in their order
    keep_duplicates : with `once`, count how often a pair occurs

    Returns
    -------
    the log
    """
    with Engine() as engine, in_words(table.name):
        values = define_log(engine, table, names, positive, reading)
        if once:
            pairs = define_pairs(engine, list(values.columns), keep_duplicates)
            if repeated := values.rows - pairs:
                values.notes.append(duplicates_note(table.name, repeated, keep_duplicates))
        frame = engine.frame("SELECT * FROM pairs ORDER BY user_id, item_id" if once else "SELECT * FROM log")
    return Log(frame, table.name, table.typed, tuple(values.notes), values.invalid)


def duplicates_note(source: str, repeated: int, keep_duplicates: bool) -> str:
    """What became of repeated pairs."""
    pairs = counted(repeated, "duplicate pair", "duplicate pairs")
    effect = "all are counted" if keep_duplicates else "each counts once; pass --keep-duplicates to count them all"
    return f"{source} has {pairs}; {effect}"


def as_one_type(logs: Sequence[Log]) -> list[Log]:
    """Logs whose ids agree in type: integers of a text file become text where another log has text."""
    logs = list(logs)
    for column in (Column.USER, Column.ITEM):
        having = [index for index, log in enumerate(logs) if column in log.frame.columns]
        if any(is_text(logs[index].frame[column]) for index in having):
            for index in having:
                log = logs[index]
                if not log.typed:
                    logs[index] = replace(log, frame=log.frame.with_columns(pl.col(column).cast(pl.String)))
        by_kind = {kind(logs[index].frame[column]): logs[index].source for index in having}
        if len(by_kind) > 1:
            text, integers = by_kind["text"], by_kind["integers"]
            raise InputError(f"column {column!r} is text in {text} and integers in {integers}; cast one of them")
    return logs


def read_candidates(table: Table, item: str | None = None) -> Log:
    """The items that may be recommended: the `item_id` column of a table, or every word of a file in list form."""
    source, part = table, table.parts[0]
    if isinstance(part, ListPart):
        source, item = as_table({Column.ITEM: part.words()}, table.name), None
    column = find_column(source, Column.ITEM, item)
    try:
        ids = read_frame(source, {Column.ITEM: Wanted(column, "id")})
    except InputError as error:
        if "has no rows" in str(error):
            raise InputError(f"{table.name} has no rows; leave the candidates out to allow every item") from None
        raise
    return Log(ids if source is table else ids.select(integers_if_unchanged(ids[Column.ITEM])), table.name, table.typed)


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
