import json
import stat
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa import Dataset, InputError, read_dataset
from dpaa.data.ids import SPLITS
from dpaa.data.pairs import Pairs, popular_items

rows = st.lists(st.tuples(st.text(max_size=3).map("u{}".format), st.integers(-5, 5)), min_size=1, unique=True)


def frame(pairs: list[tuple[object, object]], **columns: list[object]) -> pl.DataFrame:
    users, items = zip(*pairs, strict=True)
    return pl.DataFrame({"user_id": users, "item_id": items, **columns})


@pytest.fixture
def small() -> Dataset:
    return Dataset.of(
        {
            "train": frame([("b", 3), ("a", 1), ("a", 2)], rating=[5.0, 1.0, 2.0]),
            "valid": frame([("a", 3)], rating=[4.0]),
            "test": frame([("b", 1), ("c", 9)], rating=[4.0, 3.0]),
        },
        name="small",
        candidates=pl.Series([1, 2, 3, 7]),
        about={"source": "here"},
        notes=["one row was dropped"],
    )


def test_indices_follow_the_ids(small: Dataset) -> None:
    assert small.user_ids.to_list() == ["a", "b", "c"]
    assert small.item_ids.to_list() == [1, 2, 3, 7, 9]
    assert (small.train.user.tolist(), small.train.item.tolist()) == ([0, 0, 1], [0, 1, 2])
    assert small.candidates.tolist() == [0, 1, 2, 3]
    assert small.frame("train").rows() == [("a", 1, 1.0), ("a", 2, 2.0), ("b", 3, 5.0)]


def test_describe(small: Dataset) -> None:
    found = small.describe()
    assert found["density"] == 6 / 15
    assert found["candidates"] == 4
    assert found["splits"] == {
        "train": {"pairs": 3, "users": 2, "items": 3},
        "valid": {"pairs": 1, "users": 1, "items": 1},
        "test": {"pairs": 2, "users": 2, "items": 2},
    }
    assert found["popular"] == {"items": 3, "share_of_pairs": {"train": 1.0, "valid": 1.0, "test": 0.5}}
    json.dumps(found)


def test_written_and_read_again(small: Dataset, tmp_path: Path) -> None:
    small.write(tmp_path / "deep" / "data")
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["data"]
    assert stat.S_IMODE((tmp_path / "deep" / "data").stat().st_mode) & 0o500 == 0o500
    again = read_dataset(tmp_path / "deep" / "data")
    assert again.fingerprint == small.fingerprint
    assert (again.name, again.about, again.notes) == (small.name, small.about, small.notes)
    assert again.path == tmp_path / "deep" / "data"
    assert again.frame("test").equals(small.frame("test"))
    again.write(tmp_path / "copy")
    assert read_dataset(tmp_path / "copy").frame("train").equals(small.frame("train"))


@given(rows, st.randoms())
def test_fingerprint_does_not_depend_on_the_order_of_rows(pairs: list[tuple[object, object]], random: object) -> None:
    shuffled = sorted(pairs, key=lambda _: random.random())  # type: ignore[attr-defined]
    first, second = (Dataset.of({"train": frame(order)}, name="x", about={}) for order in (pairs, shuffled))
    assert first.fingerprint == second.fingerprint
    fewer = Dataset.of({"train": frame([*pairs, ("new", 77)])}, name="x", about={})
    assert fewer.fingerprint != first.fingerprint


def test_fingerprint_sees_every_part() -> None:
    pairs = frame([(1, 1), (2, 2)])
    variants = [
        Dataset.of({"train": pairs}, name="x", about={}),
        Dataset.of({"train": pairs.cast(pl.String)}, name="x", about={}),
        Dataset.of({"train": pairs, "valid": pairs[:1]}, name="x", about={}),
        Dataset.of({"train": pairs, "test": pairs[:1]}, name="x", about={}),
        Dataset.of({"train": pairs}, candidates=pl.Series([1, 2]), name="x", about={}),
        Dataset.of({"train": pairs}, candidates=pl.Series([1]), name="x", about={}),
        Dataset.of({"train": pairs.with_columns(count=pl.Series([1, 2]))}, name="x", about={}),
    ]
    assert len({variant.fingerprint for variant in variants}) == len(variants)


def test_counts_survive(tmp_path: Path) -> None:
    log = pl.DataFrame({"user": [1, 1, 2, 1], "item": [5, 5, 5, 5]})
    dataset = Dataset.from_frame(log, keep_duplicates=True)
    assert dataset.train.count.tolist() == [3, 1]
    dataset.write(tmp_path / "data")
    again = read_dataset(tmp_path / "data")
    assert again.train.count.tolist() == [3, 1]
    assert pl.read_parquet(tmp_path / "data" / "train.parquet").columns == ["user_id", "item_id", "count"]
    once = Dataset.from_frame(log)
    assert once.train.count is None
    assert "2 duplicate pairs; each counts once (keep_duplicates=True in Python: all)" in once.notes[0]


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: f.lazy(), lambda f: f.to_dict(as_series=False)])
def test_from_any_frame(wrap: object) -> None:
    log = frame([("a", 1), ("b", 2), ("b", 3)], rating=[3, 5, 1])
    dataset = Dataset.from_frame(wrap(log), positive="rating>2", name="mine")  # type: ignore[operator]
    assert dataset.frame("train").rows() == [("a", 1, 3), ("b", 2, 5)]
    assert repr(dataset) == "Dataset(mine: 2 users × 2 items, 2 interactions)"


def test_ids_that_are_text_in_one_frame_are_text_in_all() -> None:
    data = Dataset.from_frame({"user": ["a", "1"], "item": [1, 2]}, test={"user": [1], "item": [1]})
    assert data.user_ids.to_list() == ["1", "a"]
    assert data.test.user.tolist() == [0]


def test_from_pandas() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    times = pandas.to_datetime(["2020-01-01", "2020-01-02"])
    log = pandas.DataFrame({"user": ["a", "b"], "item": pandas.array([1, 2], dtype="Int64"), "time": times})
    assert Dataset.from_frame(log).frame("train")["timestamp"].dt.day().to_list() == [1, 2]
    with pytest.raises(InputError, match=r"empty value in column 'user' \(1 row, first row 1\)"):
        Dataset.from_frame(pandas.DataFrame({"user": ["a", None], "item": [1, 2]}))


@pytest.mark.parametrize(
    "candidates",
    [[10, 30], (30, 10), {10, 30}, np.array([10, 30]), pl.Series([10, 30]), pl.DataFrame({"item_id": [10, 30]}).lazy()],
)
def test_candidates_may_be_plain_ids(candidates: object) -> None:
    frame = pl.DataFrame({"user_id": [1, 2, 2], "item_id": [10, 20, 30]})
    allowed = Dataset.from_frame(frame, candidates=candidates).candidates
    assert allowed.tolist() == [0, 2]


@pytest.mark.parametrize("candidates", [5, "ten", [1.5], [None], [10, "a"], []])
def test_candidates_that_are_none(candidates: object) -> None:
    with pytest.raises(InputError, match=r"candidates|item_id"):
        Dataset.from_frame(pl.DataFrame({"user_id": [1, 2], "item_id": [10, 20]}), candidates=candidates)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=40))
def test_pairs_are_the_sorted_set_with_rising_keys(pairs: list[tuple[int, int]]) -> None:
    made = Pairs.of([user for user, _ in pairs], [item for _, item in pairs])
    assert list(zip(made.user.tolist(), made.item.tolist(), strict=True)) == sorted(set(pairs))
    assert made.user.dtype == made.item.dtype == np.int32
    for user in range(9):
        first, last = np.searchsorted(made.user, [user, user + 1])
        assert set(made.item[first:last]) == {item for other, item in pairs if other == user}
    keys = made.keys(9)
    assert (np.diff(keys) > 0).all()
    assert keys.dtype == np.int64


def test_keys_do_not_overflow() -> None:
    assert Pairs.of([2_000_000], [1_999_999]).keys(2_000_000).tolist() == [4_000_001_999_999]


def notes_of(*splits: list[tuple[int, int]], candidates: pl.Series | None = None) -> list[str]:
    schema = {"user_id": pl.Int64, "item_id": pl.Int64}
    frames = (pl.DataFrame(pairs, schema=schema, orient="row") for pairs in splits)
    return list(Dataset.of(dict(zip(SPLITS, frames, strict=True)), name="x", candidates=candidates, about={}).notes)


def test_empty_splits() -> None:
    assert notes_of([(1, 1)], [], []) == [
        "the validation split is empty: early stopping and tuning are impossible",
        "the test split is empty: nothing can be evaluated",
    ]


def test_overlap() -> None:
    found = notes_of([(1, 1), (1, 2), (2, 2)], [(1, 1), (2, 1)], [(1, 2), (1, 1), (2, 1)])
    both = [note.partition(":")[0] for note in found]
    assert both == [
        "1 pairs are in both train and valid",
        "2 pairs are in both train and test",
        "2 pairs are in both valid and test",
    ]


def test_cold_users_and_items() -> None:
    found = notes_of([(1, 1), (1, 2)], [(1, 3)], [(1, 4), (5, 1)], candidates=pl.Series([1, 4, 8]))
    assert found == [
        "1 of 2 test users have no training pair (such as 5): nothing was learned about them",
        "2 of 3 candidate items have no training pair (such as 4): they are ranked by chance",
        "1 of 2 test items have no training pair (such as 4): they are ranked by chance",
    ]


@pytest.mark.parametrize(
    ("counts", "popular"),
    [
        ([50, 30, 10, 10], [True, True, False, False]),  # 80 of 100 are covered by two
        ([50, 29, 11, 10], [True, True, True, False]),
        ([1, 1, 1, 1, 1], [True, True, True, True, False]),  # ties by lower index
        ([0, 7, 0], [False, True, False]),
        ([0, 0], [False, False]),
    ],
)
def test_popular_items_by_hand(counts: list[int], popular: list[bool]) -> None:
    assert popular_items(np.array(counts)).tolist() == popular
