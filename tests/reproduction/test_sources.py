"""Real datasets from official files or lists, and the lines about those that are missing."""

from __future__ import annotations

from pathlib import Path

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
