"""`dpaa data`: what is printed, what is written, and that a mistake leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from dpaa.cli.data import app
from dpaa.data.dataset import read_dataset
from dpaa.errors import InputError
from tests.command import dpaa_ok, run_dpaa


def call(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=True)
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    rows = [f"{user},{item},{item % 5 + 1}" for user in range(10) for item in range(20)]
    file = tmp_path / "clicks.csv"
    file.write_text("user,item,rating\n" + "\n".join([*rows, rows[-1]]) + "\n")
    return file


def test_log(clicks: Path, tmp_path: Path) -> None:
    shown = call("log", clicks, "--positive", "rating>=3", "--seed", 3, "--out", tmp_path / "data")
    assert "Dataset(clicks: 10 users × 12 items, 120 interactions)" in shown
    assert "train" in shown
    assert f"dataset written to {tmp_path / 'data'}" in shown
    dataset = read_dataset(tmp_path / "data")
    assert dataset.about["seed"] == 3
    assert any("1 duplicate pair; each counts once" in note for note in dataset.notes)


def test_low_ratings_that_count_as_liked_are_told(clicks: Path, tmp_path: Path) -> None:
    told = "ratings go from 1 to 5 and every row counts as liked; --positive 'rating>=4' keeps the high ones"
    assert told in dpaa_ok("data", "log", clicks, "--out", tmp_path / "all").err
    chosen = ("--positive", "rating>=4", "--out", tmp_path / "chosen")
    assert "counts as liked" not in dpaa_ok("data", "log", clicks, *chosen).err
    clicks.write_text("user,item,rating\n1,1,1\n1,2,1\n2,1,1\n", encoding="utf-8")
    assert "counts as liked" not in dpaa_ok("data", "log", clicks, "--out", tmp_path / "alike").err


def test_ratings_that_somebody_made_text_do_not_end_the_call(clicks: Path, tmp_path: Path) -> None:
    dpaa_ok("data", "log", clicks, "--out", tmp_path / "data")
    file = tmp_path / "data" / "train.parquet"
    pl.read_parquet(file).with_columns(pl.col("rating").cast(pl.String)).write_parquet(file)
    said = run_dpaa("data", "log", clicks, "--append", tmp_path / "data", "--out", tmp_path / "more")
    assert said.code in (0, 2)
    assert (said.code == 0) == (tmp_path / "more").exists()


def test_parts_are_written_beside_one_another(clicks: Path, tmp_path: Path) -> None:
    words = ("data", "log", clicks, "--split", "user-folds", "--parts", "2", "--out", tmp_path / "folds")
    dpaa_ok(*words)
    assert read_dataset(tmp_path / "folds" / "part-2").n_users
    again = run_dpaa(*words)
    assert again.code == 2
    assert "part-1 already exists" in again.err


def test_splits(clicks: Path, tmp_path: Path) -> None:
    call("splits", "--train", clicks, "--test", clicks, "--out", tmp_path / "mine")
    assert read_dataset(tmp_path / "mine").name == "mine"


def test_demo_and_describe(tmp_path: Path) -> None:
    call("demo", "--users", 60, "--items", 50, "--severity", 2, "--out", tmp_path / "data")
    assert "density" in call("describe", tmp_path / "data")
    found = json.loads(call("describe", tmp_path / "data", "--json"))
    assert found["fingerprint"] == read_dataset(tmp_path / "data").fingerprint
    assert found["source"] == "simulated world, 60 users, 50 items, severity 2"
    with pytest.raises(InputError, match="already exists"):
        call("demo", "--out", tmp_path / "data")
    call("demo", "--users", 60, "--items", 50, "--out", tmp_path / "data", "--overwrite")


def test_coat(real_data: Path, tmp_path: Path) -> None:
    assert "290 users × 300 items, 5,484 interactions" in call("coat", real_data / "coat", "--out", tmp_path / "coat")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["log", "clicks.csv", "--positive", "rating>9"], "the values run from 1 to 5"),
        (["log", "clicks.csv", "--positive", "rating"], "is not COLUMN OP NUMBER"),
        (["log", "clicks.csv", "--split", "temporal"], "needs times"),
        (["log", "clicks.csv", "--split", "fair"], "there is no split 'fair'"),
        (["log", "clicks.csv", "--valid", "0.6", "--test", "0.6"], "less than 1"),
        (["log", "clicks.csv", "--user-column", "who"], "has no column 'who'"),
        (["log", "clicks.csv", "--format", "xml"], "there is no format 'xml'"),
        (["log", "nothing.csv"], "there is no file"),
        (["splits", "--train", "clicks.csv", "--valid", "nothing.csv"], "there is no file"),
        (["coat", "."], "has no file train.ascii"),
        (["yahoo-r3", "."], "has no file ydata"),
        (["kuairec", "nowhere"], "nowhere has no file big_matrix.csv"),
        (["demo", "--users", "1"], "at least 2 users"),
    ],
)
def test_mistakes_leave_nothing(clicks: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str) -> None:
    monkeypatch.chdir(clicks.parent)
    with pytest.raises(InputError) as error:
        call(*words, "--out", "data")
    assert sentence in str(error.value)
    assert [path.name for path in clicks.parent.iterdir()] == ["clicks.csv"]


@pytest.mark.parametrize("command", ["log", "splits", "coat", "yahoo-r3", "kuairec", "demo", "describe"])
def test_every_command_has_an_example(command: str) -> None:
    shown = call(command, "--help")
    assert "Example" in shown
    assert f"dpaa data {command}" in shown
