"""Published datasets: official counts, other files of their shape, what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaa.data.sources.published import TEST_FILE, TRAIN_FILE, coat, kuairec, yahoo_r3
from dpaa.errors import InputError

KUAIREC = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"


def test_coat(real_data: Path) -> None:
    dataset = coat(real_data / "coat")
    assert (dataset.n_users, dataset.n_items) == (290, 300)
    assert (len(dataset.train), len(dataset.valid), len(dataset.test)) == (3_622, 621, 1_241)
    assert len(dataset.overlap("train", "valid")) + len(dataset.overlap("train", "test")) == 196
    assert dataset.describe()["popular"]["items"] == 163
    assert "3,338 rows of train.ascii are not positive (rating >= 3), 0 repeat a pair" in dataset.notes
    assert dataset.frame("train")["rating"].min() == 3
    assert coat(real_data / "coat", seed=1).fingerprint != dataset.fingerprint == coat(real_data / "coat").fingerprint


def test_other_files_of_the_shape(tmp_path: Path) -> None:
    for name, text in (("train.ascii", "5 0 3\n0 4 2\n"), ("test.ascii", "0 3 5\n4 0 1\n")):
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"has 2 users, 3 items .* where the published file has 290 users.*--no-check"):
        coat(tmp_path)
    dataset = coat(tmp_path, check=False)
    assert dataset.frame("train").rows() == [(0, 0, 5), (0, 2, 3), (1, 1, 4)]
    assert (len(dataset.valid), len(dataset.test)) == (1, 2)
    assert any("where the published file has 290 users" in note for note in dataset.notes)
    big = "1,7,1,1,t,20200705,5.0,2.5\n1,8,1,1,t,20200705,6.0,2.0\n2,9,1,1,t,20200705,7.0,3\n"
    small = "1,7,1,1,,20200705.0,,2.5\n1,9,1,1,t,20200705.0,6.0,4\n2,7,1,1,t,20200705.0,7.0,5\n"
    (tmp_path / "big_matrix.csv").write_text(KUAIREC + big)
    (tmp_path / "small_matrix.csv").write_text(KUAIREC + small)
    dataset = kuairec(tmp_path, check=False)
    assert dataset.frame("train").rows() == [(1, 7, 2.5, 5.0), (2, 9, 3.0, 7.0)]  # 2.0 is not above 2
    assert dataset.item_ids.to_list() == [7, 9]
    assert (len(dataset.valid), len(dataset.test)) == (1, 2)
    (tmp_path / TRAIN_FILE).write_text("1\t1\t5\n2\t2\t1\n1\t3\t4\n")
    (tmp_path / TEST_FILE).write_text("1\t4\t5\n2\t4\t5\n")
    dataset = yahoo_r3(tmp_path, check=False)
    assert dataset.frame("test").select("user_id", "item_id").rows() == [(1, 4)]  # user 2 has no training positive
