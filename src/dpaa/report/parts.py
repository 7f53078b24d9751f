"""What sections are made of: figures that can be saved, tables that can be sorted, and words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dpaa.comparison.result import relative_change
from dpaa.report.figures import Chart
from dpaa.report.markup import Markup, tag
from dpaa.report.svg import inline_svg
from dpaa.report.theme import PHONE, WIDE, Look

LONGEST_ID = 60
"""Characters of an id that are shown; the rest is an ellipsis, and the whole stands in the hint."""


@dataclass(frozen=True)
class Figure:
    """A chart, drawn twice for the page (wide and for phones) and once more for each file it is saved to."""

    name: str
    """Of its file and its id; unique on the page."""
    title: str
    description: str
    """What it shows, for people who cannot see it."""
    reading: str
    """How to read it, for somebody who sees such a thing for the first time."""
    draw: Callable[[Look], Chart]
    table: Markup | None = None
    """The numbers behind it."""

    def html(self) -> Markup:
        """The figure with its reading help and buttons."""
        name = slug(self.name)
        drawn = [
            tag("div", inline_svg(self.draw(look), f"{name}-{kind}", self.description), class_=f"chart {kind}")
            for kind, look in (("wide", WIDE), ("phone", PHONE))
        ]
        buttons = [
            tag(
                "button",
                f"Save {form}",
                type="button",
                data_save=form.lower(),
                aria_label=f"Save {self.title} as {form}",
            )
            for form in ("SVG", "PNG")
        ]
        numbers = None
        if self.table is not None:
            numbers = tag("details", tag("summary", "The numbers behind this figure"), self.table)
        reading = [tag("p", tag("strong", "How to read it. "), self.reading, class_="reading")]
        return tag(
            "figure",
            tag("figcaption", tag("h3", self.title, id=f"{name}-title"), tag("div", buttons, class_="saves")),
            tag("div", drawn, class_="charts"),
            reading,
            numbers,
            id=name,
            aria_labelledby=f"{name}-title",
            data_name=name,
        )


@dataclass(frozen=True)
class Section:
    """A chapter of the page."""

    id: str
    title: str
    short: str
    """In the list of chapters."""
    parts: list[Figure | Markup] = field(default_factory=list)

    def html(self) -> Markup:
        """The chapter, or nothing if there is nothing in it."""
        if not self.parts:
            return Markup()
        inside = [part.html() if isinstance(part, Figure) else part for part in self.parts]
        return tag(
            "section",
            tag("h2", self.title, id=f"{self.id}-title"),
            inside,
            id=self.id,
            aria_labelledby=f"{self.id}-title",
        )


@dataclass(frozen=True)
class Cell:
    """One value of a table: what is shown, what it is sorted by, and whether it is the best of its column."""

    shown: object
    by: float | str | None = None
    best: bool = False
    note: str | None = None

    def html(self, numeric: bool, first: bool) -> Markup:
        """As a header of its row if it is the first."""
        mark = tag("span", "★", class_="mark", aria_hidden="true") if self.best else None
        said = tag("span", " best", class_="hidden") if self.best else None
        by = self.by if self.by is None or isinstance(self.by, str) or math.isfinite(self.by) else ""
        classes = " ".join(name for name, on in (("number", numeric), ("best", self.best)) if on) or None
        content = (mark, self.shown, said)
        if first:
            return tag("th", *content, scope="row", data_by=by, title=self.note, class_=classes)
        return tag("td", *content, data_by=by, title=self.note, class_=classes)


@dataclass(frozen=True)
class Head:
    """A column: its name, what it means, and whether it holds numbers."""

    name: str
    note: str | None = None
    numeric: bool = True


def table(caption: object, heads: Sequence[Head], rows: Sequence[Sequence[Cell]], sortable: bool = True) -> Markup:
    """A table that scrolls by itself where it is wider than the screen."""
    sortable = sortable and len(rows) > 1
    names = []
    for place, head in enumerate(heads):
        first, *rest = head.name.split("/")
        name: object = [first, *(["/", tag("wbr"), part] for part in rest)]  # long names may break there
        if sortable:
            name = tag("button", name, tag("span", class_="arrow", aria_hidden="true"), type="button")
        classes = "number" if head.numeric and place else None
        names.append(
            tag("th", name, scope="col", title=head.note, class_=classes, aria_sort="none" if sortable else None)
        )
    body = [
        tag("tr", [cell.html(heads[place].numeric and place > 0, place == 0) for place, cell in enumerate(row)])
        for row in rows
    ]
    whole = tag(
        "table",
        tag("caption", tag("span", caption)),
        tag("thead", tag("tr", names)),
        tag("tbody", body),
        data_sortable=sortable,
    )
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=_plain(caption))


def paragraph(*content: object) -> Markup:
    """A paragraph."""
    return tag("p", *content)


def code(*content: object) -> Markup:
    """Something to type."""
    return tag("code", *content)


def bullets(lines: Sequence[object]) -> Markup:
    """A list, or nothing."""
    return tag("ul", [tag("li", line) for line in lines]) if lines else Markup()


def tiles(pairs: Sequence[tuple[str, str]]) -> Markup:
    """Numbers to see at a glance: value, then what it is."""
    return tag("dl", [tag("div", tag("dt", what), tag("dd", value)) for value, what in pairs], class_="tiles")


def number(value: float | None, digits: int = 4) -> Cell:
    """A number to sort by; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return Cell("–", "")
    return Cell(minus(f"{value:,.{digits}f}"), float(value))


def shown_id(value: object) -> Markup:
    """Somebody's id as it is, cut if it is very long."""
    whole = str(value)
    if len(whole) <= LONGEST_ID:
        return tag("span", whole, class_="id")
    return tag("span", f"{whole[:LONGEST_ID]}…", class_="id", title=whole[:1000])


def slug(name: str) -> str:
    """Letters, digits and hyphens: fit for ids and files."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "figure"


def _plain(caption: object) -> str:
    return re.sub(r"<[^>]*>", "", caption) if isinstance(caption, Markup) else str(caption)


def percent(value: float, digits: int = 1) -> str:
    """A share in words."""
    return f"{100 * value:.{digits}f} %"


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
