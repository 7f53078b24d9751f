"""The rule that makes an interaction a positive: `COLUMN OP NUMBER`, such as `rating>=3` or `watch_ratio > 2`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpaa.errors import InputError

_RULE = re.compile(
    r"\s*(?P<column>[^<>=!]+?)\s*(?P<sign>>=|<=|==|!=|>|<)\s*(?P<number>[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)\s*"
)


@dataclass(frozen=True)
class PositiveRule:
    """A comparison of a column with a number.

    Parameters
    ----------
    column : name of the column, or its role
    sign : `>=`, `<=`, `==`, `!=`, `>` or `<`
    number : to compare with
    """

    column: str
    sign: str
    number: float

    @classmethod
    def parse(cls, text: str) -> PositiveRule:
        """Read `COLUMN OP NUMBER`."""
        match = _RULE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InputError(f"the rule for positives {text!r} is not COLUMN OP NUMBER; write for example rating>=3")
        return cls(match["column"], match["sign"], float(match["number"]))

    @property
    def sql(self) -> str:
        """The comparison, after the name of a column."""
        return f"{'=' if self.sign == '==' else self.sign} CAST('{self.number!r}' AS DOUBLE)"

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.number:g}"
