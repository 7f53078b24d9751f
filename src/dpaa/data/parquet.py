"""Parquet files, ours and untrusted ones: the sizes in the footer are checked before Polars or DuckDB read the pages.

A few kilobytes may claim billions of rows, or unpack to gigabytes, so rows and bytes must be in proportion to the file.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import escape
from pathlib import Path

import duckdb
import polars as pl

from dpaa._io import check_regular, resolve_path
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
    with polars_errors(file):
        check_size(file, ())
        return dict(pl.scan_parquet(resolve_path(file), glob=False).collect_schema())


def read_parquet(file: Path, columns: Sequence[str] | None = None, optional: Sequence[str] = ()) -> pl.DataFrame:
    """Read some columns of one file; a file whose unpacked size is out of proportion is refused beforehand.

    A damaged file raises an error of Polars, which the caller explains.

    Parameters
    ----------
    file : the file
    columns : names of the columns, in any order; None = all
    optional : further columns, which may be missing

    Returns
    -------
    a frame with these columns
    """
    with polars_errors(file):
        present = check_size(file, ())[0]
        wanted = list(present if columns is None else [*columns, *(name for name in optional if name in present)])
        rows = check_size(file, wanted)[1]
        if rows * len(wanted) * BYTES_PER_VALUE > memory_at_hand():
            raise InputError(f"{file} claims {rows:,} rows, more than the available memory; use a smaller file")
        return pl.read_parquet(resolve_path(file), columns=wanted, glob=False)


def check_size(file: Path, columns: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """Refuse a file of more rows, or more unpacked bytes in some columns, than fit its size.

    Parameters
    ----------
    file : a Parquet file
    columns : those that would be read

    Returns
    -------
    all columns of the file, and the number of its rows
    """
    # From the metadata alone: no page is read, and no buffer is sized by what an untrusted footer claims.
    size, path = check_regular(file), [escape(str(resolve_path(file)))]
    connection = shared_database().cursor()
    try:
        rows = int(connection.execute("SELECT num_rows FROM parquet_file_metadata(?)", path).fetchall()[0][0])
        described = "DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning = false)"
        names = connection.execute(f"SELECT column_name FROM ({described})", path).fetchall()
        sizes = "SELECT string_split(path_in_schema, ', ')[1], total_uncompressed_size FROM parquet_metadata(?)"
        unpacked = sum(int(total) for name, total in connection.execute(sizes, path).fetchall() if name in columns)
    except duckdb.Error as error:
        raise pl.exceptions.ComputeError(f"damaged: {engine_reason(error)}") from None
    finally:
        connection.close()
    if rows > ROWS_AT_LEAST + ROWS_PER_BYTE * size:
        raise InputError(f"{file} claims {rows:,} rows in {size:,} bytes; write it again")
    if unpacked > BYTES_AT_LEAST + BYTES_PER_BYTE * size:
        raise InputError(f"{file} would unpack from {size:,} bytes to {unpacked:,}; write it again without compression")
    return tuple(name for (name,) in names), rows


@contextmanager
def polars_errors(file: Path | None = None) -> Iterator[None]:
    """Raise one kind of error for a damaged file: it may make Polars panic, which is no `Exception`."""
    if file is not None and not file.exists():
        raise FileNotFoundError(str(file))
    try:
        pl.Series([0]).to_numpy()  # the first of a process looks up numpy, and an interrupt meanwhile is a panic
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        if KeyboardInterrupt.__name__ in str(error):  # ctrl-C within Polars, which reports it as its own error
            raise KeyboardInterrupt from None
        raise pl.exceptions.ComputeError(f"damaged: {error}") from None
