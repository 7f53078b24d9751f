from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, MissingExtraError
from dpaa.files import MARK
from dpaa.runs.model import Model, load
from dpaa.tuning import worker
from dpaa.tuning.tune import tune
from tests.tuning.conftest import FEW, TINY, settings_of

# ---------------------------------------------------------------------- a study


def test_a_study_keeps_every_trial_and_trains_the_best_over_seeds(world: Dataset, tmp_path: Path) -> None:
    found = tune(tmp_path / "study", world, "lightgcn", trials=4, seeds=2, settings=TINY, seed=3)
    kept = [json.loads(line) for line in (tmp_path / "study/trials.jsonl").read_text().splitlines()]
    assert [trial["settings"] for trial in kept] == settings_of(found)
    assert found.trials[0].settings == {"learning_rate": 1e-3, "l2": 1e-4, "layers": 3}, "the defaults come first"
    for trial in found.trials:
        assert trial.state == "complete"
        assert len(trial.curve) == 3
        assert trial.seconds
        assert trial.value == pytest.approx(max(trial.curve), abs=1e-6), "what early stopping saw"
        assert trial.best_epoch == 1 + trial.curve.index(max(trial.curve))
    assert found.best.value == max(trial.value or 0 for trial in found.trials)
    chosen = tomllib.loads((tmp_path / "study/best.toml").read_text())
    assert chosen == {"method": "lightgcn"} | found.settings == {"method": "lightgcn"} | TINY | found.best.settings
    assert [run.seed for run in found.runs] == [3, 4]
    assert found.runs[0].valid_recall == found.best.value, "the same training, now with its files"
    for run in found.runs:
        settings = load(run.folder).method.settings.model_dump()
        assert settings.items() >= (found.settings | {"seed": run.seed, "threads": 1}).items()


def test_a_study_that_is_done_trains_nothing_and_more_trials_add_to_it(
    world: Dataset, tmp_path: Path, trained: list[str]
) -> None:
    first = tune(tmp_path, world, "lightgcn", trials=2, seeds=1, settings=TINY)
    assert len(trained) == 2
    again = tune(tmp_path, world, "lightgcn", trials=2, seeds=1, settings=TINY)
    assert len(trained) == 2
    assert again == replace(first, kept=2)
    more = tune(tmp_path, world, "lightgcn", trials=3, seeds=0, settings=TINY)
    assert len(trained) == 3
    assert more.trials[:2] == first.trials
    assert (first.kept, more.kept) == (0, 2)


def test_the_search_ends_with_the_paper_s_grid(world: Dataset, tmp_path: Path, trained: list[str]) -> None:
    some = tune(tmp_path, world, "item-knn", space="paper", trials=2, seeds=0)
    assert len(trained) == 2
    found = tune(tmp_path, world, "item-knn", space="paper", seeds=3)
    assert found.trials[:2] == some.trials
    assert len(trained) == 5
    assert sorted(trial.settings["neighbours"] for trial in found.trials) == [20, 50, 100, 200, 500]
    assert len(found.runs) == 1, "nothing in it depends on a seed"


def test_settings_are_trained_once_and_repeated_proposals_take_the_known_result(
    world: Dataset, tmp_path: Path, trained: list[str]
) -> None:
    found = tune(tmp_path, world, "lightgcn", trials=30, seeds=0, settings=TINY, values=FEW)
    assert len(trained) == len(set(trained)) == 4, "there are no more points than these"
    repeated = [trial for trial in found.trials if trial.state == "repeated"]
    assert repeated, "four points are hit in order by no sampler"
    by_number = {trial.number: trial for trial in found.trials}
    for trial in repeated:
        assert trial.same_as is not None
        assert (trial.settings, trial.value) == (by_number[trial.same_as].settings, by_number[trial.same_as].value)
        assert trial.seconds is None


# ---------------------------------------------------------------------- stopped and gone on with


def test_stopped_in_a_trial_the_study_goes_on_as_it_would_have(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tune(tmp_path / "whole", world, "lightgcn", settings=TINY, trials=7, seeds=0)
    fit_method, calls = worker.fit_method, []

    def fit(*args: Any, **more: Any) -> Model:
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return fit_method(*args, **more)

    monkeypatch.setattr(worker, "fit_method", fit)
    with pytest.raises(KeyboardInterrupt):
        tune(tmp_path / "cut", world, "lightgcn", settings=TINY, trials=7, seeds=0)
    found = tune(tmp_path / "cut", world, "lightgcn", settings=TINY, trials=7, seeds=0)
    assert settings_of(found) == settings_of(whole)
    assert [trial.state for trial in found.trials].count("lost") == 1
    assert len(calls) == 8


# ---------------------------------------------------------------------- what is wrong


WITHOUT_OPTUNA = """
import sys

sys.modules["optuna"] = None
import dpaa.reproduction, dpaa.tuning.trial, dpaa.tuning.processes
print("what does not search needs no Optuna")
try:
    from dpaa.tuning import tune
except Exception as error:
    print(type(error).__name__)
from dpaa.cli import main

main()
"""


def test_without_optuna_it_says_what_to_install(world: Dataset, tmp_path: Path) -> None:
    """In one process, since each loads torch."""
    world.write(tmp_path / "data")
    words = ["tune", tmp_path / "data", "--method", "lightgcn", "--out", tmp_path / "study"]
    call = [sys.executable, "-c", WITHOUT_OPTUNA, *map(str, words)]
    said = subprocess.run(call, capture_output=True, text=True, check=False)
    assert said.returncode == 2, said.stderr
    assert said.stdout.splitlines() == ["what does not search needs no Optuna", MissingExtraError.__name__]
    assert "pip install 'dpaa[tune]'" in " ".join(said.stderr.split())
    assert not (tmp_path / "study").exists()


def test_what_is_found_wrong_in_the_first_trial_leaves_nothing(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaa.runs.context.memory_at_hand", lambda: 1_000)
    with pytest.raises(InputError, match="GB of memory"):
        tune(tmp_path / "a/study", world, "lightgcn", settings=TINY)
    assert not (tmp_path / "a").exists()


def test_a_folder_whose_name_is_no_text_is_refused(world: Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not UTF-8 text; rename"):
        tune(tmp_path / "\udcff", world, "ease", trials=1, seeds=0)


def test_what_a_kill_in_the_last_moment_left_in_a_run_is_swept(world: Dataset, tmp_path: Path) -> None:
    found = tune(tmp_path, world, "ease", trials=2, seeds=1)
    run = Path(found.runs[0].folder)
    left = [run.parent / f".{run.name}.lock", run / ".dpaa-0123456789ab"]
    own = tmp_path / ".locks" / "notes.txt"
    own.parent.mkdir(exist_ok=True)
    own.write_text("mine")
    left[0].write_bytes(MARK)
    left[1].mkdir()
    (left[1] / ".lock").write_bytes(MARK)
    tune(tmp_path, world, "ease", trials=2, seeds=1)
    assert [file for file in left if file.exists()] == []
    assert own.read_text() == "mine"
    assert load(run).method.name == "ease"
