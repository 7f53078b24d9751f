"""Search spaces: the paper's grids, ranges around them, or lists of values."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic.fields import FieldInfo

from dpaa.errors import InputError
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod

SMALL = 100_000
"""Points that may be listed one by one."""
DIGITS = 3
"""Significant digits of a drawn number: enough to search, short enough to type."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included.

    Parameters
    ----------
    low, high : bounds
    log : whether magnitudes are equally likely instead of values
    whole : whether only whole numbers are drawn
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __str__(self) -> str:
        return f"{self.low:g} … {self.high:g}{', whole' if self.whole else ''}{', log' if self.log else ''}"

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    def neat(self, value: float) -> float:
        """The value that is trained with: few digits."""
        return int(value) if self.whole else float(f"{value:.{DIGITS}g}")


Dimension = Range | tuple[Any, ...]
Space = dict[str, Dimension]
"""Hyperparameter → a range, or the values themselves."""

SHARED: Space = {
    "learning_rate": Range(1e-3, 3e-2, log=True),
    "l2": Range(1e-6, 1e-2, log=True),
    "layers": Range(1, 4, whole=True),
}
"""The wide space of the hyperparameters that all methods trained in epochs have."""
SHARED_LISTS: Space = {
    "learning_rate": (3e-2, 1e-2, 5e-3, 1e-3, 1e-4),
    "l2": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2),
    "layers": (1, 2, 3, 4),
}
"""The same as listed values: the space of a published reproduction."""


def search_space(
    method: type[Method], name: str, fixed: Mapping[str, object], values: Mapping[str, Sequence[object]]
) -> Space:
    """The hyperparameters to search.

    Parameters
    ----------
    method : their owner
    name : `wide`, `paper` or `lists`
    fixed : hyperparameters that are not searched
    values : lists in place of those of the named space

    Returns
    -------
    Hyperparameter → range or values, in the order in which they are drawn
    """
    own, trained = method.grid | method.wide, issubclass(method, GraphMethod)
    space: Space
    if name == "paper":  # the method's grid, and the paper's learning rates for whatever is trained in epochs
        space = {**({"learning_rate": GraphMethod.grid["learning_rate"]} if trained else {}), **method.grid}
    elif name == "wide":  # the shared ranges, and the method's own lists stretched to ranges
        fields, shared = method.hyperparameters.model_fields, SHARED if trained else {}
        kept = [key for key in own if key not in shared or key in method.wide]
        space = shared | {key: _stretched(own[key], fields[key]) for key in kept}
    elif name == "lists":  # a 0 in a list is tried as a 0, which no range offers
        space = (SHARED_LISTS if trained else {}) | {key: own[key] for key in own if key not in SHARED_LISTS}
    else:
        raise InputError(f"there is no search space {name!r}; choose one of wide, paper, lists")
    for key, tried in values.items():
        if key in fixed or not tried:
            raise InputError(f"hyperparameter {key}: no value to try, or it is fixed too; write {key}=1,2")
        space[key] = tuple(dict.fromkeys(getattr(method(**{key: value}), key) for value in tried))
    return {key: dimension for key, dimension in space.items() if key not in fixed}


def _stretched(values: Sequence[Any], field: FieldInfo) -> Dimension:
    """Listed numbers as a range that reaches a step beyond them; other values as they are.

    Over a factor of 10 or more the range is logarithmic, a third of the smallest to three times the largest (a 0 in
    the list, which has no logarithm, is left out); below, it is linear, the mean distance beyond both ends.

    Parameters
    ----------
    values : of a grid
    field : the hyperparameter, whose bounds the range respects

    Returns
    -------
    The range, or the values
    """
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return tuple(values)
    positive = [value for value in values if value > 0]
    log = len(positive) > 1 and min(values) >= 0 and max(positive) / min(positive) >= 10
    if log:
        low, high = float(f"{min(positive) / 3:.1g}"), float(f"{max(positive) * 3:.1g}")
    else:
        step = (max(values) - min(values)) / max(len(values) - 1, 1)
        low, high = float(f"{min(values) - step:.6g}"), float(f"{max(values) + step:.6g}")
    # The hyperparameter's own bounds: a stretched range must not offer what the method refuses.
    bounds = {
        sign: getattr(rule, sign) for rule in field.metadata for sign in ("ge", "gt", "le", "lt") if hasattr(rule, sign)
    }
    low, high = max(low, bounds.get("ge", low)), min(high, bounds.get("le", high))
    if low <= bounds.get("gt", -math.inf):
        low = min(values)
    if high >= bounds.get("lt", math.inf):
        high = max(values)
    whole = all(isinstance(value, int) for value in values)
    return Range(math.ceil(low), math.floor(high), log, whole=True) if whole else Range(low, high, log)


def in_words(space: Space) -> dict[str, str]:
    """Hyperparameter → what is tried, as text."""

    def text(value: object) -> str:
        return f"{value:g}" if isinstance(value, float) else str(value)

    return {name: " · ".join(map(text, v if isinstance(v, tuple) else (v,))) for name, v in space.items()}


def size(space: Space) -> int | None:
    """Number of points; None where a range of real numbers makes them endless."""
    lists = [_values(dimension) for dimension in space.values()]
    return math.prod(len(values) for values in lists if values is not None) if None not in lists else None


def points(space: Space, seed: int, first: Mapping[str, object]) -> list[dict[str, Any]]:
    """Every point of a space of lists and whole numbers; any beginning of the list is a fair sample of the grid.

    Parameters
    ----------
    space : without ranges of real numbers
    seed : of the order
    first : the point that leads, if it is in the space

    Returns
    -------
    Hyperparameter → value, per point
    """
    lists = [_values(dimension) or () for dimension in space.values()]
    every = [dict(zip(space, values, strict=True)) for values in itertools.product(*lists)]
    drawn = [every[index] for index in np.random.default_rng(seed).permutation(len(every))]
    drawn.sort(key=lambda point: any(point[name] != first.get(name) for name in point))
    return drawn


def first_point(untuned: Method, space: Space) -> dict[str, Any]:
    """The untuned hyperparameters that lie in the space: the first trial, so that tuning never loses to them."""
    return {name: getattr(untuned, name) for name, tried in space.items() if getattr(untuned, name) in tried}


def _values(dimension: Dimension) -> Sequence[Any] | None:
    """List the values of a dimension; None where they are endless."""
    if isinstance(dimension, tuple):
        return dimension
    return range(int(dimension.low), int(dimension.high) + 1) if dimension.whole else None
