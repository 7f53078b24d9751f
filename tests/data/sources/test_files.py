from __future__ import annotations

from pathlib import Path

import polars as pl

from dpaa.data.dataset import from_files


def test_formats_can_be_mixed(tmp_path: Path) -> None:
    train, valid, test = tmp_path / "a.csv", tmp_path / "b.txt", tmp_path / "c.parquet"
    train.write_text("user,item\n1,10\n1,10\n2,20\n")
    valid.write_text("1 20\n")
    pl.DataFrame({"uid": [2, 3], "item": [10, 30]}).write_parquet(test)
    (tmp_path / "items.txt").write_text("10\n20\n40\n")
    dataset = from_files(train, valid, test, tmp_path / "items.txt", name="mixed", keep_duplicates=True)
    assert dataset.item_ids.to_list() == [10, 20, 30, 40]
    assert dataset.candidates is not None
    assert dataset.item_ids.gather(dataset.candidates).to_list() == [10, 20, 40]
    assert dataset.train.count is not None
    assert dataset.train.count.tolist() == [2, 1]
    assert dataset.valid.count is None


def test_coat_paper_split(real_data: Path) -> None:
    folder = real_data / "coat-paper-split"
    dataset = from_files(folder / "train.txt", folder / "val.txt", folder / "test.txt")
    assert dataset.counts["splits"] == {
        "train": {"pairs": 3_622, "users": 290, "items": 299},
        "valid": {"pairs": 617, "users": 261, "items": 250},
        "test": {"pairs": 1_245, "users": 281, "items": 288},
    }
    assert len(dataset.overlap("train", "test")) == 129


def test_kuairec_paper_split(real_data: Path) -> None:
    folder = real_data / "kuairec" / "paper-split"
    dataset = from_files(folder / "valid.txt", test=folder / "test.txt")
    assert (len(dataset.train), len(dataset.test)) == (71_535, 145_181)
    assert (dataset.n_users, dataset.n_items) == (1_410, 3_275)
    assert len(dataset.overlap("train", "test")) == 0
