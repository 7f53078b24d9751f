"""Workers that share a study, whatever becomes of them; storages, their secrets and their faults."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import optuna
import pytest

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.tuning import study
from dpaa.tuning import tune as tune_module
from dpaa.tuning.processes import KilledWorkerError
from dpaa.tuning.space import Range
from dpaa.tuning.study import RETRIES, SameRatePruner, StudyPlan, TrialStorage
from dpaa.tuning.trial import TuningGoal
from dpaa.tuning.tune import tune
from tests.command import dpaa_ok, run_dpaa
from tests.postgres import Postgres, running
from tests.tuning.conftest import TINY, settings_of

PASSWORD = "s3cret/@ word"
PATIENT = "from dpaa.tuning import study; study.HEARTBEAT, study.GRACE = 1, 4; from dpaa.cli import main; main()"
"""The command, with a heartbeat of which a test can wait for the end."""


def plan(folder: Path, **more: Any) -> StudyPlan:
    folder.mkdir(exist_ok=True)
    about: dict[str, Any] = {"name": "s", "method": "ease", "fixed": {}, "space": {"x": Range(0, 1)}}
    about |= {"first": {"x": 0.5}, "listed": False, "wanted": 2, "seed": 0, "prune_after": 0}
    return StudyPlan(folder, **(about | {"goal": TuningGoal(), "storage": None} | more))


def begin(store: TrialStorage) -> dict[str, Any]:
    """Draw hyperparameters as a worker that is killed then."""
    with store.turn():
        assert store.prepare_draw()
        drawn = store.draw(study._quietly(store.study.ask))
    assert isinstance(drawn, dict)
    return drawn


# ---------------------------------------------------------------------- killed workers


def test_hyperparameters_that_kill_their_worker_are_given_up(tmp_path: Path) -> None:
    with closing(TrialStorage(plan(tmp_path))) as store:
        for _ in range(RETRIES + 1):
            assert begin(store) == {"x": 0.5}
            store.requeue_lost(alone=True)
        assert begin(store) != {"x": 0.5}
        assert [len(found) for found in store.taken()] == [1, 1]
        with store.turn():
            assert not store.prepare_draw(), "no more is begun than is wanted"


def test_a_pool_whose_worker_was_killed_starts_again(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    rounds: list[int] = []

    def killed(work: Callable[..., Any], calls: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[tuple[Any, Any]]:
        """A pool of which a worker is killed after two trials, while it draws another."""
        rounds.append(jobs)
        for call in calls[:2]:
            yield call, work(*call)
        with closing(TrialStorage(calls[0][0])) as store:
            begin(store)
        raise KilledWorkerError

    monkeypatch.setattr(tune_module, "in_pool", killed)
    result = tune(tmp_path / "a", world, "lightgcn", settings=TINY, trials=5, seeds=0, jobs=3, say=said.append)
    whole = tune(tmp_path / "whole", world, "lightgcn", settings=TINY, trials=5, seeds=0)
    assert settings_of(result) == settings_of(whole)
    assert rounds == [3, 3], "the last trial needs no process of its own"
    assert said.count("a worker was killed; what it trained is tried again") == 2

    def at_once(*_: object) -> NoReturn:
        raise KilledWorkerError

    monkeypatch.setattr(tune_module, "in_pool", at_once)
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


def test_killed_with_its_workers_it_loses_only_what_was_in_flight(world: Dataset, tmp_path: Path) -> None:
    world.write(tmp_path / "data")
    folder = tmp_path / "study"
    options = f"--out {folder} --set epochs=40 --set embedding_size=8 --trials 500 --jobs 2 --seeds 0 --prune-after 0"
    words = ["tune", str(tmp_path / "data"), "--method", "lightgcn", *options.split()]
    parent = subprocess.Popen([sys.executable, "-m", "dpaa", *words], stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(read(folder / "trials.jsonl")) >= 3)
        with pytest.raises(InputError, match="study is in use by another process"):
            tune(folder, world, "lightgcn", settings=TINY | {"epochs": 40}, trials=1, prune_after=0)
    finally:
        parent.kill()
        parent.wait()
    done = [trial for trial in map(json.loads, read(folder / "trials.jsonl")) if trial["state"] == "complete"]
    result = tune(
        folder, world, "lightgcn", settings=TINY | {"epochs": 40}, trials=len(done) + 4, prune_after=0, seeds=0
    )
    kept = {trial.number: trial for trial in result.trials}
    assert all(kept[trial["number"]].value == trial["value"] for trial in done)
    assert not [trial for trial in result.trials if trial.state == "running"]
    complete = [json.dumps(trial.settings) for trial in result.trials if trial.state == "complete"]
    assert len(complete) == len(set(complete)) >= len(done) + 4
    lost = [json.dumps(trial.settings) for trial in result.trials if trial.state == "lost" and trial.settings]
    assert set(lost) <= set(complete), "what was lost is trained again"


# ---------------------------------------------------------------------- PostgreSQL


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server, and a user who needs a password."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with running() as server:
        server.psql("-c", f"CREATE ROLE dpaa LOGIN PASSWORD '{PASSWORD}'", "-c", "CREATE DATABASE kept OWNER dpaa")
        rules = server.socket / "data" / "pg_hba.conf"
        rules.write_text("local all dpaa scram-sha-256\n" + rules.read_text())
        server.psql("-c", "SELECT pg_reload_conf()")
        yield server


@pytest.mark.slow
def test_two_workers_on_postgresql_one_killed_every_trial_once(
    server: Postgres, world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write(tmp_path / "data")
    call = [sys.executable, "-c", PATIENT, "tune", str(tmp_path / "data"), "--method", "lightgcn", "--trials", "6"]
    call += ["--set", "epochs=50", "--set", "embedding_size=8", "--seeds", "0", "--prune-after", "0"]
    call += ["--storage", server.url, "--out"]
    workers = [subprocess.Popen([*call, str(tmp_path / name)], stderr=subprocess.DEVNULL) for name in ("a", "b")]
    try:
        until(lambda: all(read(tmp_path / name / "trials.jsonl") for name in ("a", "b")))
    finally:
        os.kill(workers[0].pid, signal.SIGKILL)
        workers[0].wait()
    assert workers[1].wait() == 0
    trials = [json.loads(line) for line in read(tmp_path / "b" / "trials.jsonl")]
    complete = [json.dumps(trial["settings"]) for trial in trials if trial["state"] == "complete"]
    assert len(complete) == len(set(complete)) == 6
    lost = [trial["settings"] for trial in trials if trial["state"] == "lost"]
    assert {json.dumps(settings) for settings in lost if settings} <= set(complete), "retried by the other one"
    assert {trial["state"] for trial in trials} <= {"complete", "lost", "repeated"}


@pytest.mark.slow
def test_a_password_is_nowhere(server: Postgres, tmp_path: Path) -> None:
    dpaa_ok("data", "demo", "--users", 60, "--items", 40, "--out", tmp_path / "data")
    url = f"postgresql://dpaa:{quote(PASSWORD, safe='')}@/kept?host={server.socket}"
    call = ("tune", tmp_path / "data", "--method", "item-knn", "--trials", 2, "--seeds", 1)
    right = dpaa_ok(*call, "--storage", url, "--out", tmp_path / "study")
    wrong = run_dpaa(*call, "--storage", url.replace("s3cret", "s3creT"), "--out", tmp_path / "wrong")
    assert wrong.code == 2
    assert "password authentication failed" in wrong.err
    assert not (tmp_path / "wrong").exists()
    files = [file.read_bytes() for file in (tmp_path / "study").rglob("*") if file.is_file()]
    shown = right.out + right.err + wrong.out + wrong.err
    for secret in (PASSWORD, quote(PASSWORD, safe=""), "s3cret", "s3creT"):
        assert secret not in shown
        assert not any(secret.encode() in content for content in files)


# ---------------------------------------------------------------------- storages


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://bob:s3cret@127.0.0.1:1/db", r"127\.0\.0\.1:1/db \(.*refused.*start the server"),
        ("postgres://127.0.0.1:1/db?password=s3cret", r"password=\*\*\* \(.*refused"),
        ("mysql://bob:s3cret@h/db", r"cannot open the storage mysql://bob:\*\*\*@h/db \(it is neither"),
        ("sqlite://", "neither a file of SQLite nor PostgreSQL"),
        ("not an url s3cret:", r"cannot open the storage that was given \(it cannot be read as a URL"),
        ("postgresql://bob:s3cret@x@h/db", "write @ as %40"),
    ],
)
def test_a_storage_that_cannot_be_opened(url: str, sentence: str, tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(InputError, match=sentence) as refused:
        TrialStorage(plan(tmp_path, storage=url))
    assert "s3cret" not in str(refused.value)


def test_the_driver_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'dpaa\[sql\]'"):
        TrialStorage(plan(tmp_path, storage="postgresql://me:s3cret@127.0.0.1:1/db"))


def test_a_shared_storage_is_joined_from_another_folder(world: Dataset, tmp_path: Path, trained: list[str]) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}?timeout=77"
    one = tune(tmp_path / "a", world, "lightgcn", settings=TINY, trials=2, seeds=0, storage=url)
    two = tune(tmp_path / "b", world, "lightgcn", settings=TINY, trials=3, seeds=0, storage=url)
    assert two.trials[:2] == one.trials
    assert len(trained) == 3
    assert not (tmp_path / "a/study.sqlite").exists()
    about = (tmp_path / "a/study.json").read_text()
    assert "timeout=***" in about
    other = tune(tmp_path / "c", world, "lightgcn", settings=TINY, trials=1, seeds=0, storage=url, seed=1)
    assert len(other.trials) == 1, "another study in the same storage"


def test_a_damaged_or_foreign_storage_is_named(world: Dataset, tmp_path: Path) -> None:
    for seed in (0, 1):
        tune(tmp_path / str(seed), world, "ease", trials=1, seeds=0, seed=seed)
    file, before = tmp_path / "0" / "study.sqlite", (tmp_path / "0" / "trials.jsonl").read_bytes()
    with sqlite3.connect(file) as database:
        database.execute("UPDATE trial_user_attributes SET value_json = '7' WHERE key = 'outcome'")
    database.close()
    with pytest.raises(InputError, match=r"study\.sqlite is not a usable Optuna storage"):
        tune(tmp_path / "0", world, "ease", trials=2, seeds=0)
    file.write_bytes((tmp_path / "1" / "study.sqlite").read_bytes())
    with pytest.raises(InputError, match=r"study\.sqlite belongs to another study; restore it"):
        tune(tmp_path / "0", world, "ease", trials=2, seeds=0)
    assert (tmp_path / "0" / "trials.jsonl").read_bytes() == before
    file.unlink()
    file.symlink_to(tmp_path / "1" / "study.sqlite")
    with pytest.raises(InputError, match="is a link to somewhere else"):
        tune(tmp_path / "0", world, "ease", trials=2, seeds=0)


@pytest.mark.parametrize("done", [0, 1])
def test_a_storage_that_takes_nothing_more_is_reported_once(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    prepare_draw = TrialStorage.prepare_draw

    def prepare_some(self: TrialStorage) -> bool:
        if len(self.trials()) < done:
            return prepare_draw(self)
        raise optuna.exceptions.StorageInternalError("disk is full")

    monkeypatch.setattr(TrialStorage, "prepare_draw", prepare_some)
    with pytest.raises(InputError, match="not a usable Optuna storage"):
        tune(tmp_path / "study", world, "ease", trials=2, seeds=0)
    assert (tmp_path / "study").exists() == bool(done)


# ---------------------------------------------------------------------- pruning


def trial(rate: float | None, values: Sequence[float], state: str = "COMPLETE") -> optuna.trial.FrozenTrial:
    params = {} if rate is None else {"learning_rate": rate}
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState[state],
        params=params,
        distributions=dict.fromkeys(params, optuna.distributions.FloatDistribution(1e-5, 1.0)),
        intermediate_values=dict(enumerate(values, start=1)),
        value=max(values) if state == "COMPLETE" else None,
    )


def test_a_trial_is_only_compared_with_those_of_about_its_learning_rate() -> None:
    def pruned(others: Sequence[optuna.trial.FrozenTrial], rate: float | None, *values: float) -> bool:
        compared = optuna.create_study(direction="maximize")
        compared.add_trials(others)
        return SameRatePruner(2, n_warmup_steps=2).prune(compared, trial(rate, values, "RUNNING"))

    same = [trial(1e-2, [0.1, 0.3]), trial(1e-2, [0.2, 0.4]), trial(1e-2, [0.3, 0.5])]
    assert pruned(same, 1e-2, 0.1, 0.2)
    assert not pruned(same, 1e-2, 0.1, 0.4)
    assert not pruned(same, 1e-2, 0.45, 0.1), "its best so far counts"
    assert not pruned(same, 1e-2, 0.0), "not before its time"
    assert not pruned(same, 1e-4, 0.0, 0.01), "fast learners do not prune slow ones"
    assert pruned([*same, trial(1.5e-4, [0.1, 0.2]), trial(1e-4, [0.1, 0.2])], 1e-4, 0.0, 0.01)
    assert pruned([trial(None, [0.1, 0.3]), trial(None, [0.2, 0.4])], None, 0.1, 0.1), "the rate is not searched"
