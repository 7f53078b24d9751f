"""HTML by Jinja2: figures that can be saved, tables that can be sorted, numbers as text.

Whatever is no `Markup` is escaped on its way in, and characters that act unseen are spelled out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpaa._text import printable
from dpaa.report._charts import VARIABLES, Chart

SVG = "http://www.w3.org/2000/svg"
KEPT = frozenset({"svg", "g", "path", "line", "rect", "text", "tspan", "defs", "clipPath", "linearGradient", "stop"})
_LONG = re.compile(r"(\d+\.\d\d)\d+")
Heads = Sequence[str | tuple[str, str]]
"""Names of columns, each with its meaning where it needs one."""
LONGEST_ID = 60
"""Characters of an id that are shown; the whole id stands in the hint."""


@dataclass(frozen=True)
class Figure:
    """A chart on the page, and in a file of the same name."""

    name: str
    """Letters, digits and hyphens; unique on the page."""
    title: str
    description: str
    """Text alternative."""
    chart: Chart
    table: str = ""
    """The numbers behind it."""

    @property
    def svg(self) -> Markup:
        """The chart as part of the page."""
        return inline_svg(self.chart, self.name, self.description)


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
    note: str = ""


def table(caption: str, heads: Heads, rows: Sequence[Sequence[object]]) -> Markup:
    """A table that can be sorted and scrolls by itself where it is wider than the screen.

    Parameters
    ----------
    caption : of the table
    heads : names of the columns, each with its meaning where it needs one
    rows : what is no `Cell` is text

    Returns
    -------
    the table; nothing without rows
    """
    body = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    columns = []
    for index, head in enumerate(heads):
        name, note = head if isinstance(head, tuple) else (head, "")
        numeric = index > 0 and any(isinstance(row[index].by, int | float) for row in body)
        columns.append((name, note, numeric))
    return render("table.html", caption=caption, columns=columns, rows=body) if body else Markup()


def number(value: float | None, form: str = ",.4f", best: bool = False) -> Cell:
    """A number to sort by, in a format; a dash, sorted last, where there is none."""
    if value is None or not isfinite(value):
        return Cell("–", "")
    return Cell(minus(format(value, form)), float(value), best)


def signed(value: float) -> str:
    """A relative change with its sign, in percent."""
    return minus(f"{value:+.1%}")


def minus(shown: str) -> str:
    """A number with a minus sign in place of the hyphen."""
    return shown.replace("-", "−")


def suffix(index: int) -> str:
    """Ending of the ids of the second and later figures of a kind."""
    return f"-{index + 1}" if index else ""


def shown_item(item_id: object, title: str | None = None) -> Markup:
    """An item by its title, the id behind it; by its id where there is no title."""
    words = {"title": title} if title else {}
    pattern = Markup('<span class="{}" title="{}">{}</span>')
    shown = {kind: printable(each) for kind, each in (words | {"id": str(item_id)}).items()}
    cut = {kind: each[:LONGEST_ID] + "…" * (len(each) > LONGEST_ID) for kind, each in shown.items()}
    return Markup(" ").join(pattern.format(kind, each[:1000], cut[kind]) for kind, each in shown.items())


def with_code(words: str) -> Markup:
    """Mark `this` in a text as code."""
    pieces = printable(words).split("`")
    marked = [Markup("<code>{}</code>" if index % 2 else "{}").format(piece) for index, piece in enumerate(pieces)]
    return Markup().join(marked)


def inline_svg(chart: Chart, name: str, description: str) -> Markup:
    """Draw a chart for the page.

    The SVG is parsed and written again, with elements that draw alone, so that whatever text it holds stays text.

    Parameters
    ----------
    chart : chart of Altair
    name : prefix of the ids inside; unique on the page
    description : read out in place of the picture

    Returns
    -------
    the `svg` element; marks have their values as `data-tip`
    """
    import vl_convert

    root = cleaned_svg(vl_convert.vegalite_to_svg(chart.to_dict()), name)
    size = {key: root.attrib[key] for key in ("viewBox", "width", "height")}
    root.attrib = size | {"role": "img", "aria-label": printable(description)}
    ElementTree.register_namespace("", SVG)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def cleaned_svg(text: str, name: str) -> ElementTree.Element:
    """Keep what draws, with ids of its own and the colours of the page."""
    root = ElementTree.fromstring(text)
    # White boxes would cover a dark page; hidden and empty elements only make it larger.
    for parent in list(root.iter()):
        for child in list(parent):
            unseen = child.get("display") == "none" or child.get("d") == "" or child.get("fill") == "white"
            if child.tag.removeprefix(f"{{{SVG}}}") not in KEPT or (unseen and child.tag != f"{{{SVG}}}text"):
                parent.remove(child)
    for element in root.iter():
        label, role = element.get("aria-label"), element.get("aria-roledescription") or ""
        kept = {k: v for k, v in element.items() if not k.startswith("aria-") and k not in ("role", "class", "style")}
        for key, value in kept.items():
            if key in ("d", "transform"):
                value = _LONG.sub(r"\1", value)  # half the size of the page
            kept[key] = f"{name}-{value}" if key == "id" else VARIABLES.get(value, value)
            kept[key] = kept[key].replace("url(#", f"url(#{name}-")
        if label and not {"axis", "legend", "title", "container"} & set(role.split()):
            kept["data-tip"] = label
        element.attrib = kept
    return root


def _as_text(value: object) -> object:
    return value if isinstance(value, Markup) else printable(str(value))


ENVIRONMENT = Environment(
    loader=PackageLoader("dpaa.report"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_as_text,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters["with_code"] = with_code


def render(template: str, **values: Any) -> Markup:
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
