"""How long it will take, and the command file of who has Yahoo! R3."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.data.sources.yahoo_r3 import TEST_FILE, TRAIN_FILE
from dpaa.reproduction import readings
from dpaa.reproduction.importing import read_foreign
from tests.command import dpaa_ok
from tests.reproduction.conftest import TINY

ROOT = Path(__file__).parents[2]
FEW = "--no-check --method lightgcn --method dpaa --seeds 1 " + " ".join(TINY)


@pytest.fixture
def raw(tiny_world: Dataset, tmp_path: Path) -> Path:
    """A world in the files of Yahoo! R3: tab-separated user, song, rating."""
    folder = tmp_path / "raw"
    folder.mkdir()
    for name, split in ((TRAIN_FILE, "train"), (TEST_FILE, "test")):
        pairs = tiny_world.frame(split).select("user_id", "item_id")  # type: ignore[arg-type]
        numbers = pairs.select(pl.all().cast(pl.String).str.extract(r"(\d+)$").cast(pl.Int64) + 1, rating=pl.lit(5))
        numbers.unique(maintain_order=True).write_csv(folder / name, separator="\t", include_header=False)
    return folder


def test_the_command_file_makes_everything_goes_on_and_can_be_taken_in(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, studies: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(readings, "FACTORS", {"λ with sum 1": readings.FACTORS["λ with sum 1"]})
    monkeypatch.setattr(readings, "CROSSINGS", dict.fromkeys(readings.CENTRES, ()))
    words = [
        "make",
        "--no-print-directory",
        "-n",
        "yahoo-r3",
        f"DIR={raw}",
        f"OUT={tmp_path / 'made'}",
        f"OPTIONS={FEW}",
    ]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    calls = [shlex.split(line)[1:] for line in told.replace("\\\n", " ").splitlines() if "/dpaa reproduce" in line]
    assert len(calls) == 7
    said = [dpaa_ok(*call) for call in calls]
    assert re.search(r"overall: \d+ trainings at most, about \d+ minutes on one core", said[0].out)
    assert re.search(r"readings: 5 trainings at most", said[1].out)
    assert [one["method"] for one in studies] == ["lightgcn", "dpaa"]
    assert {one["trials"] for one in studies} == {4, 24}, "four for each free setting"
    names = {file.name for file in (tmp_path / "made" / "pages").iterdir()}
    assert {f"{name}-standard-2.md" for name in ("overall", "groups", "settings", "readings")} <= names
    found = read_foreign(tmp_path / "made" / "results")
    assert {one.kind for one in found} == {"overall", "readings", "tuned"}
    assert {one.result.protocol for one in found} == {"standard-2"}
    again = [dpaa_ok(*call).err for call in calls[2:6]]
    assert all("nothing was trained" in one for one in again)


def test_without_a_folder_it_says_what_to_name() -> None:
    said = subprocess.run(["make", "-s", "yahoo-r3", "DIR=nowhere"], cwd=ROOT, capture_output=True, text=True)
    assert said.returncode == 2
    assert "make yahoo-r3 DIR=folder" in said.stderr
