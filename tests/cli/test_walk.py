"""The whole walk, command by command, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import dpaa
from tests.cli.conftest import TINY
from tests.command import dpaa_ok, run_dpaa


def test_version() -> None:
    assert dpaa_ok("--version").out == f"dpaa {dpaa.__version__}\n"


@pytest.mark.parametrize("command", [[], ["data"]])
def test_without_a_command_the_help_is_shown(command: list[str]) -> None:
    said = run_dpaa(*command)
    assert said.code == 2
    assert "Usage" in said.out + said.err
    assert "error:" not in said.err


def test_from_a_log_to_recommendations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(f"u{u}", 10**15 + i, 1 + (u * i) % 5, 1000 * i + u) for u in range(30) for i in range(u % 5, 20, 2)]
    schema = ["customer_id", "product_id", "stars", "ts"]
    pl.DataFrame(rows, schema=schema, orient="row").write_csv("log.csv")
    said = dpaa_ok("data", "log", "log.csv", "--positive", "stars>=2", "--split", "leave-last", "--out", "data")
    assert "next: dpaa train data --out RUN" in said.out
    assert "rows are not positive (stars >= 2)" in said.err
    assert "best epoch" in dpaa_ok("train", "data", *TINY, "--out", "run").out
    assert "recall" in dpaa_ok("evaluate", "run").out
    dpaa_ok("recommend", "run", "--k", 2, "--out", "recs.parquet")
    recommended = pl.read_parquet("recs.parquet")
    assert recommended.schema == {"user_id": pl.String, "item_id": pl.Int64, "score": pl.Float32, "rank": pl.Int32}
    assert recommended["item_id"].min() >= 10**15  # type: ignore[operator]


def test_from_ready_made_splits(walk: Path, tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        pl.read_parquet(walk / "data" / f"{split}.parquet").write_csv(tmp_path / f"{split}.csv")
    files = [word for split in ("train", "valid", "test") for word in (f"--{split}", tmp_path / f"{split}.csv")]
    dpaa_ok("data", "splits", *files, "--out", tmp_path / "data")
    found = [json.loads(dpaa_ok("data", "describe", folder / "data", "--json").out) for folder in (walk, tmp_path)]
    assert found[0]["fingerprint"] == found[1]["fingerprint"]
    dpaa_ok("evaluate", walk / "run", "--dataset", tmp_path / "data")
