"""JSON that anybody may have written, read into the dataclass that ours is made from: damaged parts are empty."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import is_dataclass
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from dpaa._text import printable

Kind = TypeVar("Kind")
EMPTY: dict[Any, Any] = {float: math.nan, bool: False, list: [], dict: {}, tuple: ()}
"""By type, where a part is missing or of another type; of all others None."""
_hints: Any = cache(get_type_hints)


def lenient(kind: type[Kind], content: object) -> Kind:
    """The dataclass `kind` from a JSON object, whose keys may end in `@k`; objects inside in the same way."""
    given = {key.partition("@")[0]: value for key, value in content.items()} if isinstance(content, dict) else {}
    return kind(**{name: _part(hint, given.get(name)) for name, hint in _hints(kind).items()})


def _part(hint: Any, value: Any) -> Any:
    inner = next(iter(get_args(hint)), None)
    if is_dataclass(hint) and isinstance(hint, type):
        return lenient(hint, value)
    if is_dataclass(inner) and isinstance(inner, type) and get_origin(hint) is list:
        return [lenient(inner, part) for part in value if isinstance(part, dict)] if isinstance(value, list) else []
    if hint is str:
        return "" if value is None else printable(str(value))
    if hint == list[str]:
        return [printable(str(line)) for line in value] if isinstance(value, list) else []
    try:
        return _adapter(hint).validate_python(value)
    except ValidationError:
        return copy(EMPTY.get(get_origin(hint) or hint))


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)


def is_number(value: object) -> bool:
    """A finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
