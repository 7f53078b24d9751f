"""HTML put together so that text cannot become markup: whatever is no `Markup` is escaped on its way in."""

from __future__ import annotations

from html import escape

from dpaa.text import printable

VOID = frozenset({"br", "col", "hr", "input", "meta", "link", "wbr"})


class Markup(str):
    """Text that is HTML already; only this module and `drawn` make it."""

    __slots__ = ()


def text(content: object) -> Markup:
    """Any value as harmless text: nothing in it is markup, and nothing acts unseen (`dpaa.text.printable`)."""
    if isinstance(content, Markup):
        return content
    return Markup(escape(printable(str(content)), quote=True))


def join(*content: object) -> Markup:
    """Pieces one after the other; None is nothing, lists are opened."""
    return Markup("".join(_piece(piece) for piece in content))


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """`<name …>content</name>`.

    Attributes: `class_` is `class`, `data_x` is `data-x`; True stands alone, None and False are left out.
    """
    written = "".join(
        f" {_attribute(key)}" if value is True else f' {_attribute(key)}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*content)}</{name}>")


def _piece(piece: object) -> str:
    if piece is None:
        return ""
    return join(*piece) if isinstance(piece, list | tuple) else text(piece)


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")
