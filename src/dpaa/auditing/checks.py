"""Checks for pipelines: `log_head_share>0.8` says no where the number is above .8.  Parsed, never evaluated as code."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpaa.errors import InputError

_CHECK = re.compile(
    r"\s*(?P<name>[^\s<>=!]+)\s*(?P<sign>>=|<=|==|!=|>|<)\s*(?P<limit>[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)"
    r"\s*(?P<percent>%?)\s*"
)
_SIGNS: dict[str, tuple[Callable[[float, float], bool], str, str]] = {
    ">": (operator.gt, "above", "not above"),
    ">=": (operator.ge, "not below", "below"),
    "<": (operator.lt, "below", "not below"),
    "<=": (operator.le, "not above", "above"),
    "==": (operator.eq, "equal to", "other than"),
    "!=": (operator.ne, "other than", "equal to"),
}
"""The comparison, and its word where it holds and where it does not."""


@dataclass(frozen=True)
class Check:
    """A comparison of a number with a limit that must not hold."""

    name: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Check:
        """The check in `NAME OP NUMBER` (`80%` is .8)."""
        match = _CHECK.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InputError(
                f"--fail-if {text!r} is not NAME OP NUMBER with OP one of {' '.join(_SIGNS)}; "
                'write for example --fail-if "log_head_share>0.8"'
            )
        return cls(match["name"], match["sign"], float(match["limit"]) / (100 if match["percent"] else 1))

    def apply(self, numbers: Mapping[str, float]) -> CheckResult:
        """Whether the comparison holds; a number without value cannot be vouched for, so the check fails."""
        value = float(numbers[self.name])
        return CheckResult(self, value, not math.isfinite(value) or _SIGNS[self.sign][0](value, self.limit))

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.limit:g}"


@dataclass(frozen=True)
class CheckResult:
    """A check and what it found."""

    check: Check
    value: float
    failed: bool

    @property
    def sentence(self) -> str:
        """In plain words."""
        check = self.check
        if not math.isfinite(self.value):
            return f"{check.name} has no value here, so {str(check)!r} cannot be ruled out"
        word = _SIGNS[check.sign][1 if self.failed else 2]
        value, limit = f"{self.value:.6g}", f"{check.limit:.6g}"
        if value == limit and self.value != check.limit:
            value = repr(self.value)  # the difference is in the digits that were cut
        return f"{check.name} is {value}, which is {word} {limit}"

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return {"check": str(self.check), "value": self.value, "failed": self.failed, "sentence": self.sentence}
