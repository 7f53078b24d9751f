"""Checks for pipelines: `log_head_share>0.8` says no where the number is above .8.  Parsed, never evaluated as code."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dpaa.errors import InputError

_CHECK = re.compile(
    r"\s*(?P<name>[^\s<>=!]+)\s*(?P<sign>>=|<=|==|!=|>|<)\s*(?P<limit>[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)"
    r"\s*(?P<percent>%?)\s*(\*\s*(?P<reference>\S+)\s*)?"
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
    reference: str | None = None
    """A run or file: the limit is then that many times its number."""

    @classmethod
    def parse(cls, text: str, references: bool = False) -> Check:
        """The check in `NAME OP NUMBER` (`80%` is 0.8), or with `references` `NAME OP NUMBER * RUN`."""
        match = _CHECK.fullmatch(text) if isinstance(text, str) else None
        if match is None or (match["reference"] and not references):
            form = "NAME OP NUMBER or NAME OP NUMBER * RUN" if references else "NAME OP NUMBER"
            example = "ndcg@20 < 0.98 * runs/live" if references else "log_head_share>0.8"
            raise InputError(
                f"--fail-if {text!r} is not {form} with OP one of {' '.join(_SIGNS)}; "
                f'write for example --fail-if "{example}"'
            )
        limit = float(match["limit"]) / (100 if match["percent"] else 1)
        return cls(match["name"], match["sign"], limit, match["reference"])

    def resolved(self, number: float) -> Check:
        """The check with the reference's number in the limit."""
        return replace(self, limit=self.limit * number, reference=None)

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
