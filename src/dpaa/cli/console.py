"""Where commands print: results on stdout, everything about the way there on stderr."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WIDE = 200
"""Columns where there is no terminal: a file or a pipe need not be cut."""


class PipedConsole(Console):
    """A console whose reader may leave, as in `dpaa … | head -1`: we end then, quietly and as other tools do."""

    def on_broken_pipe(self) -> None:
        """End with 128 + SIGPIPE."""
        try:
            super().on_broken_pipe()
        except SystemExit:
            raise SystemExit(128 + signal.SIGPIPE) from None


out = PipedConsole(highlight=False, soft_wrap=True, emoji=False)
err = PipedConsole(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def print_json(content: Mapping[str, Any]) -> None:
    """For machines: one JSON object; what has no value is null."""
    from dpaa.files import finite

    out.print(json.dumps(finite(content), indent=2, ensure_ascii=False), markup=False)


def print_notes(notes: Iterable[str]) -> None:
    """What was dropped, and what to know before believing the numbers."""
    for note in notes:
        err.print("[yellow]note:[/] ", end="")
        err.print(note, markup=False)


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], text: bool = False) -> None:
    """A table, first column left, the others right (left too where they hold text)."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=box.SIMPLE_HEAD)
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if text or place == 0 else "right", no_wrap=place == 0 or not text)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # an id may look like markup
    wide_enough = out if out.is_terminal else Console(highlight=False, width=WIDE)
    wide_enough.print(table)
