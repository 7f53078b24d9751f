"""JSON of any origin, read part by part: what is missing or of another type is empty."""

from __future__ import annotations

import math
from typing import Any

from dpaa._text import printable


def is_number(value: object) -> bool:
    """Whether a value is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


class Partial:
    """An object of a JSON file that may be damaged or of another version.

    Parameters
    ----------
    content : the object; anything else counts as an empty one
    """

    def __init__(self, content: object) -> None:
        self.content: dict[str, Any] = content if isinstance(content, dict) else {}

    def get(self, name: str) -> Any:
        """The value of a key, which may end in `@k`; None where there is none."""
        if name in self.content:
            return self.content[name]
        return next((value for key, value in self.content.items() if key.partition("@")[0] == name), None)

    def text(self, name: str) -> str:
        """As text, with characters that act unseen spelled out."""
        value = self.get(name)
        return "" if value is None else printable(str(value))

    def number(self, name: str) -> float:
        """A finite number, else NaN."""
        value = self.get(name)
        return float(value) if is_number(value) and abs(value) < 1e308 else math.nan

    def whole(self, name: str) -> int | None:
        """A whole number, else None."""
        value = self.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def items(self, name: str) -> list[Any]:
        """A list, else an empty one."""
        value = self.get(name)
        return value if isinstance(value, list | tuple) else []  # type: ignore[return-value]

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        return [printable(str(line)) for line in self.items(name)]

    def shares(self, name: str) -> list[float]:
        """A list of numbers from 0 to 1; empty where one is none: it would stretch a figure beyond all bounds."""
        values = self.items(name)
        return list(map(float, values)) if all(is_number(value) and 0 <= value <= 1 for value in values) else []

    def part(self, name: str) -> Partial:
        """An object inside."""
        return Partial(self.get(name))

    def parts(self, name: str) -> list[Partial]:
        """The objects of a list inside."""
        return [Partial(each) for each in self.items(name) if isinstance(each, dict)]
