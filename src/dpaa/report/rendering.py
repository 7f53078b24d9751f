"""HTML by Jinja2 templates: whatever is no `Markup` is escaped on its way in, and nothing in it acts unseen."""

from __future__ import annotations

from math import isfinite

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpaa._text import printable

LONGEST_ID = 60
"""Characters of an id that are shown; the rest is an ellipsis, and the whole stands in the hint."""


def as_text(value: object) -> object:
    """Any value before it is escaped: None is nothing, and characters that act unseen are spelled out."""
    return "" if value is None else value if isinstance(value, Markup) else printable(str(value))


def html(pattern: str, *values: object) -> Markup:
    """A literal pattern of HTML with values in its `{}`: text stays text."""
    return Markup(pattern).format(*map(as_text, values))


def shown_id(value: object) -> Markup:
    """Somebody's id as it is, cut if it is very long."""
    whole = str(value)
    if len(whole) <= LONGEST_ID:
        return html('<span class="id">{}</span>', whole)
    return html('<span class="id" title="{}">{}…</span>', whole[:1000], whole[:LONGEST_ID])


def shown_item(item_id: object, title: object = None) -> Markup:
    """An item by what people call it, its id behind; by its id where nobody said."""
    if title is None or title == "":
        return shown_id(item_id)
    words = str(title)
    cut = f"{words[:LONGEST_ID]}…" if len(words) > LONGEST_ID else words
    return html('<span class="title" title="{}">{}</span> {}', words[:1000], cut, shown_id(item_id))


def with_code(words: object) -> Markup:
    """Text in which `this` is code."""
    pieces = str(words).split("`")
    if isinstance(words, Markup) or len(pieces) % 2 == 0:
        return html("{}", words)
    return Markup().join(html("<code>{}</code>" if place % 2 else "{}", piece) for place, piece in enumerate(pieces))


def sentence(words: str) -> str:
    """With a capital letter."""
    return f"{words[:1].upper()}{words[1:]}"


def percent(value: float, digits: int = 1) -> str:
    """A share in words."""
    return f"{100 * value:.{digits}f} %"


ENVIRONMENT = Environment(
    loader=PackageLoader("dpaa.report"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=as_text,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {
    "shown_id": shown_id,
    "shown_item": shown_item,
    "sentence": sentence,
    "percent": percent,
    "with_code": with_code,
}
ENVIRONMENT.tests["finite"] = isfinite


def render(template: str, **values: object) -> Markup:
    """A template of `templates/` with these values."""
    return Markup(ENVIRONMENT.get_template(template).render(values))
