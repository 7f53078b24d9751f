"""Several tables one after the other, read as one: the files of a folder, a month of logs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.data.table import Original, Table, TornRow
from dpaa.errors import InputError


@dataclass(frozen=True, eq=False)
class SeveralTables(Table):
    """Rows of the first table, then of the next; columns are those that all have."""

    parts: tuple[Table, ...]
    ends: list[int] = field(default_factory=list)
    """Rows up to the end of each part, known when they have been read."""
    typed: ClassVar[bool] = True

    @classmethod
    def of(cls, parts: Sequence[Table]) -> Table:
        """One table; where there is one part, that."""
        if len(parts) == 1:
            return parts[0]
        shared = set.intersection(*(set(part.columns) for part in parts))
        columns = tuple(column for column in parts[0].columns if column in shared)
        name = f"{parts[0].name} and {len(parts) - 1:,} more"
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        kind = cls if all(part.typed for part in parts) else _SeveralTexts
        return kind(name, columns, tuple(parts), notes=notes)

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns, of all parts; types that differ are an error that names two files."""
        frames = [self._as_text(part.read(columns), part) for part in self.parts]
        self.ends[:] = accumulate(frame.height for frame in frames)
        try:
            return pl.concat(frames, how="vertical_relaxed")
        except pl.exceptions.PolarsError:
            for column in columns:
                kinds = [frame[column].dtype for frame in frames]
                other = next((place for place, kind in enumerate(kinds) if kind != kinds[0]), None)
                if other is not None:
                    raise InputError(
                        f"column {column!r} is {kinds[0]} in {self.parts[0].name} and {kinds[other]} in "
                        f"{self.parts[other].name}; cast one of them"
                    ) from None
            raise

    def blocks(self, columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        """Those of all parts."""
        ends: list[int] = []
        for part in self.parts:
            read = 0
            for block in part.blocks(columns, rows):
                read += block.height
                yield self._as_text(block, part)
            ends.append(read + (ends[-1] if ends else 0))
        self.ends[:] = ends

    def memory_needed(self) -> int:
        """Of all parts."""
        return sum(part.memory_needed() for part in self.parts)

    def _as_text(self, frame: pl.DataFrame, part: Table) -> pl.DataFrame:
        """Beside text files, typed ones are text as well."""
        return frame.cast(pl.String) if part.typed and not self.typed else frame

    def _part(self, row: int) -> tuple[Table, int]:
        """The table that a row is in, and its number there."""
        place = bisect_right(self.ends, row)
        return self.parts[place], row - (self.ends[place - 1] if place else 0)

    def place(self, row: int) -> str:
        """As its file says it."""
        part, inside = self._part(row)
        return part.place(inside)

    def without_torn(self, columns: Sequence[str]) -> tuple[Table, list[TornRow]]:
        """Of every part."""
        found = [part.without_torn(columns) for part in self.parts]
        torn = [row for _, rows in found for row in rows]
        return (replace(self, parts=tuple(part for part, _ in found), ends=[]) if torn else self), torn

    def originals(self, rows: NDArray[Any], columns: Sequence[str]) -> Iterator[Original]:
        """Of every part."""
        for place, part in enumerate(self.parts):
            first = self.ends[place - 1] if place else 0
            inside = rows[(rows >= first) & (rows < self.ends[place])] - first
            if len(inside):
                yield from part.originals(np.asarray(inside), columns)


class _SeveralTexts(SeveralTables):
    """Some of them text files: then all columns are text."""

    typed: ClassVar[bool] = False
