"""What sections are made of: figures that can be saved, tables that can be sorted, and numbers in words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dpaa.comparison import relative_change
from dpaa.report.figures import Chart
from dpaa.report.rendering import percent, render
from dpaa.report.svg import inline_svg
from dpaa.report.theme import PHONE, WIDE, Theme


@dataclass(frozen=True)
class Figure:
    """A chart, drawn twice for the page (wide and for phones) and once more for each file it is saved to."""

    name: str
    """Of its file and its id; unique on the page."""
    title: str
    description: str
    """What it shows, for people who cannot see it."""
    draw: Callable[[Theme], Chart]
    table: Markup | None = None
    """The numbers behind it."""
    reading: str = ""
    """How to read it, where the section's template does not say so."""

    @property
    def id(self) -> str:
        """Letters, digits and hyphens."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "figure"

    def drawn(self) -> dict[str, Markup]:
        """As SVG, by the kind of screen."""
        return {
            kind: inline_svg(self.draw(theme), f"{self.id}-{kind}", self.description)
            for kind, theme in (("wide", WIDE), ("phone", PHONE))
        }


@dataclass(frozen=True)
class Section:
    """A chapter of the page."""

    id: str
    title: str
    short: str
    """In the list of chapters."""
    content: Markup
    figures: Sequence[Figure] = ()
    folded: bool = False
    """Closed until somebody asks: for specialists."""


def suffix(place: int) -> str:
    """Tells ids of the second and later figures of a kind from those of the first."""
    return f"-{place + 1}" if place else ""


# ---------------------------------------------------------------------- tables


@dataclass(frozen=True)
class Cell:
    """One value of a table: what is shown, what it is sorted by, and whether it is the best of its column."""

    shown: object
    by: float | str | None = None
    """None: by what is shown."""
    best: bool = False
    note: str | None = None

    @property
    def key(self) -> float | str | None:
        """Sorted by this; what is no number stands last."""
        return "" if isinstance(self.by, float) and not math.isfinite(self.by) else self.by


@dataclass(frozen=True)
class Head:
    """A column: its name and what it means."""

    name: str
    note: str | None = None
    numeric: bool | None = None
    """Whether it holds numbers; None: if a cell is sorted by one."""


def table(caption: object, heads: Sequence[object], rows: Sequence[Sequence[object]], sortable: bool = True) -> Markup:
    """A table that scrolls by itself where it is wider than the screen; what is no `Head` or `Cell` is text."""
    body = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    columns = []
    for place, head in enumerate(head if isinstance(head, Head) else Head(str(head)) for head in heads):
        found = any(isinstance(row[place].by, int | float) for row in body)
        columns.append(Head(head.name, head.note, place > 0 and (found if head.numeric is None else head.numeric)))
    label = caption.striptags() if isinstance(caption, Markup) else caption
    sortable = sortable and len(rows) > 1
    return render("table.html", caption=caption, label=label, columns=columns, rows=body, sortable=sortable)


def moved_items(caption: str, items: Iterable[tuple[Markup, float | None, str, float | None, float | None]]) -> Markup:
    """Items whose exposure changes: `shown_item`, training interactions, group, lists that hold it before and after."""
    rows = [
        [
            Cell(item),
            number(used, 0),
            Cell(group),
            number(before, 0),
            number(after, 0),
            number(None if before is None or after is None else after - before, 0, "+"),
        ]
        for item, used, group, before, after in items
    ]
    heads = ["item", Head("used", "interactions in training"), "group", "before", "after", "change"]
    return table(caption, heads, rows) if rows else Markup()


@dataclass(frozen=True)
class ListedItem:
    """One place of a user's list."""

    item_id: object
    hit: bool
    group: str
    count: float
    """Training interactions."""
    rank: int
    title: str | None = None


# ---------------------------------------------------------------------- numbers in words


def number(value: float | None, digits: int = 4, sign: str = "", best: bool = False) -> Cell:
    """A number to sort by; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return Cell("–", math.nan)
    return Cell(minus(f"{value:{sign},.{digits}f}"), float(value), best)


def share(value: float | None, digits: int = 1) -> Cell:
    """A share to sort by."""
    if value is None or not math.isfinite(value):
        return Cell("–", math.nan)
    return Cell(percent(value, digits), float(value))


def signed(value: float, digits: int = 1) -> str:
    """A relative change, with its sign."""
    return minus(f"{100 * value:+.{digits}f} %")


def absolute(value: float) -> str:
    """A difference, with its sign."""
    return minus(f"{value:+,.1f}" if abs(value) >= 100 else f"{value:+.4f}")


def change(baseline: float, difference: float) -> str:
    """A relative change; the difference itself where the baseline is 0 or near it."""
    relative = relative_change(baseline, difference)
    return signed(relative) if relative == relative else absolute(difference)


def minus(shown: str) -> str:
    """A number with a minus sign in place of the hyphen."""
    return shown.replace("-", "−")
