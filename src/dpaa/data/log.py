"""Conversion of a table to a log: columns by role, positives only, each pair once."""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass

import polars as pl

from dpaa._text import counted
from dpaa.data._engine import Engine, in_words, listed
from dpaa.data._values import Values, Wanted, read_frame, read_values
from dpaa.data.ids import IDS, Column, integers_if_unchanged
from dpaa.data.tables import Table, lines_of
from dpaa.errors import InputError

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
    """Names of the columns; None = one of the usual names."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    timestamp: str | None = None


_RULE = re.compile(
    r"\s*(?P<column>[^<>=!]+?)\s*(?P<sign>>=|<=|==|!=|>|<)\s*(?P<number>[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)\s*"
)


@dataclass(frozen=True)
class PositiveRule:
    """A comparison of a column with a number.

    Parameters
    ----------
    column : name of the column, or its role
    sign : `>=`, `<=`, `==`, `!=`, `>` or `<`
    number : to compare with
    """

    column: str
    sign: str
    number: float

    @classmethod
    def parse(cls, text: str) -> PositiveRule:
        """Parse a rule.

        Parameters
        ----------
        text : `COLUMN OP NUMBER`, such as `rating>=3`

        Returns
        -------
        the rule
        """
        match = _RULE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InputError(f"the rule for positives {text!r} is not COLUMN OP NUMBER; write for example rating>=3")
        return cls(match["column"], match["sign"], float(match["number"]))

    @property
    def sql(self) -> str:
        """The comparison, after the name of a column."""
        return f"{'=' if self.sign == '==' else self.sign} CAST('{self.number!r}' AS DOUBLE)"

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.number:g}"


@dataclass(frozen=True, eq=False)
class Log:
    """Positive interactions: `user_id`, `item_id`, and `rating`, `timestamp`, `count` where they are known."""

    frame: pl.DataFrame
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
    may_drop : a refusal mentions `--invalid drop`
    """

    drop_invalid: bool = False
    times_needed: bool = False
    may_drop: bool = True


def define_log(
    engine: Engine, table: Table, names: ColumnNames | None, positive: PositiveRule | None, reading: Reading
) -> Values:
    """Make the positive rows of a table the view `log` of an engine.

    Parameters
    ----------
    engine : where the table is read
    table : the table
    names : names of its columns
    positive : which rows count; None = all
    reading : what becomes of rows with faults

    Returns
    -------
    the columns of the view, notes, and the rows that were left out
    """
    roles = find_columns(table, names)
    wanted = {role: Wanted(roles[role], "id") for role in IDS}
    if Column.RATING in roles:
        wanted[Column.RATING] = Wanted(roles[Column.RATING], "number", required=False)
    if Column.TIMESTAMP in roles:
        wanted[Column.TIMESTAMP] = Wanted(roles[Column.TIMESTAMP], "time", required=reading.times_needed)
    if positive is not None:
        wanted["_rule"] = Wanted(rule_column(table, roles, positive), "number")
    values = read_values(engine, table, wanted, drop_invalid=reading.drop_invalid, may_drop=reading.may_drop)
    where = ""
    if positive is not None:
        values.columns.remove("_rule")
        where, total = f" WHERE _rule {positive.sql}", values.rows
        values.rows, low, high = engine.row(f"SELECT count_if(_rule {positive.sql}), min(_rule), max(_rule) FROM sound")
        note_positives(values, table, positive, total, f": the values run from {low:g} to {high:g}")
    engine.run(f"CREATE OR REPLACE TEMP VIEW log AS SELECT {listed(values.columns)} FROM sound{where}")
    return values


def note_positives(values: Values, table: Table, positive: PositiveRule, total: int, range_: str = "") -> None:
    """Note how many rows are not positive; refuse a table without a positive one."""
    if not values.rows:
        raise InputError(f"no row of {table.name} is positive by the rule {str(positive)!r}{range_}; choose another")
    if dropped := total - values.rows:
        values.notes.append(f"{table.name}: {dropped:,} of {total:,} rows are not positive ({positive})")


def define_pairs(engine: Engine, values: Values, source: str, keep_duplicates: bool) -> list[str]:
    """Make the pairs of the view `log`, each once, the table `pairs`.

    A pair has the time of its first row, of several at that time the lowest rating, so the order of rows changes
    nothing; empty values come last.

    Parameters
    ----------
    engine : has the view
    values : describes the view; a note about repeated pairs is added
    source : of the log, for the note
    keep_duplicates : whether pairs have a `count` of their rows

    Returns
    -------
    columns of the table
    """
    columns = [*values.columns, *([Column.COUNT] if keep_duplicates else [])]
    # Time and rating must come from one row, which takes a window; of one of them alone the minimum will do.
    if Column.TIMESTAMP in values.columns and Column.RATING in values.columns:
        pair = "PARTITION BY user_id, item_id"
        number = f"row_number() OVER ({pair} ORDER BY timestamp NULLS LAST, rating NULLS LAST) AS ordinal"
        number += f", CAST(count(*) OVER ({pair}) AS INTEGER) AS count" if keep_duplicates else ""
        query = f"SELECT {', '.join(columns)} FROM (SELECT *, {number} FROM log) AS numbered WHERE ordinal = 1"
    else:
        values_of = {column: f"min({column}) AS {column}" for column in (Column.RATING, Column.TIMESTAMP)}
        values_of[Column.COUNT] = "CAST(count(*) AS INTEGER) AS count"
        selected = ", ".join(values_of.get(column, column) for column in columns)
        query = f"SELECT {selected} FROM log GROUP BY user_id, item_id"
    engine.define("pairs", query)
    if repeated := values.rows - int(engine.row("SELECT count(*) FROM pairs")[0]):
        effect = "all are counted" if keep_duplicates else "each counts once (keep_duplicates=True in Python: all)"
        values.notes.append(f"{source} has {counted(repeated, 'duplicate pair', 'duplicate pairs')}; {effect}")
    return columns


def read_log(
    table: Table,
    names: ColumnNames | None = None,
    positive: PositiveRule | None = None,
    reading: Reading = Reading(),  # noqa: B008  (frozen)
    *,
    once: bool = False,
    keep_duplicates: bool = False,
) -> Log:
    """Read the positive interactions of a table into memory.

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
            define_pairs(engine, values, table.name, keep_duplicates)
        frame = engine.frame("SELECT * FROM pairs ORDER BY user_id, item_id" if once else "SELECT * FROM log")
    return Log(frame, table.typed, tuple(values.notes), values.invalid)


def read_candidates(table: Table, item: str | None = None) -> pl.Series:
    """Read the items that may be recommended: the item column of a table, or every word of a file in list form."""
    if table.parts and table.parts[0].format == "list":
        with lines_of(table.parts[0].path) as lines:
            words = pl.Series(Column.ITEM, [word for line in lines for word in line.split()], dtype=pl.String)
        return integers_if_unchanged(words)
    return read_frame(table, {Column.ITEM: Wanted(find_column(table, Column.ITEM, item), "id")})[Column.ITEM]


def find_columns(table: Table, names: ColumnNames | None) -> dict[str, str]:
    """Find the column of each role; rating and timestamp may be missing."""
    roles = {
        role: find_column(table, role, name)
        for role, name in zip(KNOWN_NAMES, astuple(names or ColumnNames()), strict=True)
        if role in IDS or name is not None or table.named(KNOWN_NAMES[role]) is not None
    }
    if roles[Column.USER] == roles[Column.ITEM]:
        column = roles[Column.USER]
        raise InputError(f"column {column!r} of {table.name} cannot hold both users and items; name another column")
    return roles


def find_column(table: Table, role: str, name: str | None) -> str:
    """Find the column of a role.

    Parameters
    ----------
    table : the table
    role : `user_id`, `item_id`, `rating` or `timestamp`
    name : of the column; None = one of the usual names
    """
    column = table.named(KNOWN_NAMES[role]) if name is None else name if name in table.columns else None
    if column is None:
        wanted = f"column {name!r}" if name is not None else f"column that is known as {role}"
        option, required = role.removesuffix("_id"), (Column.USER, Column.ITEM)
        unknown = [one.removesuffix("_id") for one in required if table.named(KNOWN_NAMES[one]) is None]
        columns = ",".join(f"{one}=…" for one in (unknown if name is None and role in required else [option]))
        raise InputError(
            f"{table.name} has no {wanted} (it has {_listed(table)}); name the column with --columns {columns} "
            f"(in Python {option}=…); if the file has no header line, name all with --columns {option}_id,…"
        )
    return column


def rule_column(table: Table, roles: dict[str, str], rule: PositiveRule) -> str:
    """Find the column that a rule compares, by its name or its role."""
    column = rule.column if rule.column in table.columns else roles.get(rule.column)
    if column is None:
        missing = f"no column {rule.column!r} for the rule {str(rule)!r}"
        raise InputError(f"{table.name} has {missing} (it has {_listed(table)}); name one of them in --positive")
    return column


def _listed(table: Table) -> str:
    return ", ".join(repr(column) for column in table.columns[:12]) + (", …" if len(table.columns) > 12 else "")
