"""Tables written a block at a time, each file whole or not at all."""

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
    ".tsv": lambda table, file: table.sink_csv(file, separator="\t"),
    ".jsonl": lambda table, file: table.sink_ndjson(file),
}
"""By the ending of the file."""
REMEDY = "make room or choose another place"


def check_target(file: Path, overwrite: bool) -> None:
    """Refuse, before any work, a file of a table that could not be written.

    Parameters
    ----------
    file : its ending must be one of `SINKS`
    overwrite : whether it may exist
    """
    check_file_target(file, tuple(SINKS), "a table", overwrite=overwrite)


def write_stream(
    blocks: Iterator[pl.DataFrame], schema: Mapping[str, Any], file: Path, sink: Sink | None = None
) -> int:
    """Write blocks of one schema to a file without holding more than one of them.

    Parameters
    ----------
    blocks : the rows
    schema : column → type, of every block
    file : the file to write
    sink : what writes it; by default one of `SINKS`, by the file's ending

    Returns
    -------
    the number of rows
    """
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

    def write(fresh: Path) -> None:
        try:
            (sink or SINKS[file.suffix.lower()])(table, fresh)
        except pl.exceptions.PolarsError:
            if failures:  # of the blocks themselves: their own error says more than what Polars makes of it
                raise failures[0] from None
            raise

    write_file(file, write, REMEDY)
    return rows
