from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.data.sources.log import from_file
from dpaa.data.splits import SplitRule
from dpaa.errors import InputError


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    rows = [f"u{user},{item},{item % 5 + 1},{100 * user + item}" for user in range(9) for item in range(user, 20)]
    file = tmp_path / "clicks.log.csv"
    file.write_text("user,item,rating,time\n" + "\n".join(rows) + "\nu0,1,5,999\n")
    return file


def test_the_whole_way(clicks: Path) -> None:
    dataset = from_file(
        clicks, positive="rating>=2", split=SplitRule("leave-last", last_k=2), min_item_interactions=3, seed=4
    )
    assert dataset.name == "clicks"
    assert dataset.about["positive"] == "rating >= 2"
    assert dataset.about["split"] == "leave-last, 2 + 2 per user"
    assert dataset.about["seed"] == 4
    assert len(dataset.test) == len(dataset.valid) == 18
    assert dataset.n_users == 9
    assert [note.split()[-1] for note in dataset.notes[:3]] == ["dropped", "all", "all"]
    assert dataset.frame("test").columns == ["user_id", "item_id", "rating", "timestamp"]
    assert set(dataset.item_ids).isdisjoint({0, 1, 5, 10, 15})  # rated 1, or seen by fewer than three


def test_a_file_and_a_frame_give_the_same(clicks: Path) -> None:
    file = from_file(clicks, split=SplitRule("random"), seed=2)
    frame = Dataset.from_frame(pl.read_csv(clicks), split="random", seed=2)
    assert file.fingerprint == frame.fingerprint


def test_all_for_training(clicks: Path) -> None:
    dataset = from_file(clicks, split=None)
    assert len(dataset.valid) == len(dataset.test) == 0
    assert dataset.about["split"] == "all for training"


def test_nothing_left(clicks: Path) -> None:
    with pytest.raises(InputError, match="no pair is left when every user must have 99 interactions"):
        from_file(clicks, min_user_interactions=99)
