"""JSON lines (`.jsonl`, `.ndjson`): an object per line, plain or gzipped; its keys are the columns.

Ids keep the type they have in JSON: numbers are integers, text is text.  A column in which both occur is text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._text import parse_json
from dpaa.data.parquet import absolute, panics_unseen
from dpaa.data.scratch import called, scratch_file
from dpaa.data.table import Original, Table, TornRow
from dpaa.data.text_lines import check_lengths, raw_lines, text_lines
from dpaa.errors import InputError, reason

LOOKED_AT = 1_000
"""Lines from which columns and their types are told."""
KIND, REMEDY = "no JSON object", "correct the line or remove it"


@dataclass(frozen=True, eq=False)
class JsonLinesTable(Table):
    """A file of JSON objects."""

    kinds: dict[str, set[type]] = field(default_factory=dict)
    """Types that the values of each column have in the first lines."""
    lines: NDArray[np.int64] | None = None
    """The line of every row, where the copy that is read lacks some; None = as they come."""

    @classmethod
    def open(cls, path: Path, name: str) -> JsonLinesTable:
        """Look at the first lines."""
        kinds: dict[str, set[type]] = {}
        with called(path, name):
            for line in islice(filter(str.strip, text_lines(path)), LOOKED_AT):
                try:
                    found = parse_json(line)
                except ValueError:
                    continue
                for key, value in found.items() if isinstance(found, dict) else ():
                    kinds.setdefault(key, set()).update(_kinds(value))
        if not kinds:
            raise InputError(
                f"{name} has no JSON object in its first {LOOKED_AT:,} lines; JSON lines are one object per line"
            )
        return cls(name, tuple(kinds), kinds, source=path)

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns; a key that an object lacks is empty."""
        schema = {name: pl.List(pl.String) if self.kinds[name] <= {list} else pl.String() for name in columns}
        with self._called():
            check_lengths(self.path)
            try:
                with panics_unseen():
                    frame = pl.scan_ndjson(self._plain_path(), schema=schema).collect()
            except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                _, torn = self.without_torn(columns)
                if torn:
                    raise InputError(f"{torn[0].sentence}; {torn[0].remedy}") from error
                raise InputError(f"{self.name} cannot be read ({reason(error)}); check it or pass --format") from error
        return frame.select(self._typed(frame[name]) for name in columns)

    def _plain_path(self) -> Path:
        """A path that polars takes for a file and not for a pattern."""
        place = absolute(self.path)
        if not set("*?[") & set(str(place)):
            return place
        return scratch_file(self.name, lambda stream: stream.writelines(raw_lines(self.path)))

    def _typed(self, text: pl.Series) -> pl.Series:
        """Numbers where all values were numbers."""
        kinds = self.kinds[text.name]
        if kinds and kinds <= {int, float, bool}:
            for dtype in (pl.Int64, pl.UInt64, pl.Float64) if kinds != {bool} else (pl.Boolean,):
                values = _booleans(text) if dtype == pl.Boolean else text.cast(dtype, strict=False)
                if values.null_count() == text.null_count():
                    return values
        return text

    def place(self, row: int) -> str:
        """Lines are counted from 1."""
        return f"line {self._line(row):,} of {self.name}"

    def _line(self, row: int) -> int:
        if self.lines is not None:
            return int(self.lines[row])
        filled = (number for number, line in enumerate(raw_lines(self.path), start=1) if line.strip())
        return next(islice(filled, row, None))

    def without_torn(self, columns: Sequence[str]) -> tuple[Table, list[TornRow]]:
        """Every line is read apart; those that are objects are copied."""
        del columns
        torn: list[TornRow] = []
        kept: list[int] = []

        def write(stream: BinaryIO) -> None:
            for number, line in enumerate(raw_lines(self.path), start=1):
                if not line.strip():
                    continue
                why = _why_no_object(line)
                if why is None:
                    kept.append(number)
                    stream.write(line if line.endswith(b"\n") else line + b"\n")
                else:
                    sentence = f"line {number:,} of {self.name} is no JSON object ({why})"
                    content = line.decode(errors="backslashreplace").rstrip("\r\n")
                    torn.append(TornRow(self.name, number, KIND, sentence, REMEDY, content))

        with self._called():
            copy = scratch_file(self.name, write)
        return (replace(self, source=copy, lines=np.array(kept, dtype=np.int64)), torn) if torn else (self, [])

    def originals(self, rows: NDArray[Any], columns: Sequence[str]) -> Iterator[Original]:
        """The lines themselves."""
        del columns
        wanted, place = set(rows.tolist()), -1
        for number, line in enumerate(raw_lines(self.path), start=1):
            place += bool(line.strip())
            if line.strip() and place in wanted:
                text = line.decode(errors="backslashreplace").rstrip("\r\n")
                yield self.name, number if self.lines is None else int(self.lines[place]), text


def _kinds(value: Any) -> set[type]:
    """The type of a value; a list of plain values is a list, any other nested value is text of JSON."""
    if value is None:
        return set()
    if isinstance(value, list):
        return {list if all(isinstance(one, str | int | float | None) for one in value) else str}
    return {type(value) if isinstance(value, bool | int | float) else str}


def _why_no_object(line: bytes) -> str | None:
    try:
        return None if isinstance(parse_json(line), dict) else "it is another value"
    except UnicodeDecodeError:
        return "it is not UTF-8 text"
    except ValueError as error:
        return reason(error)


def _booleans(text: pl.Series) -> pl.Series:
    return text.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
