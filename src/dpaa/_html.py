"""Objects as a notebook shows them: small tables, everything escaped, in the colours of the page they stand on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup, escape

from dpaa._text import printable, shortened

LONGEST_CELL = 300
CELL = "padding:.15em .8em .15em 0;border:0;background:none;color:inherit;vertical-align:top"
RULE = "border-bottom:1px solid currentColor"
_BOX = Markup('<div class="dpaa" style="max-width:100%;overflow-x:auto">{}</div>')
_TITLE = Markup('<div style="font-weight:600;margin:.2em 0">{}</div>')
_TABLE = Markup(
    '<table style="border-collapse:collapse;border:0;background:none;color:inherit;margin:.2em 0">{}{}</table>'
)
_NOTE = Markup('<div style="font-size:smaller;opacity:.85;margin:.2em 0;max-width:60em">{}</div>')


def html_text(value: object) -> Markup:
    """Text of anybody's, escaped, of bounded length; what is markup already stays."""
    return value if isinstance(value, Markup) else escape(shortened(printable(str(value)), LONGEST_CELL))


def html_table(
    title: str,
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    notes: Iterable[str] = (),
    aligned: str = "right;white-space:nowrap",
) -> Markup:
    """A table with a title above it and notes below; numbers, in all columns but the first, go right."""

    def row(cells: Sequence[object], tag: str, rule: str = "") -> Markup:
        made = (
            Markup('<{} style="{};text-align:{}{}">{}</{}>').format(
                tag, CELL, "left" if place == 0 else aligned, rule, html_text(cell), tag
            )
            for place, cell in enumerate(cells)
        )
        return Markup("<tr>{}</tr>").format(Markup("").join(made))

    head = Markup("<thead>{}</thead>").format(row(header, "th", f";{RULE}")) if any(map(str, header)) else Markup("")
    body = Markup("<tbody>{}</tbody>").format(Markup("").join(row(cells, "td") for cells in rows))
    told = Markup("").join(_NOTE.format(html_text(note)) for note in notes)
    return _BOX.format(_TITLE.format(html_text(title)) + _TABLE.format(head, body) + told)


def html_facts(title: str, facts: Mapping[str, object], notes: Iterable[str] = ()) -> Markup:
    """What there is to know of one thing, a line each; facts that are None or empty are left out."""
    known = [(name, value) for name, value in facts.items() if value not in (None, "")]
    return html_table(title, (), known, notes, aligned="left")
