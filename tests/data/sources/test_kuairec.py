from __future__ import annotations

from pathlib import Path

import pytest

from dpaa.data.sources.kuairec import kuairec
from dpaa.errors import InputError
from tests.data.generated import write_kuairec

HEADER = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"


def test_official_counts(tmp_path: Path) -> None:
    write_kuairec(tmp_path / "data")
    dataset = kuairec(tmp_path)
    assert dataset.counts["candidates"] == 3_327
    assert len(dataset.train) == 935_390  # 1,000 rows repeat a pair
    assert (len(dataset.valid), len(dataset.test)) == (72_392, 144_783)
    assert any(note.startswith("1,000 positive rows of the big matrix repeat a pair") for note in dataset.notes)
    assert dataset.about["positive"] == "watch_ratio > 2"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    big = HEADER + "1,7,1,1,t,20200705,5.0,2.5\n1,8,1,1,t,20200705,6.0,2.0\n2,9,1,1,t,20200705,7.0,3\n"
    small = HEADER + "1,7,1,1,,20200705.0,,2.5\n1,9,1,1,t,20200705.0,6.0,4\n2,7,1,1,t,20200705.0,7.0,5\n"
    (tmp_path / "big_matrix.csv").write_text(big)
    (tmp_path / "small_matrix.csv").write_text(small)
    return tmp_path


def test_other_files_of_the_shape(tiny: Path) -> None:
    with pytest.raises(InputError, match=r"2 users where the published files have 7,176"):
        kuairec(tiny)
    dataset = kuairec(tiny, check=False)
    assert dataset.frame("train").rows() == [(1, 7, 2.5, 5.0), (2, 9, 3.0, 7.0)]  # 2.0 is not above 2
    assert dataset.item_ids.to_list() == [7, 9]
    assert (len(dataset.valid), len(dataset.test)) == (1, 2)
