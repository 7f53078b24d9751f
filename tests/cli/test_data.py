"""`dpaa data`: what is printed, and what is written."""

import json
from pathlib import Path

import polars as pl
import pytest

from dpaa.data.dataset import read_dataset
from tests.command import dpaa_ok, run_dpaa


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    rows = [f"{user},{item},{item % 5 + 1}" for user in range(10) for item in range(20)]
    file = tmp_path / "clicks.csv"
    file.write_text("user,item,rating\n" + "\n".join([*rows, rows[-1]]) + "\n")
    return file


def test_log(clicks: Path, tmp_path: Path) -> None:
    shown = dpaa_ok("data", "log", clicks, "--positive", "rating>=3", "--seed", 3, "--out", tmp_path / "data").out
    assert "Dataset(clicks: 10 users × 12 items, 120 interactions)" in shown
    assert f"dataset written to {tmp_path / 'data'}; next: dpaa train {tmp_path / 'data'} --out RUN" in shown
    dataset = read_dataset(tmp_path / "data")
    assert dataset.about["seed"] == 3
    assert any("1 duplicate pair; each counts once" in note for note in dataset.notes)


def test_append_keeps_the_rules_of_the_dataset(clicks: Path, tmp_path: Path) -> None:
    dpaa_ok("data", "log", clicks, "--out", tmp_path / "data")
    (tmp_path / "more.csv").write_text("user,item,rating\n99,1,5\n")
    words = ("data", "log", tmp_path / "more.csv", "--append", tmp_path / "data")
    for rule in (("--seed", 3), ("--positive", "rating>=3"), ("--test", 0.1)):
        refused = run_dpaa(*words, *rule)
        assert refused.code == 2
        assert "--append keeps the options that the dataset was created with" in refused.err
    dpaa_ok(*words, "--out", tmp_path / "longer")
    dpaa_ok(*words)
    assert read_dataset(tmp_path / "data").n_interactions == read_dataset(tmp_path / "longer").n_interactions == 201


def test_invalid_rows_are_written(clicks: Path, tmp_path: Path) -> None:
    words = ("data", "log", clicks, "--invalid", tmp_path / "invalid.csv", "--out")
    assert "no row is invalid" in dpaa_ok(*words, tmp_path / "whole").err
    clicks.write_text(clicks.read_text() + "1,,5\n2,3,many\n")
    assert f"invalid rows written to {tmp_path / 'invalid.csv'}: 2" in dpaa_ok(*words, tmp_path / "most").err
    assert len(pl.read_csv(tmp_path / "invalid.csv")) == 2


def test_demo_and_describe(tmp_path: Path) -> None:
    words = ("data", "demo", "--size", "60x50", "--severity", 2, "--out", tmp_path / "data")
    dpaa_ok(*words)
    assert "density" in dpaa_ok("data", "describe", tmp_path / "data").out
    about = json.loads(dpaa_ok("data", "describe", tmp_path / "data", "--json").out)
    assert about["fingerprint"] == read_dataset(tmp_path / "data").fingerprint
    assert about["source"] == "simulated world, 60 users, 50 items, severity 2"
    assert "already exists" in run_dpaa(*words).err
    dpaa_ok(*words, "--overwrite")
