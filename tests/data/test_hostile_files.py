"""The commands with files made to break a reader: ragged rows, pipes, devices.  One sentence each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.command import run_dpaa


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize(
    "words",
    [
        ("data", "log", "BAD.csv", "--out", "made"),
        ("data", "log", "BAD.parquet", "--out", "made"),
        ("data", "splits", "--train", "log.csv", "--candidates", "BAD.txt", "--out", "made"),
        ("audit", "BAD.csv"),
        ("train", "data", "--config", "BAD.toml", "--out", "made"),
        ("data", "describe", "spoilt"),
    ],
    ids=lambda words: " ".join(words[:4]),
)
def test_pipes_and_devices_neither_hang_nor_fill_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("user,item\n1,2\n2,3\n")
    said = run_dpaa("data", "log", "log.csv", "--split", "random", "--out", "data")
    assert said.code == 0, said.err
    said = run_dpaa("data", "log", "log.csv", "--out", "spoilt")
    Path("spoilt/dataset.json").unlink()
    bad = [word for word in words if word.startswith("BAD")] or ["spoilt/dataset.json"]
    if kind == "pipe":
        os.mkfifo(bad[0])
    else:
        Path(bad[0]).symlink_to("/dev/zero")
    said = run_dpaa(*words)
    assert said.code == 2
    assert "is a pipe or device" in said.err or "is not a prepared dataset" in said.err
    assert not Path("made").exists()
