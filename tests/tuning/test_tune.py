from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import optuna
import pytest

from dpaa.data.dataset import Dataset, read_dataset
from dpaa.data.sources.world import simulate
from dpaa.errors import InputError, MissingExtraError
from dpaa.runs.model import Model, load
from dpaa.tuning import study as study_module
from dpaa.tuning import tune as tune_module
from dpaa.tuning import work
from dpaa.tuning.space import Range
from dpaa.tuning.study import CHANCES, SILENCE, SUSPICION, Study, TrialStore
from dpaa.tuning.tune import TuneResult, tune

TINY = {"epochs": 3, "embedding_size": 8}
FEW = {"learning_rate": (1e-3, 1e-2), "l2": (1e-4,), "layers": (1, 2)}
"""Four points."""


@pytest.fixture(scope="module")
def world() -> Dataset:
    return simulate(users=80, items=60, seed=1)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The settings of every training of a trial, as they begin."""
    begun: list[str] = []
    fit_method = work.fit_method

    def fit(method: Any, *args: Any, **more: Any) -> Model:
        begun.append(method.settings.model_dump_json())
        return fit_method(method, *args, **more)

    monkeypatch.setattr(work, "fit_method", fit)
    return begun


def settings_of(found: TuneResult) -> list[dict[str, Any]]:
    return [trial.settings for trial in found.trials if trial.state in ("complete", "pruned")]


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


class Sealed:
    """A test split that nobody may look at."""

    def refuse(self, *_: object) -> NoReturn:
        raise AssertionError("the test split was opened")

    __getattr__ = __len__ = __iter__ = __getitem__ = refuse


@pytest.mark.parametrize("method", ["dpaa", "ppac", "ease"])
def test_the_test_split_is_never_opened(method: str, world: Dataset, tmp_path: Path) -> None:
    sealed = replace(world, test=Sealed())  # type: ignore[arg-type]
    sealed.__dict__["fingerprint"] = world.fingerprint  # it names the whole dataset; computing it would look
    settings = {} if method == "ease" else TINY
    found = tune(tmp_path, sealed, method, trials=2, seeds=1, settings=settings)
    assert len(settings_of(found)) == 2
    with pytest.raises(AssertionError, match="was opened"):
        len(sealed.test)


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


def test_a_trial_worse_than_the_median_is_pruned_and_leaves_no_file(
    small_world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_module, "STARTUP", 1)
    world = small_world
    values = {"learning_rate": (1e-2, 1e-9)}
    settings = {"epochs": 25, "embedding_size": 8, "layers": 0}
    grid = {"space": "paper", "settings": settings, "values": values, "seeds": 0, "seed": 1}
    found = tune(tmp_path / "a", world, "lightgcn", prune_after=10, **grid)  # type: ignore[arg-type]
    good, bad = found.trials
    assert good.settings == {"learning_rate": 1e-2}
    assert (good.state, len(good.curve)) == ("complete", 25)
    assert bad.state == "pruned"
    assert len(bad.curve) in (10, 20)
    assert bad.value == max(bad.curve) < max(good.curve[: len(bad.curve)])
    left = {path.name for path in (tmp_path / "a").iterdir() if not path.name.startswith(".")}
    assert left == {"study.json", "study.sqlite", "trials.jsonl", "best.toml"}
    never = tune(tmp_path / "b", world, "lightgcn", prune_after=0, **grid)  # type: ignore[arg-type]
    assert [len(trial.curve) for trial in never.trials] == [25, 25]


def test_a_loss_that_is_no_number_is_a_result_too(world: Dataset, tmp_path: Path, trained: list[str]) -> None:
    values = FEW | {"learning_rate": (1e-3, 1e30), "layers": (1,)}
    found = tune(tmp_path, world, "lightgcn", settings=TINY, values=values, seeds=0)
    assert [trial.state for trial in found.trials if trial.state != "repeated"] == ["complete", "diverged"]
    assert found.best.settings["learning_rate"] == 1e-3
    tune(tmp_path, world, "lightgcn", settings=TINY, values=values, seeds=0)
    assert len(trained) == 2
    with pytest.raises(InputError, match="no trial came to a result: the loss became"):
        tune(tmp_path / "b", world, "lightgcn", settings=TINY, values=FEW | {"learning_rate": (1e30,), "layers": (1,)})


def test_trials_share_one_pretrained_model_whatever_their_learning_rate(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = []
    fit_into = work.fit_into

    def fit(folder: Path, data: Dataset, method: Any, **more: Any) -> Model:
        into.append((method.name, method.settings.learning_rate, method.settings.seed))
        return fit_into(folder, data, method, **more)

    monkeypatch.setattr(work, "fit_into", fit)
    found = tune(tmp_path, world, "dpaa", settings=TINY, trials=3, seeds=2)
    assert len({trial.settings["learning_rate"] for trial in found.trials}) == 3
    rate = found.settings["learning_rate"]
    assert into == [("lightgcn", 1e-3, 0), ("dpaa", rate, 0), ("lightgcn", 1e-3, 1), ("dpaa", rate, 1)]
    assert found.runs[0].valid_recall == found.best.value
    origin = load(found.runs[1].folder).manifest["pretrained"]["run"]
    assert Path(origin).parent == tmp_path.resolve()


def test_a_value_is_that_of_the_finished_model(world: Dataset, tmp_path: Path) -> None:
    """Strengths that a method chooses after training count: they can only be better than none."""
    found = tune(tmp_path, world, "ppac", settings=TINY, trials=2, seeds=1)
    assert all((trial.value or 0) >= max(trial.curve) - 1e-6 for trial in found.trials)
    assert found.runs[0].valid_recall == found.best.value


# ---------------------------------------------------------------------- stopped and gone on with


def test_stopped_in_a_trial_the_study_goes_on_as_it_would_have(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tune(tmp_path / "whole", world, "lightgcn", settings=TINY, trials=7, seeds=0)
    fit_method, calls = work.fit_method, []

    def fit(*args: Any, **more: Any) -> Model:
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return fit_method(*args, **more)

    monkeypatch.setattr(work, "fit_method", fit)
    with pytest.raises(KeyboardInterrupt):
        tune(tmp_path / "cut", world, "lightgcn", settings=TINY, trials=7, seeds=0)
    found = tune(tmp_path / "cut", world, "lightgcn", settings=TINY, trials=7, seeds=0)
    assert settings_of(found) == settings_of(whole)
    assert [trial.state for trial in found.trials].count("lost") == 1
    assert len(calls) == 8


def store(folder: Path, **more: Any) -> TrialStore:
    folder.mkdir(exist_ok=True)
    space = {"x": Range(0, 1)}
    return TrialStore(Study(folder, "s", space, {"x": 0.5}, listed=False, seed=0, prune_after=0, **more))


def test_settings_that_kill_their_process_are_given_up(tmp_path: Path) -> None:
    one = store(tmp_path)  # never at work: to others, a process that is gone
    taken = []
    for _ in range(CHANCES + 1):
        claim = one.claim(2)
        assert claim
        taken.append(claim.settings)
    assert taken[:CHANCES] == [{"x": 0.5}] * CHANCES
    assert taken[-1] != {"x": 0.5}
    assert one.counts() == (1, 0)
    one.close()


def test_settings_are_not_given_up_because_whole_calls_were_killed(tmp_path: Path) -> None:
    most = int(CHANCES / SUSPICION)
    taken = []
    for number in range(most + 1):
        one = store(tmp_path, call=f"call {number}")  # the one before is gone, with all its workers
        claim = one.claim(2)
        assert claim
        taken.append(claim.settings)
        one.close()
    assert taken[:most] == [{"x": 0.5}] * most
    assert taken[-1] != {"x": 0.5}, "a call of one process that always dies has to come to an end, too"


def test_no_more_is_begun_than_is_wanted_and_what_runs_is_not_begun_again(tmp_path: Path) -> None:
    one, other = store(tmp_path), store(tmp_path)
    with one.at_work(), other.at_work():
        first, second = one.claim(2), other.claim(2)
        assert first
        assert second
        assert first.settings != second.settings
        assert one.claim(2) is None
        assert one.counts() == (0, 2)
        first.end("COMPLETE", 0.5)
        assert other.counts() == (1, 1)
        second.give_back()
        third = one.claim(2)
        assert third
        assert third.settings == second.settings
    for each in (one, other):
        each.close()


def test_a_trial_that_ends_while_another_worker_claims_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = store(tmp_path), store(tmp_path)
    with one.at_work(), other.at_work():
        before = one.claim(3)
        assert before
        before.end("COMPLETE", 0.4)
        first = one.claim(3)
        assert first
        read = TrialStore._in_state
        ended: list[tuple[str, ...]] = []

        def in_state(self: TrialStore, *names: str) -> Any:
            found = read(self, *names)
            if "COMPLETE" in names and not ended:
                ended.append(names)
                first.end("COMPLETE", 0.5)  # just after the other one has looked
            return found

        monkeypatch.setattr(TrialStore, "_in_state", in_state)
        second = other.claim(3)
        assert ended
        assert second
        assert second.settings != first.settings
    for each in (one, other):
        each.close()


def test_on_another_machine_silence_means_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    far, near = store(tmp_path / "far", storage=url), store(tmp_path / "near", storage=url)
    with monkeypatch.context() as there:
        there.setattr(socket, "gethostname", lambda: "far away")
        claim = far.claim(1)
    assert claim
    assert near.claim(1) is None, "it may well be alive"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + SILENCE + 1)
    again = near.claim(1)
    assert again
    assert again.settings == claim.settings
    assert claim.should_stop(1, 0.5), "it was alive after all: too late"
    claim.end("COMPLETE", 0.5)
    again.end("COMPLETE", 0.7)
    assert [trial.value for trial in near.trials() if trial.state == "complete"] == [0.7]
    for each in (far, near):
        each.close()


def test_a_shared_storage_is_joined_from_another_folder(world: Dataset, tmp_path: Path, trained: list[str]) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    one = tune(tmp_path / "a", world, "lightgcn", settings=TINY, trials=2, seeds=0, storage=url)
    two = tune(tmp_path / "b", world, "lightgcn", settings=TINY, trials=3, seeds=0, storage=url)
    assert two.trials[:2] == one.trials
    assert len(trained) == 3
    assert not (tmp_path / "a/study.sqlite").exists()
    other = tune(tmp_path / "c", world, "lightgcn", settings=TINY, trials=1, seeds=0, storage=url, seed=1)
    assert len(other.trials) == 1, "another study in the same storage"


def test_killed_workers_are_followed_by_others(world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    said: list[str] = []

    def killed(stage: str, order: work.Order, place: Path, jobs: int, say: Callable[[str], None]) -> int:
        """Workers of which one is killed each time after some trials."""
        rounds.append(jobs)
        with closing(TrialStore(order.study)) as here:
            work.Worker(replace(order, wanted=2 * len(rounds)), read_dataset(place)).search(here)
        return 1

    monkeypatch.setattr(tune_module, "in_processes", killed)
    found = tune(tmp_path, world, "lightgcn", settings=TINY, trials=5, seeds=0, jobs=3, say=said.append)
    assert len(settings_of(found)) == 5
    assert rounds == [3, 3], "the last setting needs no process of its own"
    assert said == ["1 worker was killed; their settings are tried again"] * 2 + said[2:]
    monkeypatch.setattr(tune_module, "in_processes", lambda *_: 3)
    with pytest.raises(InputError, match="killed before they can train"):
        tune(tmp_path / "b", world, "lightgcn", settings=TINY, trials=5, seeds=0, jobs=3)
    assert not (tmp_path / "b").exists()


def read(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def until(true: Callable[[], object], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and ") Z" in stat.read_text()


def workers_of(folder: Path) -> list[int]:
    return [int(path.name.split("-")[1]) for path in folder.glob(".locks/worker-*")]


def test_killed_at_any_time_it_loses_only_what_was_in_flight(world: Dataset, tmp_path: Path) -> None:
    world.write(tmp_path / "data")
    folder = tmp_path / "study"
    call = "from dpaa.cli import main; main()"
    options = f"--out {folder} --set epochs=40 --set embedding_size=8 --trials 500 --jobs 2 --seeds 0 --prune-after 0"
    words = ["tune", str(tmp_path / "data"), "--method", "lightgcn", *options.split()]
    parent = subprocess.Popen([sys.executable, "-c", call, *words], stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(workers_of(folder)) == 2 and len(read(folder / "trials.jsonl")) >= 3)
        first, second = workers_of(folder)
        os.kill(first, signal.SIGKILL)
        so_far = len(read(folder / "trials.jsonl"))
        until(lambda: len(read(folder / "trials.jsonl")) >= so_far + 3)  # the other one goes on
    finally:
        parent.kill()
        parent.wait()
    until(lambda: gone(first) and gone(second))
    done = [trial for trial in map(json.loads, read(folder / "trials.jsonl")) if trial["state"] == "complete"]
    settings = TINY | {"epochs": 40}
    found = tune(folder, world, "lightgcn", settings=settings, trials=len(done) + 4, seeds=0, prune_after=0)
    kept = {trial.number: trial for trial in found.trials}
    assert all(kept[trial["number"]].value == trial["value"] for trial in done)
    assert not [trial for trial in found.trials if trial.state == "running"]
    complete = [json.dumps(trial.settings) for trial in found.trials if trial.state == "complete"]
    assert len(complete) == len(set(complete)) >= len(done) + 4
    # A worker killed before its settings were proposed leaves a trial without any: there is nothing to train again.
    lost = [json.dumps(trial.settings) for trial in found.trials if trial.state == "lost" and trial.settings]
    assert set(lost) <= set(complete), "what was lost is trained again"


# ---------------------------------------------------------------------- what is wrong


def test_without_optuna_it_says_what_to_install(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpaa\[tune\]'"):
        tune(tmp_path / "study", world, "lightgcn")
    assert not (tmp_path / "study").exists()


def test_what_is_found_wrong_in_the_first_trial_leaves_nothing(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaa.runs.fit.memory_at_hand", lambda: 1_000)
    with pytest.raises(InputError, match="GB of memory"):
        tune(tmp_path / "a/study", world, "lightgcn", settings=TINY)
    assert not (tmp_path / "a").exists()


def test_a_storage_of_another_study_is_refused(world: Dataset, tmp_path: Path) -> None:
    for seed in (0, 1):
        tune(tmp_path / str(seed), world, "ease", trials=1, seeds=0, seed=seed)
    (tmp_path / "0" / "study.sqlite").write_bytes((tmp_path / "1" / "study.sqlite").read_bytes())
    before = (tmp_path / "0" / "trials.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"study\.sqlite belongs to another study; restore it"):
        tune(tmp_path / "0", world, "ease", trials=2, seeds=0)
    assert (tmp_path / "0" / "trials.jsonl").read_bytes() == before


def test_a_folder_whose_name_is_no_text_is_refused(world: Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not UTF-8 text; rename"):
        tune(tmp_path / "\udcff", world, "ease", trials=1, seeds=0)


@pytest.mark.parametrize("trained", [0, 1])
def test_a_storage_that_takes_nothing_more_is_told_once(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: int
) -> None:
    claim = TrialStore.claim

    def full(self: TrialStore, *_: object) -> NoReturn:
        raise optuna.exceptions.StorageInternalError("disk is full")

    def claim_some(self: TrialStore, wanted: int) -> study_module.Claim | None:
        if len(self.trials()) < trained:
            return claim(self, wanted)
        monkeypatch.setattr(TrialStore, "counts", full)  # also for who looks whether anything is to be kept
        return full(self)

    monkeypatch.setattr(TrialStore, "claim", claim_some)
    with pytest.raises(InputError, match="not a usable Optuna storage"):
        tune(tmp_path / "study", world, "ease", trials=2, seeds=0)
    assert (tmp_path / "study").exists() == bool(trained)


def test_a_spoiled_storage_is_named(world: Dataset, tmp_path: Path) -> None:
    tune(tmp_path, world, "lightgcn", settings=TINY, trials=1, seeds=0)
    with sqlite3.connect(tmp_path / "study.sqlite") as database:
        database.execute("DROP TABLE version_info")
    database.close()
    (tmp_path / "study.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match=r"study\.sqlite is not a usable Optuna storage"):
        tune(tmp_path, world, "lightgcn", settings=TINY, trials=1, seeds=0)
