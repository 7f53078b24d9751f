"""Real datasets from official files or lists, and the lines about those that are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaa.errors import InputError
from dpaa.reproduction._sources import exposed_pairs, real_dataset


def test_kuairec_in_lists(tmp_path: Path) -> None:
    (tmp_path / "valid.txt").write_text("1 10 11\n2 11\n")
    (tmp_path / "test.txt").write_text("1 12\n2 10\n")
    assert real_dataset("kuairec", tmp_path) is None
    (tmp_path / "train.txt").write_text("1 13 14\n2 14 10\n3 13\n")
    data = real_dataset("kuairec", tmp_path)
    assert data is not None
    assert data.candidates is not None
    assert data.item_ids.gather(data.candidates).to_list() == [10, 11, 12]
    (tmp_path / "not_candidate.txt").write_text("13\n99\n")
    data = real_dataset("kuairec", tmp_path)
    assert data is not None
    assert data.candidates is not None
    assert data.item_ids.gather(data.candidates).to_list() == [10, 11, 12, 14]
    assert len(exposed_pairs(tmp_path)) == 5


def test_severity_from_official_and_from_lists_of_kuairec(real_data: Path, tmp_path: Path) -> None:
    assert len(exposed_pairs(real_data / "kuairec" / "paper-split")) == 216_716
    assert len(exposed_pairs(real_data / "kuairec" / "all-small-positives")) == 217_175
    rows = "".join(f"{u},{v},{100 + u + v},{1.5 + v}\n" for u in range(3) for v in range(3))
    for name in ("big_matrix.csv", "small_matrix.csv"):
        (tmp_path / name).write_text("user_id,video_id,timestamp,watch_ratio\n" + rows)
    with pytest.raises(InputError, match="official"):
        exposed_pairs(tmp_path)
