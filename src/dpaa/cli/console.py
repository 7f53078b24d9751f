"""Where commands print: results on stdout, everything about the way there on stderr.

Both take text and nothing else.  No markup is read in it, and what would act on a terminal instead of being seen is
escaped (`dpaa._text.printable`), so that no id, name or path can do more than be shown; a look is given apart from the
text, as `Styled`.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Styled:
    """A piece of a line with a look of its own, such as `bold red`."""

    text: str
    style: str


@dataclass(frozen=True)
class Column:
    """How a column of a table is set."""

    name: str
    left: bool = False
    """Words go left, numbers right."""
    wraps: bool = False
    lines: bool = False
    """Whether a line end in a cell begins a line; else it is escaped like all that acts."""
    widest: int | None = None


class Screen:
    """One of the two streams."""

    def __init__(self, stderr: bool = False) -> None:
        self._console = Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def print(self, *pieces: str | Styled) -> None:
        """A line, or several where the text has line ends; what stderr does not take is not worth a training."""
        styled = [piece if isinstance(piece, Styled) else Styled(piece, "") for piece in pieces]
        try:
            self._console.print(Text.assemble(*((printable(piece.text), piece.style) for piece in styled)))
        except OSError:
            if not self._console.stderr:
                raise
            leave_output(sys.stderr)

    def json(self, content: Any) -> None:
        """One JSON document, in letters that the stream's encoding has."""
        self._console.print(Text(json_text(content, ascii_only=not self._console.encoding.startswith("utf"))))

    def table(
        self, title: str, columns: Sequence[Column], rows: Iterable[Sequence[str]], footer: Iterable[Sequence[str]] = ()
    ) -> None:
        """A table with a rule above its footer; nothing of it is cut where there is no terminal.

        In a terminal a header takes a line for each word, so that columns are as narrow as their numbers.
        """
        table = Table(title=Text(on_one_line(title), "bold"), title_justify="left", box=box.SIMPLE_HEAD)
        for column in columns:
            name = on_one_line(column.name)
            table.add_column(
                Text(name.replace(" ", "\n").replace("/", "/\n") if self._console.is_terminal else name, "bold"),
                justify="left" if column.left else "right",
                no_wrap=not column.wraps,
                overflow="fold" if column.wraps else "ellipsis",
                max_width=column.widest,
            )
        for part in (rows, footer):
            table.add_section()
            for row in part:
                table.add_row(*(_cell(text, column) for text, column in zip(row, columns, strict=True)))
        wide = Console(width=WIDE, markup=False, emoji=False, highlight=False)
        (self._console if self._console.is_terminal else wide).print(table)


def _cell(text: str, column: Column) -> Text:
    return Text(printable(text) if column.lines else on_one_line(text))


out = Screen()
err = Screen(stderr=True)


def print_json(content: Mapping[str, Any]) -> None:
    """For machines: one JSON object; what has no value is null."""
    out.json(content)


def print_notes(notes: Iterable[str]) -> None:
    """What was dropped, and what to know before believing the numbers."""
    for note in notes:
        err.print(Styled("note:", "yellow"), " ", note)


def cells(form: str, *values: Any) -> list[str]:
    """Numbers in a format; `-` for one that is missing or undefined."""
    return ["-" if value is None or value != value else format(value, form) for value in values]


def attributes(one: object, *specs: str) -> list[str]:
    """Attributes of an object, each in its format: `interactions:,`, `share:.1%`, `name`."""
    return [cells(form, getattr(one, name))[0] for name, _, form in (spec.partition(":") for spec in specs)]


def number(value: float | None, sign: str = "") -> str:
    """Four decimals; one where the number is large."""
    return cells(f"{sign},.1f" if value is not None and abs(value) >= 100 else f"{sign}.4f", value)[0]


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]], text: bool = False) -> None:
    """A table, first column left, the others right (left too where they hold text).

    Names and titles wrap in a narrow terminal, numbers do not.
    """
    wrapping = ("title", header[0]) if header else ()
    columns = [Column(name, left=text or name == header[0], wraps=text or name in wrapping) for name in header]
    out.table(title, columns, ([str(cell) for cell in row] for row in rows))


def print_objects(title: str, columns: Mapping[str, str], objects: Iterable[object]) -> None:
    """A table with a row per object, header → attribute and format; none where there are no objects."""
    rows = [attributes(one, *columns.values()) for one in objects]
    if rows:
        print_table(title, list(columns), rows)


def titled(items: Iterable[Any]) -> dict[str, str]:
    """A column for what people call the items, where there is anything in it; for `print_objects`."""
    return {"title": "title"} if any(item.title is not None for item in items) else {}


def open_closed_streams() -> None:
    """Open the null device where a standard stream is closed, as in `dpaa … >&- 2>&-`.

    Else the next files that are opened get the numbers 0, 1 and 2, and libraries write into them or wait for them.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def never_fail_to_print() -> None:
    """Escape what the streams' encoding lacks, such as a κ in ASCII, or bytes of an argument that are no text."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def leave_output(stream: TextIO) -> None:
    """Let go of a stream that takes no more, a full disk's: Python would try once more at the end, and complain."""
    try:
        stream.flush()
    except OSError:
        with suppress(OSError, io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
