"""Claims of workers that share a study, whatever becomes of them."""

from __future__ import annotations

import socket
import sqlite3
import time
from pathlib import Path
from typing import Any, NoReturn

import optuna
import pytest

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.tuning.locks import LOST_AFTER
from dpaa.tuning.space import Range
from dpaa.tuning.study import DEATH_WITH_CALL, MOST_DEATHS, Claim, Study, TrialStore
from dpaa.tuning.tune import tune
from tests.tuning.conftest import TINY


def store(folder: Path, **more: Any) -> TrialStore:
    folder.mkdir(exist_ok=True)
    space = {"x": Range(0, 1)}
    return TrialStore(Study(folder, "s", space, {"x": 0.5}, listed=False, seed=0, prune_after=0, **more))


def test_settings_that_kill_their_process_are_given_up(tmp_path: Path) -> None:
    one = store(tmp_path)  # never at work: to others, a process that is gone
    taken = []
    for _ in range(MOST_DEATHS + 1):
        claim = one.claim(2)
        assert claim
        taken.append(claim.settings)
    assert taken[:MOST_DEATHS] == [{"x": 0.5}] * MOST_DEATHS
    assert taken[-1] != {"x": 0.5}
    assert one.counts() == (1, 0)
    one.close()


def test_settings_are_not_given_up_because_whole_calls_were_killed(tmp_path: Path) -> None:
    most = int(MOST_DEATHS / DEATH_WITH_CALL)
    taken = []
    for number in range(most + 1):
        one = store(tmp_path, call=f"call {number}")  # the one before is gone, with all its workers
        claim = one.claim(2)
        assert claim
        taken.append(claim.settings)
        one.close()
    assert taken[:most] == [{"x": 0.5}] * most
    assert taken[-1] != {"x": 0.5}, "a call of one process that always dies has to come to an end, too"


def test_what_waited_is_not_lost_with_a_worker_that_dies_before_it_has_claimed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first settings were never tried where a kill came between taking them from the queue and the claim."""
    one = store(tmp_path)

    def killed(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(optuna.Trial, "set_user_attr", killed)
        with pytest.raises(KeyboardInterrupt):
            one.claim(2)
    claim = one.claim(2)
    assert claim
    assert claim.settings == {"x": 0.5}
    one.close()


def test_no_more_is_begun_than_is_wanted_and_what_runs_is_not_begun_again(tmp_path: Path) -> None:
    one, other = store(tmp_path), store(tmp_path)
    with one.at_work(), other.at_work():
        first, second = one.claim(2), other.claim(2)
        assert first
        assert second
        assert first.settings != second.settings
        assert one.claim(2) is None
        assert one.counts() == (0, 2)
        first.end("COMPLETE", {"recall@20": 0.5})
        assert other.counts() == (1, 1)
        second.release()
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
        before.end("COMPLETE", {"recall@20": 0.4})
        first = one.claim(3)
        assert first
        read = TrialStore._in_state
        ended: list[tuple[str, ...]] = []

        def in_state(self: TrialStore, *names: str) -> Any:
            found = read(self, *names)
            if "COMPLETE" in names and not ended:
                ended.append(names)
                first.end("COMPLETE", {"recall@20": 0.5})  # just after the other one has looked
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
    monkeypatch.setattr(time, "time", lambda: now + LOST_AFTER + 1)
    again = near.claim(1)
    assert again
    assert again.settings == claim.settings
    assert claim.should_stop(1, 0.5), "it was alive after all: too late"
    claim.end("COMPLETE", {"recall@20": 0.5})
    again.end("COMPLETE", {"recall@20": 0.7})
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


def test_a_spoiled_storage_is_named(world: Dataset, tmp_path: Path) -> None:
    tune(tmp_path, world, "lightgcn", settings=TINY, trials=1, seeds=0)
    with sqlite3.connect(tmp_path / "study.sqlite") as database:
        database.execute("DROP TABLE version_info")
    database.close()
    (tmp_path / "study.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match=r"study\.sqlite is not a usable Optuna storage"):
        tune(tmp_path, world, "lightgcn", settings=TINY, trials=1, seeds=0)


def test_a_storage_of_another_study_is_refused(world: Dataset, tmp_path: Path) -> None:
    for seed in (0, 1):
        tune(tmp_path / str(seed), world, "ease", trials=1, seeds=0, seed=seed)
    (tmp_path / "0" / "study.sqlite").write_bytes((tmp_path / "1" / "study.sqlite").read_bytes())
    before = (tmp_path / "0" / "trials.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"study\.sqlite belongs to another study; restore it"):
        tune(tmp_path / "0", world, "ease", trials=2, seeds=0)
    assert (tmp_path / "0" / "trials.jsonl").read_bytes() == before


@pytest.mark.parametrize("trained", [0, 1])
def test_a_storage_that_takes_nothing_more_is_told_once(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: int
) -> None:
    claim = TrialStore.claim

    def full(self: TrialStore, *_: object) -> NoReturn:
        raise optuna.exceptions.StorageInternalError("disk is full")

    def claim_some(self: TrialStore, wanted: int) -> Claim | None:
        if len(self.trials()) < trained:
            return claim(self, wanted)
        monkeypatch.setattr(TrialStore, "counts", full)  # also for who looks whether anything is to be kept
        return full(self)

    monkeypatch.setattr(TrialStore, "claim", claim_some)
    with pytest.raises(InputError, match="not a usable Optuna storage"):
        tune(tmp_path / "study", world, "ease", trials=2, seeds=0)
    assert (tmp_path / "study").exists() == bool(trained)
