"""Appending: what is there stays, what is new joins by the dataset's own rules."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpaa import Dataset, InputError, read_dataset
from dpaa.data.ids import SPLITS
from dpaa.data.prepare import RULES
from dpaa.data.splits import SPLIT_KINDS, SplitRule


def log(rows: int = 1500, seed: int = 0, first: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "user_id": [f"u{one}" for one in rng.integers(0, 60, rows)],
            "item_id": rng.integers(0, 80, rows),
            "rating": rng.integers(1, 6, rows),
            "timestamp": np.sort(rng.integers(first, first + 1000, rows)),
        }
    )


def pairs(data: Dataset, split: str) -> set[tuple[str, int]]:
    return set(data.frame(split).select("user_id", "item_id").rows())  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [kind for kind in SPLIT_KINDS if kind != "time-windows"])
def test_new_pairs_join_and_old_ones_stay(kind: str) -> None:
    old, new = log(), log(600, seed=1, first=1000)
    data = Dataset.from_frame(old, split=SplitRule(kind), positive="rating>=3", seed=4)
    found = data.append(new)
    wanted = {row[:2] for row in pl.concat([old, new]).filter(pl.col("rating") >= 3).rows()}
    together = [pairs(found, split) for split in SPLITS]
    assert set.union(*together) == wanted
    assert sum(map(len, together)) == len(wanted)
    assert all(together)
    if kind in ("temporal", "leave-last"):  # as if the log had been one from the start, each pair at its first time
        whole = Dataset.from_frame(pl.concat([old, new]), split=SplitRule(kind), positive="rating>=3", seed=4)
        assert whole.fingerprint == found.fingerprint
    else:
        assert all(pairs(data, split) <= pairs(found, split) for split in SPLITS)
    assert found.about["appended"][0]["new_pairs"] == found.n_interactions - data.n_interactions


def test_appending_nothing_new_changes_nothing_and_shares_hold_in_the_end(tmp_path: Path) -> None:
    data = Dataset.from_frame(log(), split=SplitRule(valid=0.1, test=0.2))
    assert data.append(log()).fingerprint == data.fingerprint
    for day in range(1, 6):
        data = data.append(log(400, seed=day))
        data.write(tmp_path / "data", overwrite=True)
        data = read_dataset(tmp_path / "data")
    shares = [len(data.split(split)) / data.n_interactions for split in SPLITS]
    assert shares == pytest.approx([0.7, 0.1, 0.2], abs=0.03)
    assert [one["new_pairs"] for one in data.about["appended"]] == sorted(
        (one["new_pairs"] for one in data.about["appended"]), reverse=True
    )
    assert sum("joined dataset" in note for note in data.notes) == 1  # of the last day; the others are in `appended`


def test_counts_are_added() -> None:
    first = pl.DataFrame({"user_id": [1, 1, 2], "item_id": [5, 5, 6]})
    data = Dataset.from_frame(first, split=SplitRule(valid=0, test=0), keep_duplicates=True)
    found = data.append(pl.DataFrame({"user_id": [1, 2, 2], "item_id": [5, 7, 7]}))
    assert found.frame("train").select("user_id", "item_id", "count").sort("user_id", "item_id").rows() == [
        (1, 5, 3),
        (2, 6, 1),
        (2, 7, 2),
    ]


def test_numbers_of_a_text_file_become_the_text_that_the_dataset_has(tmp_path: Path) -> None:
    from dpaa.data.inputs import open_table

    data = Dataset.from_frame(pl.DataFrame({"user_id": ["7", "x"], "item_id": ["1", "2"]}), split=SplitRule(test=0))
    (tmp_path / "more.csv").write_text("user_id,item_id\n7,3\n8,1\n")
    found = data.append(open_table(tmp_path / "more.csv"))
    assert found.user_ids.to_list() == ["7", "8", "x"]


def test_what_cannot_be_appended() -> None:
    data = Dataset.from_frame(log(), split=SplitRule())
    dates = log(20).with_columns(pl.from_epoch("timestamp"))
    with pytest.raises(InputError, match="times are numbers in dataset frame and dates in the frame"):
        data.append(dates)
    window = Dataset.from_frame(log(), split=SplitRule("time-windows", 0.1, 0.1))
    with pytest.raises(InputError, match="is one window of a log"):
        window.append(log(10))
    for odd in ({"split": {"kind": "no-such"}}, {"split": {"odd": 1}}, {"seed": "x"}):
        spoilt = data.about | {RULES: data.about[RULES] | odd}
        with pytest.raises(InputError, match="does not record how it was made"):
            Dataset.of({split: data.frame(split) for split in SPLITS}, name="odd", about=spoilt).append(log(5))


def test_what_is_known_of_items_is_kept_and_added_to() -> None:
    rows = pl.DataFrame({"user_id": [1, 1, 2], "item_id": [5, 6, 5]})
    items = pl.DataFrame({"item_id": [5, 6], "title": ["five", None], "size": [1, 2]})
    data = Dataset.from_frame(rows, split=SplitRule(valid=0, test=0)).with_items(items)
    more = pl.DataFrame({"user_id": [2, 2], "item_id": [7, 4]})
    assert data.append(more).items["title"].to_list() == [None, "five", None, None]
    newer = pl.DataFrame({"item_id": [7, 6, 5], "title": ["seven", "six", None], "colour": ["red", None, "blue"]})
    found = data.append(more, items=newer).items
    assert found.rows() == [
        (4, None, None, None),
        (5, "five", "blue", 1),
        (6, "six", None, 2),
        (7, "seven", "red", None),
    ]
    sizes = data.append(more, items=pl.DataFrame({"item_id": [7], "size": ["large"]})).items["size"]
    assert sizes.to_list() == [None, "1", "2", "large"]
