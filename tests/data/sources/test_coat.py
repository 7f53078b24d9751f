from __future__ import annotations

from pathlib import Path

import pytest

from dpaa.data.sources.coat import coat
from dpaa.errors import InputError


def test_official_files(real_data: Path) -> None:
    dataset = coat(real_data / "coat")
    assert (dataset.n_users, dataset.n_items) == (290, 300)
    assert (len(dataset.train), len(dataset.valid), len(dataset.test)) == (3_622, 621, 1_241)
    assert len(dataset.overlap("train", "valid")) + len(dataset.overlap("train", "test")) == 196
    assert dataset.describe()["popular"]["items"] == 163
    assert "3,338 self-selected and 2,778 random ratings are below 3 and were dropped" in dataset.notes
    assert dataset.frame("train")["rating"].min() == 3
    assert coat(real_data / "coat", seed=1).fingerprint != dataset.fingerprint == coat(real_data / "coat").fingerprint


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    (tmp_path / "train.ascii").write_text("5 0 3\n0 4 2\n")
    (tmp_path / "test.ascii").write_text("0 3 5\n4 0 1\n")
    return tmp_path


def test_other_matrices_of_the_shape(tiny: Path) -> None:
    with pytest.raises(InputError, match=r"2 users where the published files have 290.*--no-check"):
        coat(tiny)
    dataset = coat(tiny, check=False)
    assert dataset.frame("train").rows() == [(0, 0, 5), (0, 2, 3), (1, 1, 4)]
    assert (len(dataset.valid), len(dataset.test)) == (1, 2)
    assert any("2 users where the published files have 290" in note for note in dataset.notes)
