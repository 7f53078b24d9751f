"""`dpaa rerank`: over a file, over a run; the same from `recommend` and `evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from tests.command import dpaa_ok


def test_a_file_and_a_run_give_the_same(walk: Path, tmp_path: Path) -> None:
    run, data = walk / "run", walk / "data"
    dpaa_ok("recommend", run, "--k", 80, "--out", tmp_path / "recs.parquet")
    words = ("--method", "xquad", "--strength", 0.7, "--set", "coverage=smooth", "--k", 5)
    said = dpaa_ok("rerank", tmp_path / "recs.parquet", "--dataset", data, *words, "--out", tmp_path / "file.csv")
    assert f"{5 * len(pl.read_parquet(run / 'users.parquet'))} recommendations written to" in said.out
    assert "re-ranked by xquad,depth=100,strength=0.7,coverage=smooth,head_share=0.8" in said.out
    assert said.err == ""
    dpaa_ok("rerank", run, *words, "--dataset", data, "--out", tmp_path / "run.parquet")
    dpaa_ok(
        "recommend", run, "--k", 5, "--rerank", "xquad,strength=0.7,coverage=smooth", "--out", tmp_path / "same.parquet"
    )
    lists = [
        pl.read_csv(tmp_path / "file.csv"),
        *(pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("run", "same")),
    ]
    assert lists[0]["item_id"].equals(lists[1]["item_id"])
    assert lists[1].equals(lists[2])
    plain = pl.read_parquet(tmp_path / "recs.parquet").filter(pl.col("rank") <= 5)
    assert not lists[1]["item_id"].equals(plain["item_id"])


def test_measured_like_any_other_lists(run: Path, walk: Path, tmp_path: Path) -> None:
    words = ("--rerank", "fa-ir,strength=0.9", "--json")
    of_run = json.loads(dpaa_ok("evaluate", run, *words).out)["metrics"]
    dpaa_ok("rerank", run, "--method", "fa_ir", "--strength", 0.9, "--out", tmp_path / "new.csv")
    of_file = json.loads(dpaa_ok("evaluate", "--recs", tmp_path / "new.csv", "--dataset", walk / "data", "--json").out)[
        "metrics"
    ]
    assert of_run["aplt@20"] == of_file["aplt@20"]
    assert of_run["aplt@20"] > json.loads(dpaa_ok("evaluate", run, "--json").out)["metrics"]["aplt@20"]


def test_settings_are_shown() -> None:
    said = dpaa_ok("methods", "calibrated_popularity").out
    assert "strength = 0.9" in said
    assert "--rerank calibrated-popularity,NAME=VALUE" in said
    assert json.loads(dpaa_ok("methods", "pc", "--json").out)["pc"]["settings"]["depth"]["default"] == "all"
