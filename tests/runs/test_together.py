"""One training in several processes: the same bits whatever their number.  Threads play them, but in the last test."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from dpaa.data.dataset import Dataset
from dpaa.data.sources import world
from dpaa.errors import InputError
from dpaa.graph.columns import Columns
from dpaa.graph.users import Users
from dpaa.methods import METHODS
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch
from dpaa.runs.callbacks import Callbacks
from dpaa.runs.fit import fit_into, fit_method, make_method
from dpaa.runs.together import check_followers, follow
from dpaa.training.trainer import Interrupted
from tests.command import dpaa_ok, run_dpaa
from tests.threads import Table, ThreadGroup, in_threads

TRAINED = [name for name in METHODS if issubclass(METHODS[name], GraphMethod)]
SHARED = [name for name in TRAINED if vars(METHODS[name]).get("uses_whole_table") is not True]
TINY: dict[str, Any] = {"embedding_size": 64, "layers": 1, "epochs": 2, "batch_size": 32, "threads": 1}


@pytest.fixture(scope="module")
def data() -> Dataset:
    found = world.simulate(users=80, items=50, seed=1)
    return replace(found, randomised=found.valid)


def trained(
    data: Dataset, name: str, count: int, user_parts: int = 1, **settings: Any
) -> tuple[dict[str, torch.Tensor], Table]:
    found: dict[str, torch.Tensor] = {}

    def lead(group: ThreadGroup) -> None:
        method = make_method(data, name, TINY | settings)
        fit_method(method, data, Callbacks(together=group), dial=False)
        found.update(method.state())

    table = in_threads(count, lead, lambda group: follow(group, data), user_parts)  # type: ignore[arg-type]
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


USERS_SHARED = [name for name in SHARED if vars(METHODS[name]).get("shares_users")]


@pytest.mark.parametrize("name", USERS_SHARED)
def test_users_over_processes_change_the_order_of_sums_and_nothing_else(name: str, data: Dataset) -> None:
    """Two parts of the users, and two of the columns besides: float32's last digits, made larger by Adam's steps."""
    alone, _ = trained(data, name, 1)
    for count in (2, 4):
        shared, _ = trained(data, name, count, user_parts=2)
        for part, tensor in alone.items():
            torch.testing.assert_close(shared[part], tensor, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("name", [name for name in SHARED if name not in (*USERS_SHARED, "ppd")])  # ppd has no steps
def test_who_looks_at_all_users_at_once_is_refused_in_a_sentence(name: str, data: Dataset) -> None:
    with pytest.raises(InputError, match=f"{name} looks at .* --user-parts; leave it out"):
        trained(data, name, 2, user_parts=2)


def test_the_gradient_of_the_first_step_is_that_of_one_process(data: Dataset) -> None:
    settings = TINY | {"layers": 3, "batch_size": 64}
    whole = make_method(data, "lightgcn", settings)
    assert isinstance(whole, GraphMethod)
    whole.start()
    batch = next(iter(whole.batches(1)))
    wanted, gaps = _gradient(whole, batch), {}

    def work(group: ThreadGroup) -> None:
        users = Users.balanced(np.bincount(data.train.user, minlength=data.n_users), group.user_peers)
        method = make_method(data, "lightgcn", settings, users)
        assert isinstance(method, GraphMethod)
        method.columns = Columns(64, group.column_peers)
        method.start()
        assert torch.equal(method.tables.ego.rows(), method.cut(whole.ego.rows()))
        found = _gradient(method, batch)
        gaps[group.rank] = (found - method.cut(wanted)).abs().max().item()

    in_threads(6, work, work, user_parts=3)
    assert len(gaps) == 6
    assert max(gaps.values()) < 1e-6 * wanted.abs().max().item()


def _gradient(method: GraphMethod, batch: Batch) -> torch.Tensor:
    rows = method.forward(batch)
    method.loss(batch, rows).backward()  # type: ignore[no-untyped-call]
    return torch.cat([method.tile_gradient(rows, tile) for tile in range(len(method.tables.ego.tiles))], dim=1)


@pytest.mark.parametrize("name", ["lightgcn", "ips", "sam-reg"])
def test_a_step_sends_a_number_per_triple_and_one_for_l2(name: str, data: Dataset) -> None:
    _, table = trained(data, name, 4, epochs=1)
    steps = -(-len(data.train) // 32) + 3  # with two that tell how long an epoch takes, and a look at the end
    assert len(table.sent) <= 2 * steps
    assert max(table.sent) == 4 * 32


@pytest.mark.parametrize("name", sorted(set(TRAINED) - set(SHARED)))
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

    def attempt(count: int, folder: Path, steps: int, user_parts: int = 1) -> None:
        left = iter(range(steps))

        def lead(group: ThreadGroup) -> None:
            callbacks = Callbacks(together=group, stop_requested=lambda: next(left, None) is None)
            fit_into(folder, data, make_method(data, name, settings), resume=folder.exists(), callbacks=callbacks)

        in_threads(count, lead, lambda group: follow(group, data), user_parts)  # type: ignore[arg-type]

    for count, steps in ((2, first), (1, 3)):
        with pytest.raises(Interrupted):
            attempt(count, tmp_path / "stopped", steps)
    attempt(4, tmp_path / "stopped", 10**6)
    attempt(1, tmp_path / "whole", 10**6)
    read = [(tmp_path / run / "model.safetensors").read_bytes() for run in ("stopped", "whole")]
    assert read[0] == read[1]
    parts = tmp_path / "elsewhere" / "parts"  # where no pre-trained model lies ready
    with pytest.raises(Interrupted):
        attempt(4, parts, first, user_parts=2)
    with pytest.raises(Interrupted):
        attempt(1, parts, 3)
    attempt(2, parts, 10**6, user_parts=2)
    wanted, found = (load_file(run / "model.safetensors") for run in (tmp_path / "whole", parts))
    for part, tensor in wanted.items():
        torch.testing.assert_close(found[part], tensor, rtol=1e-4, atol=2e-6)


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


def test_memory_is_counted_per_process(data: Dataset) -> None:
    method = make_method(data, "lightgcn", TINY | {"embedding_size": 4096})
    assert isinstance(method, GraphMethod)
    alone, leading, other = method.memory_bytes(), method.memory_bytes(4), method.memory_bytes(4, leads=False)
    tables = 4 * method.graph.n_nodes * 4096
    assert alone - other == 5 * tables - 4 * tables // 4
    assert leading - other == 4 * tables  # what a checkpoint collects


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
