"""The whole walk, command by command, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import dpaa
from tests.command import dpaa_ok, run_dpaa


def test_version() -> None:
    assert dpaa_ok("--version").out == f"dpaa {dpaa.__version__}\n"


@pytest.mark.parametrize("command", [[], ["data"]])
def test_without_a_command_the_help_is_shown(command: list[str]) -> None:
    said = run_dpaa(*command)
    assert said.code == 2
    assert "Usage" in said.out + said.err
    assert "error:" not in said.err


def test_from_ready_made_splits(walk: Path, tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        pl.read_parquet(walk / "data" / f"{split}.parquet").write_csv(tmp_path / f"{split}.csv")
    files = [word for split in ("train", "valid", "test") for word in (f"--{split}", tmp_path / f"{split}.csv")]
    dpaa_ok("data", "splits", *files, "--out", tmp_path / "data")
    found = [json.loads(dpaa_ok("data", "describe", folder / "data", "--json").out) for folder in (walk, tmp_path)]
    assert found[0]["fingerprint"] == found[1]["fingerprint"]
    dpaa_ok("evaluate", walk / "run", "--dataset", tmp_path / "data")
