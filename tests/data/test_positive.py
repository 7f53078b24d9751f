from __future__ import annotations

import polars as pl
import pytest

from dpaa.data.positive import PositiveRule
from dpaa.errors import InputError


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x>=2", [2, 3]),
        ("x > 2", [3]),
        (" x<=2 ", [1, 2]),
        ("x<2.5", [1, 2]),
        ("x==2", [2]),
        ("x != 2", [1, 3]),
        ("x>-1e0", [1, 2, 3]),
        ("x>.5", [1, 2, 3]),
    ],
)
def test_rules(text: str, kept: list[int]) -> None:
    values = pl.Series([1, 2, 3])
    rule = PositiveRule.parse(text)
    assert rule.column == "x"
    assert values.filter(rule.holds(values)).to_list() == kept


def test_columns_may_have_spaces() -> None:
    assert str(PositiveRule.parse("watch ratio>2")) == "watch ratio > 2"


@pytest.mark.parametrize(
    "text", ["", "rating", "rating=3", "rating>=", ">=3", "rating>=three", "rating>=٣", "rating>=3 and x>1", "3"]
)
def test_not_a_rule(text: str) -> None:
    with pytest.raises(InputError, match="is not COLUMN OP NUMBER"):
        PositiveRule.parse(text)
