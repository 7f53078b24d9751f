"""Parquet files, ours and untrusted ones: the sizes in the footer are checked before Polars or DuckDB read the pages.

A few kilobytes may claim billions of rows, or unpack to gigabytes, so rows and bytes must be in proportion to the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from pathlib import Path
from threading import RLock

import polars as pl

from dpaa._io import check_regular, check_text
from dpaa._machine import memory_at_hand
from dpaa.data._engine import engine_reason, shared_database
from dpaa.errors import InputError

MAGIC = b"PAR1"
ROWS_AT_LEAST, ROWS_PER_BYTE = 1_000_000, 20
"""Rows that any file may have, and further ones per byte: a pair of ids takes more than that."""
BYTES_AT_LEAST, BYTES_PER_BYTE = 64_000_000, 50
"""The same for unpacked bytes."""
BYTES_PER_VALUE = 16
"""What a value takes in memory at least: a number half of it, a short text the whole."""


def parquet_schema(file: Path) -> dict[str, pl.DataType]:
    """Names and types of the columns, from the footer of the file."""
    with _as_polars_error(file):
        check_size(file, ())
        return dict(pl.scan_parquet(absolute(file), glob=False).collect_schema())


def read_parquet(file: Path, columns: Sequence[str]) -> pl.DataFrame:
    """Some of the columns of one file; one whose content would be out of proportion is refused before it is read.

    A damaged file raises an error of Polars, whose words are for whoever knows what the file is for.

    Parameters
    ----------
    file : the file
    columns : names of the columns, in any order

    Returns
    -------
    a frame with these columns
    """
    with _as_polars_error(file):
        rows = next(iter(check_size(file, columns).values()), 0)
        if rows * len(columns) * BYTES_PER_VALUE > memory_at_hand():
            raise InputError(f"{file} claims {rows:,} rows, more than the memory at hand; use a smaller file")
        return pl.read_parquet(absolute(file), columns=list(columns), glob=False)


def check_size(file: Path, columns: Sequence[str]) -> dict[str, int]:
    """Refuse a file of more rows, or more unpacked bytes in some columns, than fit its size.

    Parameters
    ----------
    file : a Parquet file
    columns : those that would be read

    Returns
    -------
    all columns of the file, each with the number of its rows
    """
    import duckdb

    size = check_regular(file)
    path = escape(str(absolute(file)))
    connection = shared_database().cursor()
    try:
        rows = connection.execute("SELECT num_rows FROM parquet_file_metadata(?)", [path]).fetchall()[0][0]
        described = "DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning = false)"
        names = connection.execute(f"SELECT column_name FROM ({described})", [path]).fetchall()
        chunks = connection.execute(
            "SELECT string_split(path_in_schema, ', ')[1], sum(total_uncompressed_size) FROM parquet_metadata(?) "
            "GROUP BY ALL",
            [path],
        ).fetchall()
    except duckdb.Error as error:
        raise pl.exceptions.ComputeError(f"damaged: {engine_reason(error)}") from None
    finally:
        connection.close()
    if rows > ROWS_AT_LEAST + ROWS_PER_BYTE * size:
        raise InputError(f"{file} claims {rows:,} rows in {size:,} bytes; write it again")
    unpacked = sum(int(total) for name, total in chunks if name in columns)
    if unpacked > BYTES_AT_LEAST + BYTES_PER_BYTE * size:
        raise InputError(
            f"{file} would unpack from {size:,} bytes to {unpacked:,}, more than {BYTES_PER_BYTE} times as many; "
            "write it again without compression if it is sound"
        )
    return {name: int(rows) for (name,) in names}


def absolute(file: Path) -> Path:
    """As Polars takes it: a leading `~` or, in text, a `*` or `[` would mean something else to it."""
    place = file.absolute()
    check_text(place)
    return place


@contextmanager
def panics_unseen() -> Iterator[None]:
    """Hide what Polars prints of a panic on stderr, past Python, before it raises it.

    One thread at a time, since there is one stderr.
    """
    with _one_stderr, ExitStack() as hold:
        with suppress(OSError):  # there is no stderr
            kept = os.dup(2)
            hold.callback(os.close, kept)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            hold.callback(os.close, nowhere)
            hold.callback(os.dup2, kept, 2)
            os.dup2(nowhere, 2)
        try:
            pl.Series([0]).to_numpy()  # the first of a process looks up numpy, and an interrupt meanwhile is a panic
            yield
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            if KeyboardInterrupt.__name__ in str(error):  # ctrl-C in the midst of Polars, which takes it for a fault
                raise KeyboardInterrupt from None
            raise


_one_stderr = RLock()


@contextmanager
def _as_polars_error(file: Path) -> Iterator[None]:
    """Raise one kind of error for a damaged file: it may make Polars panic, which is no `Exception`."""
    if not file.exists():
        raise FileNotFoundError(str(file))
    try:
        with panics_unseen():
            yield
    except pl.exceptions.PanicException as error:
        raise pl.exceptions.ComputeError(f"damaged: {error}") from None
