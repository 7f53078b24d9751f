from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.ids import checked_type, distinct_ids, encode, integers_if_unchanged, look_up
from dpaa.errors import InputError

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
integers = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(texts, min_size=1))
def test_text_ids_go_there_and_back(given_ids: list[str]) -> None:
    ids = distinct_ids([pl.Series(given_ids)])
    assert ids.gather(look_up(given_ids, ids, "user")).to_list() == given_ids
    assert ids.is_sorted()


@given(st.lists(integers, min_size=1))
def test_integer_ids_go_there_and_back(given_ids: list[int]) -> None:
    ids = distinct_ids([pl.Series(given_ids, dtype=pl.Int64)])
    assert ids.gather(look_up(given_ids, ids, "user")).to_list() == given_ids


@given(st.lists(st.integers(0, 30), min_size=1), st.lists(st.integers(-40, 40)), st.sampled_from([1, 20_000_000]))
def test_encode_by_table_and_by_bisection(known: list[int], wanted: list[int], stretch: int) -> None:
    ids = distinct_ids([pl.Series([value * stretch for value in known])])
    values = [value * stretch for value in wanted]
    expected = [ids.to_list().index(value) if value in ids.to_list() else -1 for value in values]
    assert encode(pl.Series(values, dtype=pl.Int64), ids).tolist() == expected


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        (["1", "-20", "0"], pl.Int64),
        (["1", str(2**63)], pl.UInt64),
        (["7", "007"], pl.String),
        (["1", "x"], pl.String),
        (["1.0"], pl.String),
        (["+1"], pl.String),
        (["-0"], pl.String),
        (["1 "], pl.String),
        (["-1", str(2**63)], pl.String),
        (["1" * 30], pl.String),
        (["１"], pl.String),
    ],
)
def test_integers_only_if_they_come_back(text: list[str], dtype: pl.DataType) -> None:
    column = integers_if_unchanged(pl.Series(text))
    assert column.dtype == dtype
    assert column.cast(pl.String).to_list() == text


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.UInt64, pl.Int128, pl.Categorical, pl.String])
def test_types_that_can_be_ids(dtype: pl.DataType) -> None:
    column = checked_type(pl.Series(["1", "2"]).cast(dtype), "ids")
    assert column.dtype in (pl.Int64, pl.String)


@pytest.mark.parametrize("values", [[1.0], [[1]], [True], [b"1"], [None]])
def test_types_that_cannot_be_ids(values: list[object]) -> None:
    with pytest.raises(InputError, match=r"the ids cannot be .*; cast them to integers or to text"):
        checked_type(pl.Series(values), "the ids")


@pytest.mark.parametrize(
    ("ids", "asked", "words"),
    [
        (["a", "b"], [1], "ids are text (such as 'a'), but those given are integers (such as 1)"),
        ([1, 2], ["1"], "ids are integers (such as 1), but those given are text (such as '1')"),
        ([1, 2], [1.0], "cannot be Float64"),
        ([1, 2], [1, "a"], "neither all integers nor all text"),
        ([1, 2], [1, None], "or empty; cast them"),
        ([1, 2], [7], "1 of the user ids given is not in the dataset (7); leave them out"),
        (["a"], list("uvwxy"), "5 of the user ids given are not in the dataset ('u', 'v', 'w', …); leave them out"),
        ([1, 2], [2**64 - 1], "(18446744073709551615)"),
    ],
)
def test_look_up_says_what_is_wrong(ids: list[object], asked: list[object], words: str) -> None:
    with pytest.raises(InputError) as error:
        look_up(asked, pl.Series(ids), "user")
    assert words in str(error.value)


def test_look_up_takes_lists_arrays_and_series() -> None:
    ids = pl.Series([10, 20, 30])
    for given_ids in ([30, 10], np.array([30, 10]), pl.Series([30, 10]), pl.Series([30, 10], dtype=pl.UInt8)):
        assert look_up(given_ids, ids, "item").tolist() == [2, 0]
    assert look_up([], ids, "item").tolist() == []


@given(st.sets(texts, min_size=1), st.lists(texts | st.none()), st.sampled_from([0, 10**6]))
def test_few_and_many_text_ids_are_found_alike(known: set[str], wanted: list[str | None], few: int) -> None:
    ids = distinct_ids([pl.Series(sorted(known))])
    values = pl.Series([*wanted, *list(known)[:2]], dtype=pl.String)
    expected = [ids.to_list().index(value) if value in known else -1 for value in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.data.ids.FEW", few)  # 0: always by bisection, else by a hash table
        assert encode(values, ids).tolist() == expected
