"""`dpaa debias`: what it prints, exits with and leaves, and what other commands do with its folder."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpaa
from dpaa.cli.debias import print_frontier
from tests.command import dpaa_ok, run_dpaa

QUICK = ("--methods", "ease,item-knn", "--rerank", "dial", "--k", 10)


@pytest.fixture(scope="module")
def trade(walk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("debias") / "trade"
    said = dpaa_ok("debias", walk / "data", *QUICK, "--target", "aplt>=0.4", "--out", folder)
    assert "* chosen, = baseline; first the frontier" in said.out
    assert f"run written to {folder / 'run'}; next: dpaa recommend {folder / 'run'}" in said.out.replace("\n", " ")
    assert "model 1 of 2: ease" in said.err
    return folder


@pytest.fixture
def copy(trade: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trade, tmp_path / "trade"))


def test_json_is_the_file(walk: Path, copy: Path) -> None:
    said = dpaa_ok("debias", walk / "data", *QUICK, "--target", "aplt>=0.4", "--out", copy, "--json")
    content = json.loads(said.out)
    assert content == json.loads((copy / "frontier.json").read_text())
    assert content["chosen"]["metrics"]["aplt@10"] >= 0.4
    assert {"base", "chosen", "points", "frontier", "sentences", "estimates", "validation", "held_out", "notes"} <= set(
        content
    )
    assert "is finished already" in said.err  # nothing is trained twice


def test_a_frontier_that_is_thinned_out_keeps_the_choice(
    walk: Path, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how: dict[str, Any] = {"methods": ["ease", "item-knn"], "rerank": ["dial"], "k": 10, "targets": ["aplt>=0.45"]}
    result = dpaa.debias(copy, dpaa.read_dataset(walk / "data"), **how)
    content = result.as_json()
    line = [content["points"][index]["name"] for index in result.line]
    print_frontier(result, most=2)
    rows = [row.strip("*= ").partition("  ")[0] for row in capsys.readouterr().out.splitlines()]
    shown = [row for row in rows if row in line and " + " in row]
    assert content["chosen"]["name"] in shown[:-1], "the last is less accurate"
    assert shown == sorted(shown, key=line.index)


def test_its_folder_and_its_run_are_taken_like_any_run(walk: Path, copy: Path, tmp_path: Path) -> None:
    of_folder = json.loads(dpaa_ok("evaluate", copy, "--k", 10, "--json").out)["metrics"]
    assert (copy / "run" / "metrics.json").is_file()
    assert not (copy / "metrics.json").exists()
    assert of_folder == json.loads(dpaa_ok("evaluate", copy / "run", "--k", 10, "--json").out)["metrics"]
    dpaa_ok("recommend", copy, "--k", 5, "--out", tmp_path / "recs.csv")
    assert pl.read_csv(tmp_path / "recs.csv")["rank"].max() == 5
    compared = dpaa_ok("compare", walk / "run", copy)
    assert "trade" in compared.out
    dpaa_ok("report", copy, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "The best trade-off between accuracy and popularity" in page
    assert f"dpaa evaluate {copy / 'run'}" in page
    assert "--popularity-dial debias" not in page  # which is none


def test_a_target_out_of_reach_is_an_answer_and_no_fault(walk: Path, tmp_path: Path) -> None:
    said = run_dpaa("debias", walk / "data", *QUICK, "--target", "coverage>=2", "--out", tmp_path / "trade")
    assert said.code == 1
    assert said.out == ""
    assert "no point reaches coverage@10>=2: coverage@10 runs from" in said.err.replace("\n", " ")
    assert not (tmp_path / "trade" / "run").exists()


def test_an_interrupted_training_is_gone_on_with(walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("debias", walk / "data", "--methods", "lightgcn", "--rerank", "dial", "--set", "embedding_size=8",
             "--set", "layers=2", "--set", "epochs=3", "--set", "threads=1", "--out", tmp_path / "trade")  # fmt: skip
    from dpaa.runs.progress import TrainingDisplay

    with monkeypatch.context() as patch:
        patch.setattr(TrainingDisplay, "epoch", lambda *_: signal.raise_signal(signal.SIGINT))
        said = run_dpaa(*words)
    assert said.code == 130
    assert "resume with the same call" in said.err.replace("\n", " ")
    assert {file.name for file in (tmp_path / "trade").iterdir()} == {"models"}
    assert "resuming in epoch 2" in dpaa_ok(*words).err
    assert (tmp_path / "trade" / "run" / "history.jsonl").read_text().count("\n") == 3
