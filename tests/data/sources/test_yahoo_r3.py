from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpaa.data.sources.yahoo_r3 import TEST_FILE, TRAIN_FILE, yahoo_r3
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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1\t2\t5\n1\t3\tx\n", "line 2 of {path} is '1\\t3\\tx'"),
        ("1\t2\t5\n1\t3\n", "line 2 of {path}"),
        ("1\t2\t5\n1\t3\t6\n", "line 2 of {path}"),
        ("1 2 5\n", "line 1 of {path} is '1 2 5' instead of user, song and rating"),
        ("1\t2\t5\n1\t2\t4\n", "twice"),
        ("", "is empty"),
    ],
)
def test_wrong_lines(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / TRAIN_FILE).write_text(content)
    (tmp_path / TEST_FILE).write_text("1\t9\t5\n")
    with pytest.raises(InputError) as error:
        yahoo_r3(tmp_path, check=False)
    assert words.format(path=tmp_path / TRAIN_FILE) in str(error.value)


def test_a_file_far_larger_than_the_official_one_is_refused_unread(tmp_path: Path) -> None:
    write_yahoo_r3(tmp_path)
    os.truncate(tmp_path / TRAIN_FILE, 4_000_000_000)  # sparse: it takes no room
    with pytest.raises(InputError, match="larger than 100 MB"):
        yahoo_r3(tmp_path, check=False)
