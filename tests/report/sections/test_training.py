from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpaa.report.figures import POINTS
from dpaa.report.inputs import gather
from dpaa.report.page import write_page
from dpaa.report.sections import training
from tests.report.folders import copy_of
from tests.report.made import add_run, made_family, made_inputs
from tests.report.reader import Reader


@pytest.mark.parametrize("kept", ["the winner", "plain"])
def test_the_loss_chart_leaves_discarded_parts_out(auto_run: Path, tmp_path: Path, kept: str) -> None:
    run = copy_of(auto_run, tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    parts = {part["part"]: part for part in manifest["auto"]["parts"]}
    if kept == "plain":
        manifest["auto"]["chosen"]["part"] = "plain"
        (run / "manifest.json").write_text(json.dumps(manifest))
    way, part = [], manifest["auto"]["chosen"]["part"]
    while part is not None:
        way.append(part)
        part = parts[part]["from"]
    assert way[-1] == "plain"
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    expected = [line["loss"] for line in lines if line["part"] in way]
    assert len(expected) < len(lines), "something was given up"
    (loaded,) = gather([run]).runs
    shown = training.kept_lines(loaded)
    assert [line["loss"] for line in shown] == expected
    assert [line["epoch"] for line in shown] == list(range(1, len(expected) + 1))
    write_page([run], tmp_path / "page.html")
    (chapter,) = Reader((tmp_path / "page.html").read_text()).named("section", id="training")
    assert f"run: {len(expected)} of {len(lines)} epochs led to the model that is kept" in chapter.text
    assert "Training loss over the epochs." in (tmp_path / "page.html").read_text()


def test_a_run_of_before_shows_all_its_epochs(auto_run: Path, tmp_path: Path) -> None:
    run = copy_of(auto_run, tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    for part in manifest["auto"]["parts"]:
        del part["from"], part["learning_rate"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    (loaded,) = gather([run]).runs
    assert training.kept_lines(loaded) == loaded.history


def test_a_long_history_is_thinned_and_keeps_its_ends() -> None:
    family = made_family()
    history = [{"epoch": epoch, "loss": 1 / epoch, "valid": {"recall@20": 0.1}} for epoch in range(1, 1001)]
    run = add_run(family, "new", history=[*history, {"epoch": 1001, "loss": None, "valid": {}}])
    loss, recall = training._lines([run], lambda line: line.get("loss")), training._lines([run], training._valid_recall)
    for (line,) in (loss, recall):
        assert len(line.x) <= POINTS + 1
        assert (line.x[0], line.x[-1]) == (1.0, 1000.0)
    assert loss[0].y[-1] == 1 / 1000


def test_what_a_history_does_not_tell_is_not_drawn() -> None:
    family = made_family()
    add_run(family, "new", history=[{"epoch": 1, "loss": 0.5, "valid": {}}, {"epoch": 2, "loss": 0.25, "valid": {}}])
    chapter = training.section(made_inputs(family))
    (figure,) = chapter.figures
    assert figure.name == "training-loss"
    assert figure.description == "Training loss over the epochs. new from 0.5 to 0.25."
    assert not training.section(made_inputs(made_family())).content.strip()


def test_parts_that_go_in_a_circle_end() -> None:
    parts = [{"part": "a", "from": "b"}, {"part": "b", "from": "a"}]
    manifest = {"auto": {"chosen": {"part": "a"}, "parts": parts}}
    history = [{"epoch": place, "part": part} for place, part in enumerate("abcb", 1)]
    run = add_run(made_family(), "new", manifest=manifest, history=history)
    assert [(line["epoch"], line["part"]) for line in training.kept_lines(run)] == [(1, "a"), (2, "b"), (3, "b")]
