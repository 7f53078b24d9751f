"""Where commands print: results on stdout, everything about the way there on stderr.

Both take text and nothing else.  No markup is read in it, and what would act on a terminal instead of being seen is
escaped (`dpaa._text.printable`), so that no id, name or path can do more than be shown; a style is given apart from
the text, as in `out.print(("error:", "bold red"), " it failed")`.
"""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpaa._text import json_text, on_one_line, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_PIECES = re.compile(r"(?<= )|(?<=/)|(?<=\w)(?=@)")
"""Where a header may be broken."""
LABEL = 34
"""Columns of a terminal that the first column of a table may take without wrapping."""
WIDE = 200
"""Columns where there is no terminal: a file or a pipe need not be cut."""


class _Screen:
    """Standard output or standard error."""

    def __init__(self, stderr: bool = False) -> None:
        self.console = Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def print(self, *pieces: str | tuple[str, str], wrap: bool = True) -> None:
        """Print a line, or several where the text has line ends.

        Parameters
        ----------
        pieces : texts, or pairs of a text and its style
        wrap : whether lines end between words in a terminal; words that are longer, such as paths, stay whole
        """
        styled = ((piece, "") if isinstance(piece, str) else piece for piece in pieces)
        line = Text.assemble(*((printable(text), style) for text, style in styled))
        try:
            for one in _at_words(line, self.console.width) if wrap and self.console.is_terminal else [line]:
                self.console.print(one)
        except OSError:
            if not self.console.stderr:
                raise
            abandon_stream(sys.stderr)  # what stderr does not take is not worth a training


def _at_words(text: Text, width: int) -> Iterator[Text]:
    """Break lines between words; rich would break a path that is longer than the terminal is wide, too."""
    for line in text.split("\n", allow_blank=True):
        column, breaks = 0, []
        for word in re.finditer(r"\s*\S+\s*", line.plain):
            if column and column + cell_len(word[0].rstrip()) > width:
                breaks.append(word.start())
                column = 0
            column += cell_len(word[0])
        for piece in line.divide(breaks):
            piece.rstrip()
            yield piece


out = _Screen()
err = _Screen(stderr=True)


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object, in letters that the stream's encoding has; what has no value is null."""
    out.print(json_text(content, ascii_only=not out.console.encoding.startswith("utf")), wrap=False)


def print_result(result: Any, as_json: bool, show: Callable[[Any], object]) -> None:
    """Print a result as JSON, or as its command shows it."""
    if as_json:
        print_json(result.as_json())
    else:
        show(result)


def print_notes(notes: Iterable[str]) -> None:
    """Print on stderr what was dropped, and what to know before believing the numbers."""
    for note in notes:
        err.print(("note:", "yellow"), " ", note)


def cells(form: str, *values: Any) -> list[str]:
    """Numbers in a format; `-` for one that is missing or undefined."""
    return ["-" if value is None or value != value else format(value, form) for value in values]


def number(value: float | None, sign: str = "") -> str:
    """Four decimals; one where the number is large."""
    return cells(f"{sign},.1f" if value is not None and abs(value) >= 100 else f"{sign}.4f", value)[0]


def short(value: object) -> object:
    """A hyperparameter without superfluous digits: 0.001, not 1.0000000000000e-03."""
    return f"{value:g}" if isinstance(value, float) else value


def print_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[object]], text: bool = False, multiline: bool = False
) -> None:
    """Print a table; no number of it is cut, and no word broken.

    Headers wrap where columns are narrow.  Columns that do not fit beside the others stand in a table below, with the
    first column again.

    Parameters
    ----------
    title, header : of the table and its columns
    rows : their cells
    text : whether all columns hold text, which is left-aligned and wraps as the first column does
    multiline : whether line ends in cells begin a line; else they are escaped
    """
    terminal = out.console.is_terminal
    console = out.console if terminal else Console(width=WIDE, markup=False, emoji=False, highlight=False)
    heads = [[piece for piece in _PIECES.split(on_one_line(name)) if piece] if terminal else [name] for name in header]
    lines = [[(printable if multiline else on_one_line)(str(cell)) for cell in row] for row in rows]
    wraps = [text or not index or name == "title" for index, name in enumerate(header)]
    columns = [[line[index] for line in lines] for index in range(len(header))]
    natural = [_longest(["".join(head), *cells], "\n") for head, cells in zip(heads, columns, strict=True)]
    least = [_longest(cells, None if wrap else "\n") for cells, wrap in zip(columns, wraps, strict=True)]
    least = [max(wide, _longest(head, None)) for head, wide in zip(heads, least, strict=True)]
    words = min(least[0], console.width // 2)
    least[0] = min(max(words, min(natural[0], LABEL)), console.width // 2)
    parts = _side_by_side(least, console.width)
    if len(fewer := _side_by_side([words, *least[1:]], console.width)) < len(parts):
        parts, least[0] = fewer, words
    out.print((on_one_line(title), "bold"))
    for part in parts:
        wide = [min(least[index], console.width - least[0] - 4) if index else least[0] for index in part]
        for _ in range(console.width - _table_width(wide)):  # what is left goes to the columns that wrap most
            share = [natural[index] / wide[slot] for slot, index in enumerate(part)]
            wide[share.index(max(share))] += max(share) > 1
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for index, width in zip(part, wide, strict=True):
            justify: Literal["left", "right"] = "left" if wraps[index] else "right"
            head = Text(_fitted(heads[index], width), "bold")
            table.add_column(head, justify=justify, no_wrap=not wraps[index], overflow="fold", width=width)
        for line in lines:
            table.add_row(*(Text(line[index]) for index in part))
        console.print(table, soft_wrap=False)


def _fitted(pieces: Sequence[str], width: int) -> str:
    """Break a header into as many lines as it needs."""
    lines = [""]
    for piece in pieces:
        if cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _side_by_side(least: Sequence[int], width: int) -> list[list[int]]:
    """Group columns into tables below each other, each with the first column, given the least width of each."""
    parts = [[0]]
    for index in range(1, len(least)):
        if len(parts[-1]) > 1 and _table_width([least[i] for i in (*parts[-1], index)]) > width:
            parts.append([0])
        parts[-1].append(index)
    return parts


def _longest(cells: Sequence[str], separator: str | None) -> int:
    """Columns of a terminal that the longest line takes, or the longest word."""
    return max((cell_len(piece) for cell in cells for piece in cell.split(separator)), default=0)


def _table_width(columns: Sequence[int]) -> int:
    return sum(columns) + 2 * len(columns)


def print_records(title: str, columns: Mapping[str, str], records: Iterable[Mapping[str, Any]]) -> None:
    """Print a table with a row per record; none where there are no records.

    Parameters
    ----------
    title : of the table
    columns : header → key and format, such as `interactions:,`, `share:.1%`, `name`
    records : the rows
    """
    specs = [spec.partition(":") for spec in columns.values()]
    rows = [[cells(form, record[key])[0] for key, _, form in specs] for record in records]
    if rows:
        print_table(title, list(columns), rows)


def open_closed_streams() -> None:
    """Open the null device where a standard stream is closed, as in `dpaa … >&- 2>&-`.

    Else the next files that are opened get the numbers 0, 1 and 2, and libraries write into them or wait for them.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what the encoding lacks, such as a κ in ASCII, is escaped
            stream.reconfigure(errors="backslashreplace")


def abandon_stream(stream: TextIO) -> None:
    """Redirect a stream that takes no more, a full disk's: Python would flush once more at exit, and complain."""
    try:
        stream.flush()
    except OSError:
        with suppress(OSError, io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
