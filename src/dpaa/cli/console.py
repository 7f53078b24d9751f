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
from typing import TYPE_CHECKING, Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpaa._text import json_text, on_one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WIDE = 200
"""Columns where there is no terminal: a file or a pipe need not be cut."""


class _Screen:
    """One of the two streams."""

    def __init__(self, stderr: bool = False) -> None:
        self.console = Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def print(self, *pieces: str | tuple[str, str]) -> None:
        """Print a line, or several where the text has line ends.

        Parameters
        ----------
        pieces : texts, or pairs of a text and its style
        """
        styled = ((piece, "") if isinstance(piece, str) else piece for piece in pieces)
        try:
            self.console.print(Text.assemble(*((printable(text), style) for text, style in styled)))
        except OSError:
            if not self.console.stderr:
                raise
            abandon_stream(sys.stderr)  # what stderr does not take is not worth a training


out = _Screen()
err = _Screen(stderr=True)


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object, in letters that the stream's encoding has; what has no value is null."""
    out.print(json_text(content, ascii_only=not out.console.encoding.startswith("utf")))


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
    """Print a table; nothing of it is cut where there is no terminal.

    In a terminal a header takes a line for each word, so that columns are as narrow as their numbers.

    Parameters
    ----------
    title, header : of the table and its columns
    rows : their cells
    text : whether all columns hold text, which is left-aligned and wraps as the first column does
    multiline : whether line ends in cells begin a line; else they are escaped
    """
    table = Table(title=Text(on_one_line(title), "bold"), title_justify="left", box=box.SIMPLE_HEAD)
    terminal = out.console.is_terminal
    for index, name in enumerate(map(on_one_line, header)):
        shown = Text(re.sub(r" |(?<=/)|(?=@)", "\n", name) if terminal else name, "bold")
        wraps = text or not index or name == "title"
        table.add_column(shown, "left" if text or not index else "right", no_wrap=not wraps, overflow="fold")
    for row in rows:
        table.add_row(*(Text((printable if multiline else on_one_line)(str(cell))) for cell in row))
    (out.console if terminal else Console(width=WIDE, markup=False, emoji=False, highlight=False)).print(table)


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
