"""The rows of a query: PostgreSQL (extra `sql`), DuckDB, SQLite.

The connection only reads.  Whatever a URL holds besides names, a password above all, is neither shown nor kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import duckdb
import polars as pl

from dpaa._io import check_regular
from dpaa._text import hide_secrets, shortened, without_secrets
from dpaa.data.tables import Table, as_table
from dpaa.errors import InputError, MissingExtraError, reason

ROWS_AT_ONCE = 50_000
PATIENCE = 10
"""Seconds to wait for a server, unless the URL says otherwise."""
LONGEST_QUERY = 200
"""Characters of a query that a name quotes."""
ONE_SELECT = "only one SELECT is run"
Rows = Callable[[int], Sequence[Sequence[Any]]]


def query_table(url: str, query: str) -> Table:
    """The rows that a query gives, with the columns that it names."""
    scheme, mark, rest = url.partition("://")
    opening = _DATABASES.get(scheme.partition("+")[0]) if mark else None
    if opening is None:
        known = "postgresql://user@host/database, duckdb:///file.duckdb, sqlite:///file.db"
        raise InputError(f"this is no URL of a database that can be read; write one such as {known}")
    shown = without_secrets(url)
    if not query.strip():
        raise InputError("the query is empty; write a SELECT with columns for users and items")
    try:
        with opening(rest, query) as (names, fetch):
            frame = _framed(names, fetch)
    except InputError:
        raise
    except Exception as error:  # a driver may raise anything
        said = hide_secrets(reason(error), url)
        raise InputError(f"the query to {shown} failed ({said}); check the URL, the login and the query") from None
    if len(frame.columns) < len(names):
        raise InputError(f"the query to {shown} gives two columns of one name; name each with AS")
    return as_table(frame, f"the query to {shown} ({shortened(query.strip(), LONGEST_QUERY)})", first=1)


def _framed(names: list[str], fetch: Rows) -> pl.DataFrame:
    """The rows, in pieces, as a frame."""
    once = list(dict.fromkeys(names))
    if len(once) < len(names):
        return pl.DataFrame(schema=once)
    parts = []
    while rows := fetch(ROWS_AT_ONCE):
        columns = [
            pl.Series(name, values, strict=True) for name, values in zip(names, zip(*rows, strict=True), strict=True)
        ]
        parts.append(pl.DataFrame(columns))
    return pl.concat(parts, how="vertical_relaxed") if parts else pl.DataFrame(schema=names)


@contextmanager
def _postgresql(rest: str, query: str) -> Iterator[tuple[list[str], Rows]]:
    psycopg = _driver()
    patient = {} if "connect_timeout=" in rest else {"connect_timeout": PATIENCE}
    with psycopg.connect(f"postgresql://{rest}", **patient) as connection:
        connection.read_only = True
        text = import_module("psycopg.types.string").TextLoader
        for kind in ("uuid", "json", "jsonb", "inet", "cidr"):
            connection.adapters.register_loader(kind, text)
        with connection.cursor(name="dpaa") as cursor:  # the result stays on the server and comes in pieces
            cursor.execute(query)
            yield [column.name for column in cursor.description or ()], cursor.fetchmany


@contextmanager
def _duckdb(rest: str, query: str) -> Iterator[tuple[list[str], Rows]]:
    with duckdb.connect(str(_file(rest)), read_only=True) as connection:
        kinds = [statement.type.name for statement in connection.extract_statements(query)]
        if kinds != ["SELECT"]:  # COPY … TO writes files even where the database is opened to be read
            raise ValueError(f"{ONE_SELECT}, this is {' and '.join(kinds) or 'none'}")
        connection.execute(query)
        yield [column[0] for column in connection.description or ()], connection.fetchmany


@contextmanager
def _sqlite(rest: str, query: str) -> Iterator[tuple[list[str], Rows]]:
    with closing(sqlite3.connect(f"file:{quote(str(_file(rest)))}?mode=ro", uri=True)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.set_authorizer(_no_other_file)
        try:
            cursor = connection.execute(query)
        except sqlite3.DatabaseError as error:
            if "authoriz" in str(error):
                raise ValueError(ONE_SELECT) from None
            raise
        yield [column[0] for column in cursor.description or ()], cursor.fetchmany


def _no_other_file(action: int, *_: object) -> int:
    """ATTACH and VACUUM INTO make files even where the database is opened to be read."""
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


_DATABASES: dict[str, Any] = {
    "postgresql": _postgresql,
    "postgres": _postgresql,
    "duckdb": _duckdb,
    "sqlite": _sqlite,
}


def _file(rest: str) -> Path:
    """`/clicks.db` is a file here, `//srv/clicks.db` one from the root; a new file is not made."""
    file = Path(unquote(rest.partition("?")[0]).removeprefix("/"))
    check_regular(file)
    return file.absolute()


def _driver() -> Any:
    try:
        return import_module("psycopg")
    except ImportError:
        raise MissingExtraError("reading PostgreSQL", "sql") from None
