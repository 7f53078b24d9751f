"""What a search may try: the paper's grids value by value, ranges around them, or lists of values for everything."""

from __future__ import annotations

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
from dpaa.methods.settings import Settings, TrainedSettings, make_settings

SPACES = ("wide", "paper", "lists")
SMALL = 100_000
"""Points that may be listed one by one."""
DIGITS = 3
"""Significant digits of a drawn number: enough to search, short enough to type."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included."""

    low: float
    high: float
    log: bool = False
    """Whether magnitudes are equally likely instead of values."""
    whole: bool = False
    """Whether only whole numbers are meant."""

    def __str__(self) -> str:
        kind = ", whole" if self.whole else ""
        return f"{self.low:g} … {self.high:g}{kind}{', log' if self.log else ''}"

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    def neat(self, value: float) -> float:
        """As it is trained with: few digits."""
        return int(value) if self.whole else float(f"{value:.{DIGITS}g}")


Dimension = Range | tuple[Any, ...]
"""A range, or the values themselves."""
Space = dict[str, Dimension]

SHARED: Space = {
    "learning_rate": Range(1e-3, 3e-2, log=True),
    "l2": Range(1e-6, 1e-2, log=True),
    "layers": Range(1, 4, whole=True),
}
"""What a wide search tries of the settings that all methods trained in epochs have."""
SHARED_LISTS: Space = {
    "learning_rate": (3e-2, 1e-2, 5e-3, 1e-3, 1e-4),
    "l2": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2),
    "layers": (1, 2, 3, 4),
}
"""The same where values are listed."""


def search_space(
    method: type[Method], name: str, fixed: Mapping[str, object], values: Mapping[str, Sequence[object]]
) -> Space:
    """The settings to search: those of the named space, with lists of `values` in their place, without fixed ones."""
    if name not in SPACES:
        raise InputError(f"there is no search space {name!r}; choose one of {', '.join(SPACES)}")
    space = {"wide": wide_space, "paper": paper_space, "lists": lists_space}[name](method)
    for setting, tried in values.items():
        if setting in fixed:
            raise InputError(f"setting {setting} is both fixed and searched; give it once")
        if not tried:
            raise InputError(f"setting {setting}: no value to try; write for example learning_rate=1e-3,1e-4")
        checked = [getattr(make_settings(method.settings_type, {setting: one}, method.name), setting) for one in tried]
        space[setting] = tuple(dict.fromkeys(checked))
    return {setting: dimension for setting, dimension in space.items() if setting not in fixed}


def paper_space(method: type[Method]) -> Space:
    """`Method.grid`, and the paper's learning rates for whatever is trained in epochs: the same for each method."""
    rates: Space = {"learning_rate": GraphMethod.grid["learning_rate"]} if _trained(method) else {}
    return rates | method.grid


def wide_space(method: type[Method]) -> Space:
    """The shared ranges, and the method's own settings (`grid`, `wide`), numbers stretched to ranges."""
    own = {
        name: stretched(values, method.hyperparameters.model_fields[name])
        for name, values in (method.grid | method.wide).items()
        if not (_trained(method) and name in SHARED and name not in method.wide)
    }
    return (dict(SHARED) if _trained(method) else {}) | own


def lists_space(method: type[Method]) -> Space:
    """Every setting of the wide space by its listed values: a 0 in a list is tried as a 0, which no range offers."""
    own = {name: values for name, values in (method.grid | method.wide).items() if name not in SHARED_LISTS}
    return (dict(SHARED_LISTS) if _trained(method) else {}) | own


def stretched(values: Sequence[Any], field: FieldInfo) -> Dimension:
    """Listed numbers as a range that reaches a step beyond them, within the setting's bounds; words as they are.

    Over a factor of 10 or more the range is logarithmic, a third of the smallest to three times the largest (a 0 in
    the list, which no logarithm has, is left out); below, it is linear, the mean distance beyond both ends.
    """
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return tuple(values)
    positive = [value for value in values if value > 0]
    whole = all(isinstance(value, int) for value in values)
    log = len(positive) > 1 and min(values) >= 0 and max(positive) / min(positive) >= 10
    if log:
        low, high = float(f"{min(positive) / 3:.1g}"), float(f"{max(positive) * 3:.1g}")
    else:
        step = (max(values) - min(values)) / max(len(values) - 1, 1)
        low, high = float(f"{min(values) - step:.6g}"), float(f"{max(values) + step:.6g}")
    bounds = {
        sign: getattr(rule, sign) for rule in field.metadata for sign in ("ge", "gt", "le", "lt") if hasattr(rule, sign)
    }
    low, high = max(low, bounds.get("ge", low)), min(high, bounds.get("le", high))
    if low <= bounds.get("gt", -math.inf):
        low = min(values)
    if high >= bounds.get("lt", math.inf):
        high = max(values)
    return Range(math.ceil(low), math.floor(high), log, whole=True) if whole else Range(low, high, log)


def in_words(space: Space) -> dict[str, str]:
    """Setting → what is tried."""

    def text(value: object) -> str:
        return f"{value:g}" if isinstance(value, float) else str(value)

    listed = {name: tried if isinstance(tried, tuple) else (tried,) for name, tried in space.items()}
    return {name: " · ".join(map(text, tried)) for name, tried in listed.items()}


def size(space: Space) -> int | None:
    """How many points there are; None where a range of numbers that need not be whole makes them endless."""
    lists = [_values(dimension) for dimension in space.values()]
    return math.prod(len(values) for values in lists if values is not None) if None not in lists else None


def points(space: Space, seed: int, first: Mapping[str, object]) -> list[dict[str, Any]]:
    """Every point of a space of lists and whole numbers, in an order drawn from the seed; the one at `first` leads.

    Any beginning of the list is a fair sample of the grid, which an order by value would not be.
    """
    lists = [_values(dimension) or () for dimension in space.values()]
    every = [dict(zip(space, values, strict=True)) for values in itertools.product(*lists)]
    drawn = [every[place] for place in np.random.default_rng(seed).permutation(len(every))]
    drawn.sort(key=lambda point: any(point[name] != first.get(name) for name in point))
    return drawn


def _values(dimension: Dimension) -> Sequence[Any] | None:
    """One by one; None where they are endless."""
    if isinstance(dimension, tuple):
        return dimension
    return range(int(dimension.low), int(dimension.high) + 1) if dimension.whole else None


def first_point(untuned: Settings, space: Space) -> dict[str, Any]:
    """The untuned settings, as far as they lie in the space: the first trial, so that tuning never loses to them."""
    return {name: getattr(untuned, name) for name, tried in space.items() if getattr(untuned, name) in tried}


def _trained(method: type[Method]) -> bool:
    return issubclass(method.settings_type, TrainedSettings)
