"""Folders that Spark, Ray or Hive have partitioned: `day=2024-05-01/part-0.parquet` has a column `day` in its path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
from numpy.typing import NDArray

from dpaa.data.ids import integers_if_unchanged
from dpaa.data.table import Original, Table, TornRow

NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""Stands for an empty value."""


def columns_in_paths(folder: Path, files: Sequence[Path]) -> list[dict[str, str | int | None]]:
    """Of each file, columns and their values, as `key=value` names of the folders between; numbers where all are."""
    found = [_named(file.relative_to(folder).parts[:-1]) for file in files]
    values: list[dict[str, str | int | None]] = [dict(one) for one in found]
    for name in dict.fromkeys(name for one in found for name in one):
        texts = pl.Series([one.get(name) for one in found], dtype=pl.String)
        with suppress(pl.exceptions.PolarsError):
            for one, value in zip(values, integers_if_unchanged(texts).to_list(), strict=True):
                if name in one:
                    one[name] = value
    return values


def _named(parts: Sequence[str]) -> dict[str, str | None]:
    pairs = (part.partition("=") for part in parts if "=" in part)
    return {unquote(name): None if value == NOTHING else unquote(value) for name, _, value in pairs if name}


@dataclass(frozen=True, eq=False)
class PartitionTable(Table):
    """A file of a partitioned folder: its own columns, and those of its path."""

    file: Table
    constants: Mapping[str, str | int | None]

    @classmethod
    def of(cls, file: Table, constants: Mapping[str, str | int | None]) -> Table:
        """With columns that the file has not itself; as it is where there are none."""
        further = {name: value for name, value in constants.items() if name not in file.columns}
        if not further:
            return file
        kind = cls if file.typed else _TextPartition
        return kind(file.name, (*file.columns, *further), file, further, source=file.source, notes=file.notes)

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns."""
        return self._with_constants(self.file.read(self._own(columns)), columns)

    def blocks(self, columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        """Those of the file."""
        return (self._with_constants(block, columns) for block in self.file.blocks(self._own(columns), rows))

    def memory_needed(self) -> int:
        """That of the file."""
        return self.file.memory_needed()

    def _own(self, columns: Sequence[str]) -> list[str]:
        """Those of the file; one at least, as a table without columns has no rows."""
        return [name for name in columns if name not in self.constants] or [self.file.columns[0]]

    def _with_constants(self, frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
        texts = {name: value if self.typed or value is None else str(value) for name, value in self.constants.items()}
        types = {name: pl.Int64 if isinstance(value, int) else pl.String for name, value in texts.items()}
        return frame.with_columns(pl.lit(texts[name], types[name]).alias(name) for name in texts).select(columns)

    def place(self, row: int) -> str:
        """As the file says it."""
        return self.file.place(row)

    def without_torn(self, columns: Sequence[str]) -> tuple[Table, list[TornRow]]:
        """Of the file."""
        file, torn = self.file.without_torn(self._own(columns))
        return replace(self, file=file) if torn else self, torn

    def originals(self, rows: NDArray[Any], columns: Sequence[str]) -> Iterator[Original]:
        """Of the file."""
        return self.file.originals(rows, self._own(columns))


class _TextPartition(PartitionTable):
    """Of a text file, whose columns are text."""

    typed = False
