import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.ids import distinct_ids, encode, integers_if_unchanged, look_up
from dpaa.data.shards import Shard, digest_of
from dpaa.errors import InputError

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
integers = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(texts, min_size=1))
def test_text_ids_go_there_and_back(given_ids: list[str]) -> None:
    ids = distinct_ids([pl.Series(given_ids)])
    assert ids.gather(look_up(given_ids, ids, "user")).to_list() == given_ids
    assert ids.is_sorted()


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


@pytest.mark.parametrize(
    ("ids", "asked", "words"),
    [
        (["a", "b"], [1], "ids are text (such as 'a'), but those given are integers (such as 1)"),
        ([1, 2], ["1"], "ids are integers (such as 1), but those given are text (such as '1')"),
        ([1, 2], [1.0], "cannot be Float64"),
        ([1, 2], [1, "a"], "neither all integers nor all text"),
        ([1, 2], [1, None], "or empty; cast them"),
        ([1, 2], [7], "1 of the user ids given are not in the dataset (7); leave them out"),
        (["a"], list("uvwxy"), "5 of the user ids given are not in the dataset ('u', 'v', 'w'); leave them out"),
        ([1, 2], [2**64 - 1], "(18446744073709551615)"),
    ],
)
def test_look_up_says_what_is_wrong(ids: list[object], asked: list[object], words: str) -> None:
    with pytest.raises(InputError) as error:
        look_up(asked, pl.Series(ids), "user")
    assert words in str(error.value)


@given(st.sets(texts, min_size=1), st.lists(texts | st.none()), st.sampled_from([0, 10**6]))
def test_few_and_many_text_ids_are_found_alike(known: set[str], wanted: list[str | None], few: int) -> None:
    ids = distinct_ids([pl.Series(sorted(known))])
    values = pl.Series([*wanted, *list(known)[:2]], dtype=pl.String)
    expected = [ids.to_list().index(value) if value in known else -1 for value in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.data.ids.FEW", few)  # 0: always by bisection, else by a hash table
        assert encode(values, ids).tolist() == expected


whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)


@given(st.sets(whole, min_size=1), st.lists(whole | st.none()), st.sampled_from([0, 4, 2**70]))
def test_dense_and_sparse_integer_ids_are_found_alike(known: set[int], wanted: list[int | None], dense: int) -> None:
    ids = pl.Series(sorted(known), dtype=pl.Int64)
    values = pl.Series([*wanted, *list(known)[:2]], dtype=pl.Int64)
    expected = [ids.to_list().index(value) if value in known else -1 for value in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.data.ids.FEW", 10**6)  # never by bisection
        patch.setattr("dpaa.data.ids.DENSE", dense if max(known) - min(known) < 10**6 else 0)
        assert encode(values, ids).tolist() == expected


@pytest.mark.parametrize("n", [0, 1, 5, 16, 1_000_003])
@pytest.mark.parametrize("of", [1, 3, 16])
def test_shards_are_all_rows_once_and_alike_in_size(n: int, of: int) -> None:
    parts = [Shard(number, of).rows(n) for number in range(1, of + 1)]
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == n
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_a_digest_tells_choices_apart() -> None:
    asked = {"users": pl.Series([1, 2]), "exclude": (), "items": None, "pairs": pl.DataFrame({"a": [1]})}
    assert digest_of(asked) == digest_of(dict(reversed(asked.items())))
    for name, other in {"users": pl.Series([2, 1]), "exclude": ("a",), "pairs": pl.DataFrame({"a": [2]})}.items():
        assert digest_of(asked | {name: other}) != digest_of(asked)
