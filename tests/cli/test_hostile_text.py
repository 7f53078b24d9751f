"""Paths, names, ids and numbers that ended in tracebacks or acted on a terminal: each is text, or one sentence."""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from tests.cli.conftest import TINY
from tests.command import Said, dpaa_ok, run_dpaa

ACTING = ("\x1b", "\x9b", "\x07", "\u202e")
HOSTILE = ["[/bold][/]", "[bold]x", "\x1b[31mred", "\x9b31m", "a\u202eb", "[link=file:///]x", "=1+1", "é", "用户"]


def refused(said: Said) -> str:
    """One sentence and nothing else."""
    assert said.code == 2, said
    assert sum(line.startswith("error: ") for line in said.err.splitlines()) == 1
    assert "Traceback" not in said.err
    return said.err


@pytest.fixture
def place(walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the walk, the current directory."""
    monkeypatch.chdir(shutil.copytree(walk, tmp_path / "place"))
    manifest = json.loads(Path("run/manifest.json").read_text())
    manifest["dataset"]["path"] = str(Path("data").resolve())
    Path("run/manifest.json").write_text(json.dumps(manifest))
    return Path.cwd()


@pytest.mark.parametrize("given", [".", "", "a\0b"])
def test_what_is_no_dataset_or_run_is_refused(place: Path, given: str) -> None:
    before = set(place.iterdir())
    for command in ("train", "evaluate", "recommend", "trace", "audit"):
        refused(run_dpaa(command, given, *(["--out", "new"] if command == "train" else [])))
    refused(run_dpaa("train", "data", *TINY, "--out", given))
    refused(run_dpaa("data", "demo", "--size", "60x40", "--out", given))
    assert set(place.iterdir()) == before


@pytest.mark.parametrize("name", ["a[1]*", "-x é [/]", "\x1b[31m"])
def test_odd_names_of_folders_and_files_work(place: Path, name: str) -> None:
    there = name if not name.startswith("-") else f"./{name}"
    dpaa_ok("data", "demo", "--size", "60x40", "--out", f"{there}-data")
    said = dpaa_ok("train", f"{there}-data", *TINY, "--out", f"{there}-run")
    said_too = dpaa_ok("evaluate", f"{there}-run")
    dpaa_ok("recommend", f"{there}-run", "--out", f"{there}.csv")
    dpaa_ok("audit", f"{there}-data", "--recs", f"{there}.csv")
    shown = said.out + said.err + said_too.out + said_too.err
    assert not any(character in shown for character in ACTING)
    assert name in shown or not name.isprintable()


@pytest.mark.parametrize("name", [b"a\xffb", b"\xed\xa0\x80"])
def test_names_that_are_no_text_end_in_a_sentence(place: Path, name: bytes) -> None:
    text = os.fsdecode(name)
    refused(run_dpaa("data", "demo", "--users", "60", "--items", "40", "--out", text))
    shutil.copy("data/train.parquet", f"{text}.parquet")
    for words in (
        ("audit", f"{text}.parquet"),
        ("train", "data", "--set", f"{text}=1", "--out", "new"),
        ("train", "data", "--method", text, "--out", "new"),
        ("compare", "run", text),
    ):
        refused(run_dpaa(*words))


def test_ids_that_look_like_markup_or_act_on_a_terminal_are_shown_as_text(place: Path) -> None:
    rows = [(user, item) for place, user in enumerate(HOSTILE) for item in HOSTILE[place : place + 4]]
    frame = pl.DataFrame(rows, schema=["user_id", "item_id"], orient="row")
    parts = {"train": frame[8:-4], "test": frame[:8], "valid": frame[-4:]}
    Dataset.from_frame(**parts, name="[/]\x1b[2J").write("odd")
    said = [
        dpaa_ok("data", "describe", "odd"),
        dpaa_ok("train", "odd", "--method", "item-knn", "--out", "odd-run"),
        dpaa_ok("evaluate", "odd-run"),
        dpaa_ok("recommend", "odd-run"),
        dpaa_ok("recommend", "odd-run", "--users", "[/bold][/]"),
        dpaa_ok("recommend", "odd-run", "--out", "odd.csv"),
        dpaa_ok("audit", "odd", "--recs", "odd.csv"),
        dpaa_ok("evaluate", "odd-run", "--json"),
        run_dpaa("similar", "odd-run", "\x1b[2J[/]"),
    ]
    for one in said:
        assert not any(character in one.out + one.err for character in ACTING)
    assert "[/bold][/]" in said[4].out
    assert "\\x1b[2J[/]" in said[-1].err
    assert json.loads(said[-2].out)


def test_the_streams_take_any_text_in_any_encoding() -> None:
    call = [sys.executable, "-m", "dpaa", b"\xff\x1b[2J"]  # no such command, which needs neither torch nor polars
    for encoding in ("ascii", "utf-8", "latin-1"):
        said = subprocess.run(call, capture_output=True, env=os.environ | {"PYTHONIOENCODING": encoding}, check=False)
        assert said.returncode == 2
        assert b"error: no such command" in said.stderr
        assert b"Traceback" not in said.stderr
        assert b"\x1b" not in said.stderr


@pytest.mark.parametrize("words", ["data demo --out new", "train data --method ease --out new", "evaluate run"])
def test_a_limit_on_the_size_of_files_ends_in_a_sentence(place: Path, words: str) -> None:
    before = {str(path) for path in place.rglob("*")}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        said = run_dpaa(*words.split())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "cannot write" in refused(said)
    assert {str(path) for path in place.rglob("*")} == before
