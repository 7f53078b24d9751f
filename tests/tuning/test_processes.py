"""Workers that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from dpaa.data.dataset import Dataset, read_dataset
from dpaa.errors import InputError
from dpaa.tuning import processes, worker
from dpaa.tuning import tune as tune_module
from dpaa.tuning.processes import in_pool, in_several
from dpaa.tuning.study import TrialStore
from dpaa.tuning.tune import tune
from tests.tuning.conftest import TINY, settings_of
from tests.tuning.deaf import deaf_to_interrupts, say_whether_deaf


def test_killed_workers_are_followed_by_others(world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    said: list[str] = []

    def killed(stage: str, order: worker.WorkOrder, place: Path, jobs: int, say: Callable[[str], None]) -> int:
        """Workers of which one is killed each time after some trials."""
        rounds.append(jobs)
        with closing(TrialStore(order.study)) as here:
            worker.Worker(replace(order, wanted=2 * len(rounds)), read_dataset(place)).search(here)
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


def test_workers_are_deaf_to_interrupts_from_birth() -> None:
    """A ctrl-C that reaches them while they import would print a traceback each."""
    assert [found for _, found in in_pool(deaf_to_interrupts, [(1,), (2,)], 2)] == [True, True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_the_very_first_worker_is_deaf_from_birth_too() -> None:
    """Starting Python's own tracker of resources, which comes with the first process, lifts the mask."""
    resource_tracker._resource_tracker._stop()
    said: list[str] = []
    assert in_several(say_whether_deaf, (), 2, said.append) == 0
    assert said == ["True", "True"]


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_start_waits_for_its_end_whichever_thread_takes_it(which: signal.Signals) -> None:
    class Told(Exception):  # noqa: N818
        pass

    def tell(_number: int, _frame: object) -> None:
        raise Told

    over, reached = threading.Event(), []

    def start(thread: int) -> None:
        with processes._interrupts_wait():
            signal.pthread_kill(thread, which)
            time.sleep(0.05)
            reached.append("the end of the start")

    other = threading.Thread(target=over.wait)  # not masked, as a library's threads are
    before = signal.signal(which, tell)
    other.start()
    try:
        assert other.ident is not None
        with pytest.raises(Told):
            start(other.ident)
        assert reached == ["the end of the start"]
        assert signal.getsignal(which) is tell
    finally:
        over.set()
        other.join()
        signal.signal(which, before)
