"""Parts of JSON that somebody else may have written: of the type asked for, or empty."""

from __future__ import annotations

from typing import Any

from dpaa.text import printable


def readable(content: Any) -> Any:
    """The same with every text, the names of its parts too, in letters that a chart and a page can show."""
    if isinstance(content, dict):
        return {printable(key): readable(value) for key, value in content.items()}
    if isinstance(content, list):
        return [readable(value) for value in content]
    return printable(content) if isinstance(content, str) else content


def object_at(content: dict[str, Any], name: str) -> dict[str, Any]:
    """The object under this name."""
    found = content.get(name)
    return found if isinstance(found, dict) else {}


def list_at(content: dict[str, Any], name: str) -> list[Any]:
    """The list under this name."""
    found = content.get(name)
    return found if isinstance(found, list) else []


def objects_at(content: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in the list under this name."""
    return [entry for entry in list_at(content, name) if isinstance(entry, dict)]


def number_at(content: dict[str, Any], name: str) -> float | None:
    """The number under this name."""
    found: Any = content.get(name)
    return float(found) if is_number(found) else None


def pair_at(content: dict[str, Any], name: str) -> tuple[float, float] | None:
    """The two numbers under this name."""
    found = list_at(content, name)
    return (float(found[0]), float(found[1])) if len(found) == 2 and all(map(is_number, found)) else None


def text_at(content: dict[str, Any], name: str) -> str:
    """What stands under this name, as text."""
    found = content.get(name)
    return "" if found is None else str(found)


def is_number(value: object) -> bool:
    """A finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
