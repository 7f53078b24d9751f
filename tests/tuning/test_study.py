"""Workers that share a study, whatever becomes of them; storages, their secrets and their faults."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import optuna
import pytest

from dpaa import Dataset, InputError
from dpaa.tuning._study import _SameRatePruner
from dpaa.tuning.tune import tune
from tests.command import dpaa_ok, run_dpaa
from tests.postgres import Postgres, running
from tests.tuning.conftest import TINY
from tests.waiting import wait_until

PASSWORD = "s3cret/@ word"
PATIENT = "from dpaa.tuning import _study as s; s.HEARTBEAT, s.GRACE = 1, 4; from dpaa.cli import main; main()"
"""The command, with a heartbeat of which a test can wait for the end."""


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_killed_with_its_workers_it_loses_only_what_was_in_flight(world: Dataset, tmp_path: Path) -> None:
    world.write(tmp_path / "data")
    folder, settings = tmp_path / "study", TINY | {"epochs": 20}
    options = f"--out {folder} --set epochs=20 --set embedding_size=8 --trials 500,prune_after=0 --jobs 2 --seeds 0"
    words = ["tune", str(tmp_path / "data"), "--method", "lightgcn", *options.split()]
    parent = subprocess.Popen([sys.executable, "-m", "dpaa", *words], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(read(folder / "trials.jsonl")) >= 3)
        with pytest.raises(InputError, match="study is in use by another process"):
            tune(folder, world, "lightgcn", settings=settings, trials=1, prune_after=0)
    finally:
        parent.kill()
        parent.wait()
    done = [trial for trial in read(folder / "trials.jsonl") if trial["state"] == "complete"]
    result = tune(folder, world, "lightgcn", settings=settings, trials=len(done) + 2, prune_after=0, seeds=0)
    kept = {trial.number: trial for trial in result.trials}
    assert all(kept[trial["number"]].value == trial["value"] for trial in done)
    assert not [trial for trial in result.trials if trial.state == "running"]
    complete = [json.dumps(trial.settings) for trial in result.trials if trial.state == "complete"]
    assert len(complete) == len(set(complete)) >= len(done) + 2
    lost = [json.dumps(trial.settings) for trial in result.trials if trial.state == "lost" and trial.settings]
    assert set(lost) <= set(complete), "what was lost is trained again"


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
def test_two_workers_on_postgresql_one_killed(server: Postgres, world: Dataset, tmp_path: Path) -> None:
    world.write(tmp_path / "data")
    how = "--method lightgcn --trials 4,prune_after=0 --set epochs=50 --set embedding_size=8 --seeds 0"
    call = [sys.executable, "-c", PATIENT, "tune", str(tmp_path / "data"), *how.split()]
    call += ["--storage", server.url, "--out"]
    workers = [subprocess.Popen([*call, str(tmp_path / name)], stderr=subprocess.DEVNULL) for name in ("a", "b")]
    try:
        wait_until(lambda: read(tmp_path / "a" / "trials.jsonl") or workers[0].poll() is not None)
        assert workers[0].poll() is None, "the worker ended before it was killed"
    finally:
        os.kill(workers[0].pid, signal.SIGKILL)
        workers[0].wait()
    assert workers[1].wait() == 0
    trials = read(tmp_path / "b" / "trials.jsonl")
    complete = [json.dumps(trial["settings"]) for trial in trials if trial["state"] == "complete"]
    assert len(complete) == len(set(complete)) == 4
    lost = [trial["settings"] for trial in trials if trial["state"] == "lost"]
    assert {json.dumps(settings) for settings in lost if settings} <= set(complete), "retried by the other one"
    assert {trial["state"] for trial in trials} <= {"complete", "lost"}


@pytest.mark.slow
def test_a_password_is_nowhere(server: Postgres, tmp_path: Path) -> None:
    dpaa_ok("data", "demo", "--size", "60x40", "--out", tmp_path / "data")
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


def test_a_shared_storage_is_joined_from_another_folder(world: Dataset, tmp_path: Path, trained: list[str]) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}?timeout=77"
    one = tune(tmp_path / "a", world, "lightgcn", settings=TINY, trials=2, seeds=0, storage=url)
    two = tune(tmp_path / "b", world, "lightgcn", settings=TINY, trials=3, seeds=0, storage=url)
    assert two.trials[:2] == one.trials
    assert len(trained) == 3
    assert not (tmp_path / "a/study.sqlite").exists()
    assert "timeout=***" in (tmp_path / "a/study.json").read_text()
    other = tune(tmp_path / "c", world, "lightgcn", settings=TINY, trials=1, seeds=0, storage=url, seed=1)
    assert len(other.trials) == 1, "another study in the same storage"


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
        return _SameRatePruner(2, n_warmup_steps=2).prune(compared, trial(rate, values, "RUNNING"))

    same = [trial(1e-2, [0.1, 0.3]), trial(1e-2, [0.2, 0.4]), trial(1e-2, [0.3, 0.5])]
    assert pruned(same, 1e-2, 0.1, 0.2)
    assert not pruned(same, 1e-2, 0.1, 0.4)
    assert not pruned(same, 1e-2, 0.45, 0.1), "its best so far counts"
    assert not pruned(same, 1e-2, 0.0), "not before its time"
    assert not pruned(same, 1e-4, 0.0, 0.01), "fast learners do not prune slow ones"
    assert pruned([*same, trial(1.5e-4, [0.1, 0.2]), trial(1e-4, [0.1, 0.2])], 1e-4, 0.0, 0.01)
    assert pruned([trial(None, [0.1, 0.3]), trial(None, [0.2, 0.4])], None, 0.1, 0.1), "the rate is not searched"
