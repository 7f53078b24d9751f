"""Tables of any length to one file, block by block; the file appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from dpaa._io import check_file_target, write_file

Sink = Callable[[pl.LazyFrame, Path], object]
"""Writes a table to a file, a block at a time."""
SINKS: dict[str, Sink] = {
    ".parquet": lambda table, file: table.sink_parquet(file),
    ".csv": lambda table, file: table.sink_csv(file),
}
"""By the file's ending."""
FORMATS = tuple(SINKS)
REMEDY = "make room or choose another place"


def check_target(file: Path, overwrite: bool) -> None:
    """Refuse, before any work, a file that could not be written."""
    check_file_target(file, FORMATS, "a table", overwrite=overwrite)


def write_stream(
    blocks: Iterator[pl.DataFrame], schema: Mapping[str, Any], file: Path, sink: Sink | None = None
) -> int:
    """Write blocks of one schema to Parquet or CSV, by the file's ending, or by a `sink`.  Returns the rows."""
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
    write = sink or SINKS[file.suffix.lower()]

    def sunk(fresh: Path) -> None:
        try:
            write(table, fresh)
        except pl.exceptions.PolarsError:
            if failures:
                raise failures[0] from None
            raise

    write_file(file, sunk, REMEDY)
    return rows
