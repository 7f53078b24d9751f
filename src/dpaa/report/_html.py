"""HTML by Jinja2: figures that can be saved, tables that can be sorted, numbers as text.

Whatever is no `Markup` is escaped on its way in, and characters that act unseen are spelled out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpaa._text import printable
from dpaa.comparison import relative_change
from dpaa.report._drawing import PHONE, WIDE, Chart, Theme
from dpaa.report._partial import Partial
from dpaa.report._svg import inline_svg

LONGEST_ID = 60
"""Characters of an id that are shown; the rest is an ellipsis, and the whole id stands in the hint."""


@dataclass(frozen=True)
class Figure:
    """A chart, drawn twice for the page (wide and for phones) and once more for each file it is saved to."""

    name: str
    """Of its file and its id; unique on the page."""
    title: str
    description: str
    """Text alternative."""
    draw: Callable[[Theme], Chart]
    table: Markup | None = None
    """The numbers behind it."""
    reading: str = ""
    """How to read it, where the section's template does not say so."""

    @property
    def id(self) -> str:
        """The name in letters, digits and hyphens."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "figure"

    def drawn(self) -> dict[str, Markup]:
        """The chart as SVG, by the kind of screen."""
        return {
            kind: inline_svg(self.draw(theme), f"{self.id}-{kind}", self.description)
            for kind, theme in (("wide", WIDE), ("phone", PHONE))
        }


@dataclass(frozen=True)
class Section:
    """A chapter of the page; it is left out where it has no content."""

    id: str
    title: str
    short: str
    """In the list of chapters."""
    content: Markup
    figures: Sequence[Figure] = ()
    folded: bool = False
    """Whether it is closed at first: for specialists."""


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
        """What it is sorted by; a missing number comes last."""
        return "" if isinstance(self.by, float) and not isfinite(self.by) else self.by


@dataclass(frozen=True)
class Head:
    """A column: its name and what it means."""

    name: str
    note: str | None = None
    numeric: bool | None = None
    """Whether it holds numbers; None: if a cell is sorted by one."""


def table(caption: object, heads: Sequence[object], rows: Sequence[Sequence[object]], sortable: bool = True) -> Markup:
    """A table that scrolls by itself where it is wider than the screen.

    Parameters
    ----------
    caption : text or markup
    heads, rows : what is no `Head` or `Cell` is text
    sortable : whether a click on a column's name sorts

    Returns
    -------
    the table; nothing without rows
    """
    body = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    columns = []
    for index, head in enumerate(head if isinstance(head, Head) else Head(str(head)) for head in heads):
        numbers = any(isinstance(row[index].by, int | float) for row in body)
        columns.append(replace(head, numeric=index > 0 and (numbers if head.numeric is None else head.numeric)))
    label = caption.striptags() if isinstance(caption, Markup) else caption
    sortable = sortable and len(rows) > 1
    values = {"caption": caption, "label": label, "columns": columns, "rows": body, "sortable": sortable}
    return render("table.html", **values) if body else Markup()


def records_table(
    caption: str, records: Iterable[Partial], columns: Mapping[Any, str | Callable[[Any], Any]]
) -> Markup:
    """A table with a row per record.

    Parameters
    ----------
    caption : of the table
    records : parts of a JSON file
    columns : head → key of a text, key and format of a number (`users:,.0f`), or a function of the record

    Returns
    -------
    the table; nothing without records
    """

    def cell(record: Partial, column: str | Callable[[Any], Any]) -> object:
        if not isinstance(column, str):
            return column(record)
        key, _, form = column.partition(":")
        return number(record.number(key), form) if form else record.text(key)

    return table(caption, list(columns), [[cell(record, each) for each in columns.values()] for record in records])


def moved_items(caption: str, items: Iterable[Sequence[Any]]) -> Markup:
    """Items whose exposure changes.

    Parameters
    ----------
    caption : of the table
    items : `shown_item`, training interactions, group, and the lists that hold it before and after

    Returns
    -------
    the table; nothing without items
    """
    heads = ["item", Head("used", "interactions in training"), "group", "before", "after", "change"]
    counts = [",.0f", ",.0f", "+,.0f"]
    rows = [
        [item, number(used, ",.0f"), group, *map(number, (before, after, after - before), counts)]
        for item, used, group, before, after in items
    ]
    return table(caption, heads, rows)


def number(value: float | None, form: str = ",.4f", best: bool = False) -> Cell:
    """A number to sort by, in a format; a dash where there is none."""
    if value is None or not isfinite(value):
        return Cell("–", nan)
    return Cell(minus(format(value, form)), float(value), best)


def signed(value: float) -> str:
    """A relative change with its sign, in percent."""
    return minus(f"{value:+.1%}")


def absolute(value: float) -> str:
    """A difference with its sign."""
    return minus(f"{value:+,.1f}" if abs(value) >= 100 else f"{value:+.4f}")


def change(baseline: float, difference: float) -> str:
    """A relative change; the difference itself where the baseline is 0 or near it."""
    relative = relative_change(baseline, difference)
    return signed(relative) if isfinite(relative) else absolute(difference)


def minus(shown: str) -> str:
    """A number with a minus sign in place of the hyphen."""
    return shown.replace("-", "−")


def suffix(index: int) -> str:
    """What distinguishes ids of the second and later figures of a kind."""
    return f"-{index + 1}" if index else ""


def html(pattern: str, *values: object) -> Markup:
    """A literal pattern of HTML with values in its `{}`, which stay text unless they are markup."""
    return Markup(pattern).format(*map(_as_text, values))


def shown_id(value: object) -> Markup:
    """An id as it is, cut if it is very long."""
    whole = str(value)
    if len(whole) <= LONGEST_ID:
        return html('<span class="id">{}</span>', whole)
    return html('<span class="id" title="{}">{}…</span>', whole[:1000], whole[:LONGEST_ID])


def shown_item(item_id: object, title: object = None) -> Markup:
    """An item by its title, the id behind it; by its id where there is no title."""
    words = "" if title is None else str(title)
    if not words:
        return shown_id(item_id)
    cut = f"{words[:LONGEST_ID]}…" if len(words) > LONGEST_ID else words
    return html('<span class="title" title="{}">{}</span> {}', words[:1000], cut, shown_id(item_id))


def with_code(words: object) -> Markup:
    """Text in which `this` is code."""
    pieces = str(words).split("`")
    if isinstance(words, Markup) or len(pieces) % 2 == 0:
        return html("{}", words)
    return Markup().join(html("<code>{}</code>" if index % 2 else "{}", piece) for index, piece in enumerate(pieces))


def sentence(words: str) -> str:
    """With a capital letter."""
    return f"{words[:1].upper()}{words[1:]}"


def _as_text(value: object) -> object:
    return "" if value is None else value if isinstance(value, Markup) else printable(str(value))


ENVIRONMENT = Environment(
    loader=PackageLoader("dpaa.report"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_as_text,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {
    "shown_id": shown_id,
    "shown_item": shown_item,
    "sentence": sentence,
    "with_code": with_code,
}
ENVIRONMENT.tests["finite"] = isfinite


def render(template: str, **values: object) -> Markup:
    """Fill a template of `templates/`.

    Parameters
    ----------
    template : file name
    values : what it shows; everything that is no markup is escaped

    Returns
    -------
    HTML
    """
    return Markup(ENVIRONMENT.get_template(template).render(values))
