"""One training in several processes: the same bits whatever their number.  Threads play them, but in the last test."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch

from dpaa.data.dataset import Dataset
from dpaa.data.sources import world
from dpaa.errors import InputError
from dpaa.methods.tables import Rows
from dpaa.runs.distributed import check_followers, follow
from dpaa.runs.fit import fit_into, fit_method, make_method
from dpaa.runs.progress import Callbacks
from dpaa.training.trainer import Interrupted
from tests.command import dpaa_ok, run_dpaa
from tests.threads import Table, ThreadGroup, in_threads

SHARED = (
    "lightgcn",
    "ips",
    "pda",
    "macr",
    "dpaa",
    "ssm",
    "bc-loss",
    "directau",
    "dice",
    "cause",
    "ultragcn",
)
"""Methods of every kind of loss and batch."""
TINY: dict[str, Any] = {"embedding_size": 64, "layers": 1, "epochs": 2, "batch_size": 32, "threads": 1}


@pytest.fixture(autouse=True)
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 locks a cached property for all instances, so threads that wait for each other in one never end."""
    for kept in vars(Rows).values():
        if isinstance(kept, cached_property) and hasattr(kept, "lock"):
            monkeypatch.setattr(kept, "lock", nullcontext())


@pytest.fixture(scope="module")
def data() -> Dataset:
    found = world.simulate(users=80, items=50, seed=1)
    return replace(found, randomised=found.valid)


def trained(data: Dataset, name: str, count: int, **settings: Any) -> tuple[dict[str, torch.Tensor], Table]:
    found: dict[str, torch.Tensor] = {}

    def lead(group: ThreadGroup) -> None:
        method = make_method(data, name, TINY | settings)
        fit_method(method, data, Callbacks(together=group), dial=False)
        found.update(method.state())

    table = in_threads(count, lead, lambda group: follow(group, data))  # type: ignore[arg-type]
    return found, table


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", SHARED)
def test_the_number_of_processes_changes_no_bit(name: str, data: Dataset) -> None:
    alone, _ = trained(data, name, 1)
    assert same(trained(data, name, 4)[0], alone)


@pytest.mark.parametrize(
    ("name", "count", "size"), [("lightgcn", 2, 64), ("dpaa", 2, 50), ("macr", 3, 112), ("ppac", 3, 48)]
)
def test_nor_do_other_numbers_of_processes_and_columns(name: str, count: int, size: int, data: Dataset) -> None:
    alone, _ = trained(data, name, 1, embedding_size=size)
    assert same(trained(data, name, count, embedding_size=size)[0], alone)


def test_a_step_sends_a_number_per_triple_and_one_for_l2(data: Dataset) -> None:
    _, table = trained(data, "lightgcn", 4, epochs=1)
    steps = -(-len(data.train) // 32) + 3  # with two that tell how long an epoch takes, and a look at the end
    assert len(table.sent) <= 2 * steps
    assert max(table.sent) == 4 * 32


@pytest.mark.parametrize("name", ["simgcl", "ngcf"])
def test_who_works_on_whole_tables_is_refused_in_a_sentence(name: str, data: Dataset) -> None:
    with pytest.raises(
        InputError, match=f"{name} works on whole tables, whose columns cannot lie in several processes"
    ):
        trained(data, name, 2)


def test_too_many_processes_are_refused_before_anything_is_trained(data: Dataset) -> None:
    with pytest.raises(InputError, match="embedding_size 16 can be shared by at most 1 processes"):
        trained(data, "lightgcn", 2, embedding_size=16)


@pytest.mark.parametrize(
    ("name", "first"), [("lightgcn", 3), ("macr", 4), ("dpaa", 15)]
)  # dpaa's is in the second part
def test_resume_with_another_number_of_processes(name: str, first: int, data: Dataset, tmp_path: Path) -> None:
    """Stopped in two processes, then in one, finished in four: the bytes of one that was never stopped."""
    settings = TINY | {"epochs": 4}

    def attempt(count: int, folder: Path, steps: int) -> None:
        left = iter(range(steps))

        def lead(group: ThreadGroup) -> None:
            callbacks = Callbacks(together=group, stop_requested=lambda: next(left, None) is None)
            fit_into(folder, data, make_method(data, name, settings), resume=folder.exists(), callbacks=callbacks)

        in_threads(count, lead, lambda group: follow(group, data))  # type: ignore[arg-type]

    for count, steps in ((2, first), (1, 3)):
        with pytest.raises(Interrupted):
            attempt(count, tmp_path / "stopped", steps)
    attempt(4, tmp_path / "stopped", 10**6)
    attempt(1, tmp_path / "whole", 10**6)
    read = [(tmp_path / run / "model.safetensors").read_bytes() for run in ("stopped", "whole")]
    assert read[0] == read[1]


def test_a_process_that_cannot_read_the_dataset_is_named(data: Dataset) -> None:
    with pytest.raises(InputError, match="process 1: there is no folder there"):
        in_threads(
            2,
            lambda group: check_followers(group, data),
            lambda group: follow(group, InputError("there is no folder there")),
        )  # type: ignore[arg-type]
    other = world.simulate(users=30, items=20, seed=3)
    with pytest.raises(InputError, match="process 1 has read another dataset of the same name"):
        in_threads(2, lambda group: check_followers(group, data), lambda group: follow(group, other))  # type: ignore[arg-type]


def test_processes_need_a_number_of_their_own(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "0")
    said = run_dpaa("train", tmp_path, "--out", tmp_path / "run", "--processes", 2)
    assert said.code == 2
    assert "leave --processes out" in said.err


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")
def test_a_lost_process_ends_all_and_resume_gives_the_same_bytes(data: Dataset, tmp_path: Path) -> None:
    """Real processes, started by the command line; one of them is killed, and one process finishes the run."""
    place = tmp_path / "data"
    replace(data, randomised=None).write(place)
    wanted = [word for name in ("embedding_size=64", "layers=1", "batch_size=128") for word in ("--set", name)]
    wanted += ["--set", "epochs=200", "--set", "patience=200", "--checkpoint-seconds", "0.2"]
    call = [sys.executable, "-m", "dpaa", "train", str(place), *wanted, "--out", str(tmp_path / "lost")]
    started = subprocess.Popen(
        [*call, "--processes", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "lost/checkpoint/state.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    assert len(workers) == 2
    os.kill(int(workers[1]), signal.SIGKILL)
    _, said = started.communicate(timeout=120)
    assert started.returncode == 2
    assert len(re.findall(r"^error: a process that trained with this one was lost", said, re.MULTILINE)) == 1
    assert "Traceback" not in said
    dpaa_ok("train", place, *wanted, "--out", tmp_path / "lost", "--resume")
    dpaa_ok("train", place, *wanted, "--out", tmp_path / "whole")
    read = [(tmp_path / run / "model.safetensors").read_bytes() for run in ("lost", "whole")]
    assert read[0] == read[1]
