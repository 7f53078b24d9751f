"""`dpaa train`: where settings come from, and what a signal leaves behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from dpaa.data.dataset import read_dataset
from dpaa.methods.base import Method
from dpaa.methods.graph_method import EARLIER_DEFAULTS, PAPER_TRAINING
from dpaa.runs.fit import Callbacks, fit_into, make_method
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import load
from dpaa.training.trainer import Interrupted
from tests.cli.conftest import TINY
from tests.command import dpaa_ok, run_dpaa


def config_of(run: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((run / "config.json").read_text())
    return found


def test_the_later_wins_file_set_seed(walk: Path, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('method = "lightgcn"\nepochs = 1\nembedding_size = 4\nlayers = 1\nseed = 1\nbatch_size = "auto"\n')
    said = dpaa_ok("train", walk / "data", "--config", file, "--set", "layers=2", "--set", "seed=2", "--seed", 3,
                   "--method", "most-popular", "--out", tmp_path / "run")  # fmt: skip
    assert "best epoch 1 of 1" in said.out
    found = config_of(tmp_path / "run")
    assert (found["epochs"], found["layers"], found["seed"], found["batch_size"]) == (1, 2, 3, "auto")
    assert found["learning_rate"] == 1e-3
    assert found["method"] == "lightgcn"


def test_set_twice_takes_the_last(walk: Path, tmp_path: Path) -> None:
    dpaa_ok("train", walk / "data", *TINY, "--set", "layers = 1", "--set", "layers=0", "--out", tmp_path / "run")
    assert config_of(tmp_path / "run")["layers"] == 0


def test_a_best_epoch_that_was_the_last_one_allowed_is_told_by_train_and_evaluate(walk: Path, tmp_path: Path) -> None:
    once = [*TINY, "--set", "epochs=1"]
    said = dpaa_ok("train", walk / "data", *once, "--out", tmp_path / "run")
    line = "lightgcn: the best epoch was the last one allowed; it may not have finished learning; allow more with --set"
    assert f"note: {line} epochs=2" in said.err
    assert line in dpaa_ok("evaluate", tmp_path / "run").err
    said = dpaa_ok("compare", walk / "run", tmp_path / "run")
    assert "the best epoch was the last one allowed" in said.err
    assert "unequal training budgets: " in said.err


def test_resume_without_a_run_starts_afresh_and_says_so(walk: Path, tmp_path: Path) -> None:
    said = dpaa_ok("train", walk / "data", *TINY, "--seed", 5, "--resume", "--out", tmp_path / "run")
    assert "there is no checkpoint to resume from: training starts afresh" in said.err
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (walk / "run" / "model.safetensors").read_bytes()


def test_a_failed_training_leaves_no_folder(walk: Path, tmp_path: Path) -> None:
    deep = tmp_path / "runs" / "today" / "run"
    said = run_dpaa("train", walk / "data", *TINY, "--set", "learning_rate=1e30", "--out", deep)
    assert said.code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"])
def test_a_signal_leaves_a_checkpoint_to_resume_from(
    number: signal.Signals, code: int, walk: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"  # without validation the last epoch is kept, so every step counts
    dpaa_ok("data", "splits", "--train", walk / "data" / "train.parquet", "--out", data)
    settings = ["--set", "embedding_size=8", "--set", "epochs=60", "--set", "batch_size=16", "--set", "threads=1"]
    words = ["train", str(data), *settings, "--out"]
    folder = tmp_path / "stopped"
    process = subprocess.Popen(
        [sys.executable, "-c", "from dpaa.cli import main; main()", *words, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_an_epoch(folder, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert out == ""
    assert "continue with the same call and --resume" in err
    assert "Traceback" not in err
    assert (folder / "checkpoint" / "state.safetensors").exists()
    before = (folder / "config.json").read_bytes()
    refused = run_dpaa(*words, folder, "--resume", "--set", "l2=0.5")
    assert refused.code == 2
    assert "resume with the same call" in refused.err
    assert (folder / "config.json").read_bytes() == before
    assert "resuming in epoch" in dpaa_ok(*words, folder, "--resume").err
    dpaa_ok(*words, tmp_path / "whole")
    for name in ("model.safetensors", "edges.parquet", "config.json"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    assert not (folder / "checkpoint").exists()


def wait_for_an_epoch(folder: Path, process: subprocess.Popen[str]) -> None:
    """Until the history has a line: training is under way."""
    history = folder / "history.jsonl"
    for _ in range(600):
        if (history.exists() and history.stat().st_size) or process.poll() is not None:
            return
        time.sleep(0.05)
    pytest.fail("no epoch in half a minute")


@pytest.mark.parametrize("command", ["methods", "methods lightgcn --json", "--help"])
def test_a_reader_that_leaves_early_sees_no_traceback(command: str) -> None:
    words = f"{sys.executable} -c 'from dpaa.cli import main; main()' {command} | head -1"
    said = subprocess.run(["/bin/sh", "-c", words], capture_output=True, text=True, timeout=60, check=True)
    assert said.stderr == ""
    assert said.stdout.count("\n") == 1


def test_a_training_begun_before_the_schedule_goes_on_as_it_was_begun(walk: Path, tmp_path: Path) -> None:
    """The same call, with other defaults in between."""
    data, stops = read_dataset(walk / "data"), iter([False] * 5)
    words = ("train", walk / "data", "--set", "embedding_size=4", "--set", "layers=1", "--set", "epochs=6")
    settings = PAPER_TRAINING | {"embedding_size": 4, "layers": 1, "epochs": 6}
    method = make_method(data, "lightgcn", settings)
    with pytest.raises(Interrupted):
        fit_into(tmp_path / "run", data, method, callbacks=Callbacks(stop_requested=lambda: next(stops, True)))
    run = RunFolder(tmp_path / "run")
    kept = run.checkpoints.load()
    assert kept is not None
    config = {name: value for name, value in config_of(run.path).items() if name not in EARLIER_DEFAULTS}
    (run.path / "config.json").write_text(json.dumps(config))
    for name in EARLIER_DEFAULTS:
        del kept.progress["identity"]["settings"][name]
    run.checkpoints.save(kept)
    assert "resuming in epoch" in dpaa_ok(*words, "--out", run.path, "--resume").err
    straight = fit_into(tmp_path / "straight", data, make_method(data, "lightgcn", settings))
    assert torch.equal(load(run.path).method.user_embedding, straight.method.user_embedding)
    assert config_of(run.path)["learning_rate_schedule"] == "constant"


def stopped(data: Path, folder: Path, method: str, epochs: int = 2, **how: Any) -> None:
    """A training that is stopped after so many epochs of the method itself."""
    began, done = False, 0

    def on_start(about_to_train: Method, _notes: object) -> None:
        nonlocal began
        began = about_to_train.name == method

    def on_epoch(_report: object) -> None:
        nonlocal done
        done += began

    callbacks = Callbacks(on_start=on_start, on_epoch=on_epoch, stop_requested=lambda: began and done >= epochs)
    world = read_dataset(data)
    settings = {"embedding_size": 8, "layers": 2, "epochs": 40, "threads": 1, "seed": 5}
    with pytest.raises(Interrupted):
        fit_into(folder, world, make_method(world, method, settings), callbacks=callbacks, **how)


@pytest.mark.parametrize("method", ["lightgcn", "dpaa", "dap"])
def test_a_stopped_training_can_be_finished_at_its_checkpoint(method: str, walk: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    stopped(walk / "data", run, method)
    said = run_dpaa("evaluate", run)
    assert said.code == 2
    assert "finish it with `dpaa train … --resume`, or at its checkpoint with --finish" in said.err
    said = dpaa_ok("train", walk / "data", "--out", run, "--finish")
    assert "nothing is trained: the best epoch of the checkpoint is kept" in said.err
    assert "of 2 (finished early after epoch 2)" in said.out
    training = json.loads((run / "manifest.json").read_text())["training"]
    assert training["stopped"] == "finished early after epoch 2"
    assert training["epochs"] == len((run / "history.jsonl").read_text().splitlines()) == 2
    assert config_of(run)["epochs"] == 40
    assert not (run / "checkpoint").exists()
    dpaa_ok("evaluate", run)
    dpaa_ok("recommend", run, "--out", tmp_path / "recs.csv")
    dpaa_ok("compare", walk / "run", run)
    assert "from epoch 3 on" in dpaa_ok("train", walk / "data", "--out", run, "--resume", "--set", "epochs=4").err


def test_a_run_that_is_to_replace_another_can_be_finished_too(walk: Path, run: Path) -> None:
    stopped(walk / "data", run, "lightgcn", overwrite=True)
    old = (run / "model.safetensors").read_bytes()
    said = run_dpaa("train", walk / "data", "--out", run, "--finish")
    assert said.code == 2
    assert "is finished already; finish the run that is to replace it with --finish --overwrite" in said.err
    assert (run / "model.safetensors").read_bytes() == old
    dpaa_ok("train", walk / "data", "--out", run, "--finish", "--overwrite")
    assert config_of(run)["epochs"] == 40
    assert sorted(file.name for file in run.parent.iterdir()) == ["run"]
    assert "stopped" in json.loads((run / "manifest.json").read_text())["training"]


def test_finishing_trains_nothing(walk: Path, tmp_path: Path) -> None:
    """Not even a pre-trained model that has gone; and what was given at the start is given again."""
    stopped(walk / "data", tmp_path / "run", "dpaa", pretrained=walk / "run")
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()}
    said = run_dpaa("train", walk / "data", "--out", tmp_path / "run", "--finish")
    assert said.code == 2
    assert "the pre-trained model that dpaa started from is not at" in said.err
    assert "name it with --pretrained" in said.err
    said = run_dpaa("train", walk / "data", "--out", tmp_path / "run", "--finish", "--set", "l2=0.5")
    assert said.code == 2
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()} == before
    dpaa_ok("train", walk / "data", "--out", tmp_path / "run", "--finish", "--pretrained", walk / "run")


@pytest.mark.parametrize("call", ["--finish", "--resume"])
def test_a_warm_start_is_named_again(call: str, walk: Path, tmp_path: Path) -> None:
    stopped(walk / "data", tmp_path / "run", "lightgcn", warm_start=load(walk / "run"))
    words = ("train", walk / "data", "--out", tmp_path / "run", call, "--seed", 5)
    settings = () if call == "--finish" else (*TINY, "--set", "epochs=40")
    said = run_dpaa(*words, *settings)
    assert said.code == 2
    assert "the training started from another run; name it with --warm-start" in said.err
    dpaa_ok(*words, *settings, "--warm-start", walk / "run")
    assert "warm_start" in json.loads((tmp_path / "run" / "manifest.json").read_text())


def test_before_the_first_epoch_there_is_nothing_to_finish(walk: Path, tmp_path: Path) -> None:
    stopped(walk / "data", tmp_path / "run", "lightgcn", epochs=0)
    said = run_dpaa("train", walk / "data", "--out", tmp_path / "run", "--finish")
    assert said.code == 2
    assert "training was stopped in its first epoch and has none to keep; continue with --resume" in said.err
    dpaa_ok("train", walk / "data", *TINY, "--set", "epochs=40", "--seed", 5, "--out", tmp_path / "run", "--resume")
