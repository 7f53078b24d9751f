"""What the tests of audits share: a log and lists worked out by hand, random logs, and audits made comparable."""

import json
from typing import Any

import polars as pl
from hypothesis import strategies as st

from dpaa._text import finite
from dpaa.auditing import Audit

LOG = pl.DataFrame(
    [
        *[("u1", "A", 1), ("u1", "B", 2), ("u2", "A", 3), ("u3", "A", 4), ("u5", "E", 5)],
        *[("u4", "A", 6), ("u2", "B", 7), ("u1", "C", 8), ("u4", "B", 9), ("u4", "D", 10)],
    ],
    schema=["user_id", "item_id", "timestamp"],
    orient="row",
)
"""A 4, B 3, C, D, E 1; the popular items are A, B and C: 8 of 10 interactions."""

LISTS = pl.DataFrame(
    [
        *[("u1", "D", 1), ("u1", "E", 2), ("u5", "A", 1), ("u5", "B", 2)],
        *[("u3", "B", 1), ("u3", "A", 2), ("u3", "unheard of", 3), ("stranger", "A", 1)],
    ],
    schema=["user_id", "item_id", "rank"],
    orient="row",
)


def comparable(found: Audit) -> Any:
    """Everything that is printed, but for the name of the source."""
    return json.loads(json.dumps(finite(found.as_json() | {"source": "", "notes": []})))


@st.composite
def logs(draw: st.DrawFn) -> pl.DataFrame:
    rows = draw(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 12), st.integers(0, 30)), min_size=1, max_size=80))
    return pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp"], orient="row")


OLD, NEW = {"a": 6, "b": 2, "c": 1, "d": 1, "e": 2}, {"a": 1, "b": 2, "c": 8, "d": 1, "f": 4}


def log(pairs: dict[str, int], first: int = 0) -> pl.DataFrame:
    """Item → how many users took it."""
    rows = [(f"u{n}", item, first + n) for item, count in pairs.items() for n in range(count)]
    return pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp"], orient="row")
