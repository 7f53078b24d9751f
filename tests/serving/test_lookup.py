from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.ids import distinct_ids
from dpaa.serving.lookup import IdTable

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@given(st.sets(texts, min_size=1), texts)
def test_text_is_found_where_it_is(known: set[str], other: str) -> None:
    table = IdTable(distinct_ids([pl.Series(sorted(known))]))
    assert [table.id(table.find(one)) for one in known] == list(known)
    assert (table.find(other) >= 0) == (other in known)
    assert table.find(7) == -1
    near = table.search(other[:1], 100)
    assert {table.id(place) for place in near} == {one for one in known if one.startswith(other[:1])}


@given(st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(-(2**70), 2**70))
def test_integers_are_found_as_numbers_and_as_text(known: set[int], other: int) -> None:
    table = IdTable(distinct_ids([pl.Series(sorted(known))]))
    assert [table.id(table.find(one)) for one in known] == list(known)
    assert [table.id(table.find(str(one))) for one in known] == list(known)
    assert (table.find(other) >= 0) == (other in known)
    assert table.find("007") == table.find("x") == table.find("") == table.find("1" * 99) == -1


@given(st.sets(st.integers(-3000, 3000), min_size=1), st.integers(-300, 300))
def test_integers_are_searched_by_their_first_digits(known: set[int], words: int) -> None:
    table = IdTable(distinct_ids([pl.Series(sorted(known))]))
    found = {table.id(place) for place in table.search(str(words), 10_000)}
    assert found == {one for one in known if str(one).startswith(str(words))}


def test_titles_are_searched_whatever_their_case() -> None:
    table = IdTable(pl.Series(["a", "b", "c"]), pl.Series(["Red Coat", None, "blue coat"]))
    assert table.search("COAT", 5) == [0, 2]
    assert table.search("b", 5) == [1, 2]
    assert table.search("(", 5) == []
    assert table.shown([1, 0]) == [{"id": "b", "title": None}, {"id": "a", "title": "Red Coat"}]


@pytest.mark.parametrize("kind", [pl.Int64, pl.UInt64])
def test_the_largest_integers(kind: type[pl.DataType]) -> None:
    largest = 2**63 - 1 if kind == pl.Int64 else 2**64 - 1
    table = IdTable(pl.Series([1, largest], dtype=kind))
    assert table.find(largest) == 1
    assert table.find(2**64) == -1
    assert table.find(-1) == -1
