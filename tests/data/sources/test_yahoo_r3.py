from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpaa.data.sources.yahoo_r3 import TRAIN_FILE, yahoo_r3
from dpaa.errors import InputError
from tests.data.generated import write_yahoo_r3


def test_official_counts(tmp_path: Path) -> None:
    write_yahoo_r3(tmp_path)
    dataset = yahoo_r3(tmp_path)
    assert (dataset.n_users, dataset.n_items) == (14_382, 1_000)
    assert len(dataset.train) + len(dataset.valid) == 125_077
    assert len(dataset.valid) == round(0.29 * 125_077)
    assert len(dataset.test) == 4_671
    assert dataset.counts["interactions"] == 129_748
    assert "78 test positives of users without a training positive were dropped" in dataset.notes
    with (tmp_path / TRAIN_FILE).open("a") as file:
        file.write("15401\t1\t5\n")
    with pytest.raises(InputError, match=r"15,401 training users where the published files have 15,400.*--no-check"):
        yahoo_r3(tmp_path)
    assert any("15,401 training users" in note for note in yahoo_r3(tmp_path, check=False).notes)


def test_a_file_far_larger_than_the_official_one_is_refused_unread(tmp_path: Path) -> None:
    write_yahoo_r3(tmp_path)
    os.truncate(tmp_path / TRAIN_FILE, 4_000_000_000)  # sparse: it takes no room
    with pytest.raises(InputError, match="larger than 100 MB"):
        yahoo_r3(tmp_path, check=False)
