"""Rows that cannot be read, collected kind by kind: one sentence names all kinds, or all rows are left out at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._text import counted, shortened
from dpaa.data.table import Table, TornRow
from dpaa.errors import InputError

DROP = "leave such rows out with --drop-invalid"
LONGEST_VALUE = 80
"""Characters of a value that a sentence about several kinds of faults quotes."""
INVALID_COLUMNS = ("source", "row", "fault", "content")


@dataclass(frozen=True)
class Fault:
    """One kind of fault: what it is, in words, and the rows that have it."""

    kind: str
    """`nothing in column 'user_id'`, `no number in column 'rating'`."""
    sentence: str
    """Of the first row, as if it were the only one: up to the remedy."""
    remedy: str
    rows: NDArray[np.int64]
    """Ascending rows of the table as it was read; none for rows that could not even be cut into fields."""
    value: str | None = None
    """What stands in the first row, quoted; None where nothing does."""
    torn: tuple[TornRow, ...] = ()

    @property
    def count(self) -> int:
        """Rows that have it."""
        return len(self.rows) + len(self.torn)


@dataclass
class Faults:
    """What is wrong with the rows of one table."""

    table: Table
    found: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """How the columns were read, where it is not the usual way."""

    def add_torn(self, torn: Sequence[TornRow]) -> None:
        """Rows that the table could not read as rows, by kind."""
        kinds: dict[str, list[TornRow]] = {}
        for row in torn:
            kinds.setdefault(row.kind, []).append(row)
        nowhere = np.zeros(0, dtype=np.int64)
        for kind, rows in kinds.items():
            self.found.append(Fault(kind, rows[0].sentence, rows[0].remedy, nowhere, torn=tuple(rows)))

    def add(self, column: pl.Series, wrong: pl.Series, kind: str, why: str, remedy: str, *, quote: bool = True) -> None:
        """Rows whose value in a column is wrong.

        `why` goes on where the sentence has named the first value; with `quote` off it stands for the value.
        """
        if not wrong.any():
            return
        row = int(wrong.arg_max() or 0)
        value, place = column[row] if quote else why, self.table.place(row)
        if value is None or value == "":
            sentence, quoted = f"column {column.name!r} is empty in {place}", None
        elif quote:
            sentence, quoted = f"column {column.name!r} has {value!r} in {place}, {why}", repr(value)
        else:
            sentence, quoted = f"column {column.name!r} has {why} in {place}", None
        rows = wrong.arg_true().to_numpy().astype(np.int64)
        self.found.append(Fault(f"{kind} in column {column.name!r}", sentence, remedy, rows, quoted))

    def raise_if_any(self, may_drop: bool = True) -> None:
        """One sentence that names every kind of fault, how often it occurs, and its first row and value.

        `may_drop`: whether such rows can be left out, where this is asked.
        """
        instead = f", or {DROP}" if may_drop else ""
        if not self.found:
            return
        if len(self.found) == 1:
            one = self.found[0]
            more = f" (and in {counted(one.count - 1, 'row', 'rows')} more)" if one.count > 1 else ""
            raise InputError(f"{one.sentence}{more}; {one.remedy}{instead}")
        kinds = f"{len(self.found)} kinds of faults: {self.in_words()}"
        raise InputError(f"{self.table.name} has {kinds}; correct them{instead}")

    def in_words(self) -> str:
        """Every kind of fault, how often it occurs, and its first row and value."""
        return ", ".join(map(self._in_words, self.found))

    def _in_words(self, one: Fault) -> str:
        first = (
            one.torn[0].place if one.torn else self.table.place(int(one.rows[0])).removesuffix(f" of {self.table.name}")
        )
        quoted = f"{shortened(one.value, LONGEST_VALUE)} in " if one.value else ""
        return f"{one.kind} ({counted(one.count, 'row', 'rows')}, first {quoted}{first})"

    @property
    def rows(self) -> NDArray[np.int64]:
        """All rows with a fault, of those that the table could read; ascending, each once."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(one.rows for one in self.found)]))

    def note(self, total: int) -> str:
        """What was left out, of so many rows."""
        torn = sum(len(one.torn) for one in self.found)
        left = len(self.rows) + torn
        invalid = f"{left:,} of {total + torn:,} rows {'is' if left == 1 else 'are'} invalid and left out"
        return f"{self.table.name}: {invalid}: {self.in_words()}"

    def as_table(self, columns: Sequence[str]) -> pl.DataFrame:
        """The rows with faults: source, line or row, every fault, and the content as it is (else of these columns)."""
        lines: dict[tuple[str, int], tuple[list[str], str]] = {}
        for one in self.found:
            for row in one.torn:
                lines.setdefault((row.source, row.line), ([], row.content))[0].append(one.kind)
        rows = self.rows
        kinds: dict[int, list[str]] = {int(row): [] for row in rows}
        for one in self.found:
            for row in one.rows.tolist():
                kinds[row].append(one.kind)
        for row, (source, line, content) in zip(rows.tolist(), self.table.originals(rows, columns), strict=True):
            lines[source, line] = (kinds[row], content)
        ordered = sorted(lines.items())
        return pl.DataFrame(
            [[source, line, "; ".join(faults), content] for (source, line), (faults, content) in ordered],
            schema={name: pl.Int64 if name == "row" else pl.String for name in INVALID_COLUMNS},
            orient="row",
        )


class Refusing(Faults):
    """Nothing is collected: the first fault is refused."""

    def add(self, *fault: Any, **more: Any) -> None:
        """Refuse the row, if there is one."""
        super().add(*fault, **more)
        if self.found:
            raise InputError(f"{self.found[0].sentence}; {self.found[0].remedy}")
