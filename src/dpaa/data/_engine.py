"""DuckDB, which reads and prepares logs within a memory limit, spilling to disk.

The statements of `log.py` and `splits.py` are portable SQL; what differs between engines (`number` and
`fraction`) is defined here for DuckDB and in `_spark.py` for Spark.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from dpaa._io import temporary_folder
from dpaa._machine import memory_at_hand
from dpaa.errors import InputError, reason

LEAST_MEMORY = 100_000_000
"""Bytes; with less DuckDB cannot even sort."""
BUFFERS = 0.8
"""Share of the memory for DuckDB's buffers, which its limit is about; it takes more besides."""
MACROS = """
CREATE MACRO number(t) AS CAST(('0x' || substr(md5(t), 1, 16)) AS UBIGINT);
CREATE MACRO fraction(t, half) AS
    CAST(CAST(('0x' || substr(md5(t), 16 * half - 15, 16)) AS UBIGINT) >> 11 AS DOUBLE) / 9007199254740992.0;
"""
"""`number`: the first 64 bits of a text's MD5; `fraction`: 53 bits of either half, as a number from 0 to below 1."""


def _database(file: Path | str, spilled: Path, memory: int | None = None) -> duckdb.DuckDBPyConnection:
    given = memory if memory is not None else memory_at_hand() // 2
    limit = max(int(BUFFERS * given), LEAST_MEMORY)
    config: dict[str, Any] = {"memory_limit": f"{limit // 1000}KB", "temp_directory": str(spilled)}
    # An untrusted file must not make DuckDB download an extension.
    config |= {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb.connect(file, config=config)
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false;" + MACROS)
    return connection


@cache
def shared_database() -> duckdb.DuckDBPyConnection:
    """The database in memory of this process, for small tables: a new one for each would take 30 ms."""
    return _database(":memory:", Path(tempfile.gettempdir()) / f"dpaa-spilled-{os.getpid()}")


os.register_at_fork(after_in_child=shared_database.cache_clear)  # its threads do not survive a fork


class Engine:
    """A DuckDB connection with its own folder for spilling to disk.

    Parameters
    ----------
    folder : where temporary files of a log that may be large are made; None = small tables, in memory
    memory : bytes that may be taken, with a folder; None = half of the available memory
    """

    def __init__(self, folder: Path | None = None, memory: int | None = None) -> None:
        if folder is None:
            self._home = temporary_folder("dpaa-work-")
            self.connection = shared_database().cursor()
        else:  # tables of a log that may be large are kept in a file, compressed
            self._home = tempfile.TemporaryDirectory(prefix="work-", dir=folder)
            self.connection = _database(Path(self._home.name) / "work.duckdb", Path(self._home.name, "spilled"), memory)
        self._numbers = count()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        self._home.cleanup()

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Execute a statement.  Returns the rows of its result."""
        return self.connection.execute(statement).fetchall()

    def define(self, name: str, query: str) -> None:
        """Keep the result of a query in a table."""
        self.run(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a result."""
        return self.run(query)[0]

    def write(self, query: str, file: Path, compression: str = "zstd") -> None:
        """Write a result to a Parquet file, in its order."""
        self.run(f"COPY ({query}) TO {text(file)} (FORMAT parquet, COMPRESSION {compression})")

    def new_file(self) -> Path:
        """Return the path of another temporary file."""
        return Path(self._home.name) / f"{next(self._numbers)}.parquet"

    def frame(self, query: str) -> pl.DataFrame:
        """A result as a Polars frame, in its order; DuckDB's own way would need pyarrow."""
        self.write(query, file := self.new_file(), "uncompressed")
        # Not mapped: the file goes now, and the frame stays.
        frame = pl.read_parquet(file, glob=False, memory_map=False)
        file.unlink()
        return frame

    def put(self, name: str, frame: pl.DataFrame) -> None:
        """Make a Polars frame a table."""
        frame.write_parquet(file := self.new_file(), compression="uncompressed")
        self.define(name, f"SELECT * FROM read_parquet({text(file)})")


def text(value: object) -> str:
    """A value as an SQL string."""
    return "'" + str(value).replace("'", "''") + "'"


def name(column: str) -> str:
    """A column name as an SQL identifier."""
    return '"' + column.replace('"', '""') + '"'


def listed(columns: Iterable[str]) -> str:
    """Column names as a list of SQL identifiers."""
    return ", ".join(map(name, columns))


@contextmanager
def in_words(source: str) -> Iterator[None]:
    """Turn errors of DuckDB into sentences about what is read."""
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.Error, pl.exceptions.PolarsError) as error:
        full = isinstance(error, duckdb.OutOfMemoryException)
        remedy = "give more memory with --memory" if full else "check its quotes and line ends, or pass --format"
        raise InputError(f"{source} cannot be read ({engine_reason(error)}); {remedy}") from None


def engine_reason(error: BaseException) -> str:
    """Why DuckDB failed, in a few words."""
    return re.sub(r"^[A-Z][A-Za-z -]* Error: ", "", reason(error))
