"""`dpaa train` and `dpaa tune`: where hyperparameters come from, what a signal leaves behind, what is shown."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from dpaa.runs.progress import TrainingDisplay
from tests.cli.conftest import TINY
from tests.command import dpaa_ok, run_dpaa


def test_the_later_wins_file_set_seed(walk: Path, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('method = "lightgcn"\nepochs = 1\nembedding_size = 4\nlayers = 1\nseed = 1\nbatch_size = "auto"\n')
    said = dpaa_ok("train", walk / "data", "--config", file, "--set", "layers=2", "--set", "seed=2", "--seed", 3,
                   "--method", "most-popular", "--out", tmp_path / "run")  # fmt: skip
    assert "best epoch 1 of 1" in said.out
    found = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (found["epochs"], found["layers"], found["seed"], found["batch_size"]) == (1, 2, 3, "auto")
    assert found["learning_rate"] == 1e-3
    assert found["method"] == "lightgcn"


def test_a_best_epoch_that_was_the_last_one_allowed_is_told_by_train_and_evaluate(walk: Path, tmp_path: Path) -> None:
    once = [*TINY, "--set", "epochs=1"]
    said = dpaa_ok("train", walk / "data", *once, "--out", tmp_path / "run")
    line = "lightgcn: the best epoch was the last one allowed; training may not have converged; allow more epochs with"
    assert f"note: {line} --set epochs=2" in said.err
    assert line in dpaa_ok("evaluate", tmp_path / "run").err
    said = dpaa_ok("compare", walk / "run", tmp_path / "run")
    assert "the best epoch was the last one allowed" in said.err
    assert "unequal training budgets: " in said.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"])
def test_a_signal_leaves_a_checkpoint_to_resume_from(
    number: signal.Signals, code: int, walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"  # without validation the last epoch is kept, so every step counts
    dpaa_ok("data", "splits", "--train", walk / "data" / "train.parquet", "--out", data)
    settings = ["--set", "embedding_size=8", "--set", "epochs=6", "--set", "batch_size=16", "--set", "threads=1"]
    words = ["train", str(data), *settings, "--out"]
    folder = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        patch.setattr(TrainingDisplay, "epoch", lambda *_: signal.raise_signal(number))
        said = run_dpaa(*words, folder)
    assert (said.code, said.out) == (code, ""), said.err
    assert "resume with the same command and --resume" in said.err
    assert (folder / "checkpoint" / "state.safetensors").exists()
    before = (folder / "config.json").read_bytes()
    refused = run_dpaa(*words, folder, "--resume", "--set", "l2=0.5")
    assert refused.code == 2
    assert "resume with the same command" in refused.err
    assert (folder / "config.json").read_bytes() == before
    assert "resuming in epoch" in dpaa_ok(*words, folder, "--resume").err
    dpaa_ok(*words, tmp_path / "whole")
    for name in ("model.safetensors", "edges.parquet", "config.json"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    assert not (folder / "checkpoint").exists()


def test_a_reader_that_leaves_early_sees_no_traceback(walk: Path) -> None:
    words = f"{sys.executable} -m dpaa data describe {walk / 'data'} | true"
    said = subprocess.run(["/bin/sh", "-c", words], capture_output=True, text=True, timeout=60, check=True)
    assert said.stderr == ""


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
    assert all(f"tuned in {trials} trials" in notes[0] for trials in (0, 3))
    assert f"not a run; name its runs: {study}/runs/*" in run_dpaa("compare", study, tmp_path / "run").err


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
