import json
from pathlib import Path
from typing import NoReturn

import pytest

from tests.command import dpaa_ok, run_dpaa

QUICK = ("--set", "epochs=2", "--set", "embedding_size=4", "--seeds", 1)


def test_the_best_trials_are_shown_and_what_to_do_next(walk: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    call = ("tune", walk / "data", "--method", "lightgcn", "--trials", 3, *QUICK, "--out", study)
    said = dpaa_ok(*call)
    lines = said.out.splitlines()
    assert lines[0].startswith("Best trials of lightgcn on demo, by validation recall@20")
    header = next(line for line in lines if line.lstrip().startswith("trial "))
    columns = ["trial", "recall@20", "learning_rate", "l2", "layers", "seconds"]
    assert header.split() == columns
    assert "3 trials (3 complete)" in said.out
    assert f"next: dpaa evaluate {study}/runs/trial-" in lines[-1]
    assert [line.partition(":")[0] for line in said.err.splitlines()] == ["1 of 3", "2 of 3", "3 of 3"]
    dpaa_ok(*lines[-1].split()[2:])

    again = dpaa_ok(*call, "--json")
    assert again.err == "", "nothing is trained again"
    found = json.loads(again.out)
    assert len(found["trials"]) == 3
    best = max(trial["value"] for trial in found["trials"])
    assert found["best"]["valid_recall@20"] == found["runs"][0]["valid_recall@20"] == best
    dpaa_ok("train", walk / "data", "--config", study / "best.toml", "--out", tmp_path / "run")
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert config.items() >= found["best"]["settings"].items()
    for run in (tmp_path / "run", found["runs"][0]["folder"]):
        assert json.loads((Path(run) / "manifest.json").read_text())["tuning"] == {"trials": 3}
    dpaa_ok("train", walk / "data", *QUICK[:4], "--out", tmp_path / "untuned")
    notes = json.loads(dpaa_ok("compare", tmp_path / "untuned", tmp_path / "run", "--json").out)["notes"]
    assert "tuned in 0 trials" in notes[0]
    assert "tuned in 3 trials" in notes[0]


def test_without_out_the_study_has_its_own_place(walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = dpaa_ok("tune", walk / "data", "--method", "item_knn", "--space", "paper", "--trials", 2, "--seeds", 0)
    assert (tmp_path / "studies/demo-item-knn/trials.jsonl").exists()
    assert "next:" not in said.out


def test_interrupted_it_says_how_to_go_on(walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    call = ("tune", walk / "data", "--method", "lightgcn", "--trials", 1, *QUICK, "--out", tmp_path / "study")
    with monkeypatch.context() as while_it_lasts:
        while_it_lasts.setattr("dpaa.tuning._study.fit_method", interrupt)
        said = run_dpaa(*call)
    assert said.code == 130
    assert said.err == f"stopped; resume with the same call (what is done is in {tmp_path / 'study'})\n"
    assert "2 trials (1 lost, 1 complete)" in dpaa_ok(*call).out
