"""Tables of any length to one file, block by block; the file appears whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.io.plugins import register_io_source

from dpaa.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FORMATS = (".parquet", ".csv")


def check_target(file: Path, overwrite: bool) -> None:
    """Refuse, before any work, a file that could not be written."""
    if file.suffix.lower() not in FORMATS:
        ending = f"the ending {file.suffix!r}" if file.suffix else "no ending"
        raise InputError(f"{file} has {ending}; write to .parquet or .csv")
    if file.is_dir():
        raise InputError(f"{file} is a folder; name a file")
    if file.exists() and not overwrite:
        raise InputError(f"{file} already exists; pass --overwrite or name another file")
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent}; make it first or name another file")


def write_stream(blocks: Iterator[pl.DataFrame], schema: Mapping[str, Any], file: Path) -> int:
    """Write blocks of one schema to Parquet or CSV, by the file's ending.  Returns the number of rows."""
    rows = 0
    failures: list[Exception] = []

    def source(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        nonlocal rows
        del predicate, n_rows, batch_size  # nothing filters a sink
        try:
            for block in blocks:
                rows += len(block)
                yield block if with_columns is None else block.select(with_columns)
        except Exception as error:  # polars would wrap it in an error of its own
            failures.append(error)
            raise

    table = register_io_source(source, schema=dict(schema))
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}-") as beside:
            fresh = Path(beside) / file.name
            if file.suffix.lower() == ".parquet":
                table.sink_parquet(fresh)
            else:
                table.sink_csv(fresh)
            fresh.replace(file)
    except pl.exceptions.PolarsError:
        if failures:
            raise failures[0] from None
        raise
    except OSError as error:
        raise InputError(f"cannot write {file} ({error.strerror or error}); choose another place") from None
    return rows
