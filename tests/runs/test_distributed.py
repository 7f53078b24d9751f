"""One training in several processes: the same bits whatever their number.  Threads play them, but in the last tests."""

import os
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

from dpaa import Dataset, InputError, fit
from dpaa.data.sources import world
from dpaa.methods.pretrained import needed_layers
from dpaa.methods.tables import Rows
from dpaa.runs import Callbacks, fit_into, fit_method, make_method
from dpaa.training.trainer import Interrupted
from tests.command import dpaa_ok
from tests.threads import Table, in_threads

SHARED = ["lightgcn", "ips", "pda", "macr", "ssm", "sl-at-k", "ddc", "bc-loss", "directau", "dice", "cause", "ultragcn"]
"""Methods of every kind of loss and batch; DPAA is below, for its β needs two trained epochs."""
TINY: dict[str, Any] = {"embedding_size": 64, "layers": 1, "epochs": 2, "batch_size": 32, "threads": 1}


@pytest.fixture(autouse=True)
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 locks a cached property for all instances, so threads that wait for each other in one never end."""
    for kept in vars(Rows).values():
        if isinstance(kept, cached_property) and hasattr(kept, "lock"):
            monkeypatch.setattr(kept, "lock", nullcontext())


@pytest.fixture(scope="module")
def data() -> Dataset:
    simulated = world.simulate(users=80, items=50, seed=1)
    return replace(simulated, randomised=simulated.valid)


def trained(data: Dataset, name: str, count: int, **settings: Any) -> tuple[dict[str, torch.Tensor], Table]:
    state: dict[str, torch.Tensor] = {}
    pretrained = fit(data, "lightgcn", **TINY | settings) if name in ("dpaa", "ddc") else None

    def train(rank: int) -> None:
        method = make_method(data, name, TINY | settings)
        fit_method(method, data, dial=False, pretrained=pretrained if needed_layers(method) is not None else None)
        if not rank:
            state.update(method.state())

    return state, in_threads(count, train)


@pytest.mark.parametrize(
    ("name", "count", "chosen"),
    [
        *((name, 4, {}) for name in SHARED),
        ("dpaa", 4, {"epochs": 4}),
        ("lightgcn", 2, {}),
        ("dpaa", 2, {"embedding_size": 50}),
        ("macr", 3, {"embedding_size": 112}),
        ("ppac", 3, {"embedding_size": 48}),
        ("sl-at-k", 4, {"quantile_epochs": 1}),  # quantiles are over all columns
    ],
)
def test_the_number_of_processes_changes_no_bit(name: str, count: int, chosen: dict[str, int], data: Dataset) -> None:
    shared, alone = (trained(data, name, processes, **chosen)[0] for processes in (count, 1))
    assert shared.keys() == alone.keys()
    assert all(torch.equal(shared[part], alone[part]) for part in shared)


def test_a_step_sends_a_number_per_triple_one_for_l2_and_two_wishes(data: Dataset) -> None:
    _, table = trained(data, "lightgcn", 4, epochs=1)
    steps = -(-len(data.train) // 32)
    assert len(table.sent) <= 3 * steps + 2
    assert max(table.sent) == 4 * 32


@pytest.mark.parametrize(
    ("name", "size", "sentence"),
    [
        ("simgcl", 64, "simgcl computes with whole tables and cannot be trained in several processes"),
        ("lightgcn", 16, "embedding_size 16 can be shared by at most 1 processes"),
        (
            "dpaa-as-printed",
            64,
            "dpaa-as-printed starts from a pre-trained model; train one first and name it: --pretrained",
        ),
    ],
)
def test_what_cannot_be_shared_is_refused(name: str, size: int, sentence: str, data: Dataset) -> None:
    with pytest.raises(InputError, match=sentence):
        trained(data, name, 2, embedding_size=size)


@pytest.mark.parametrize(("name", "first"), [("lightgcn", 3), ("macr", 4), ("dpaa", 5)])
def test_resume_with_another_number_of_processes(name: str, first: int, data: Dataset, tmp_path: Path) -> None:
    """Stopped in two processes, then in one, finished in four: the bytes of one that was never stopped."""
    plain = fit(data, "lightgcn", **TINY)

    def attempt(count: int, folder: Path, steps: int) -> None:
        left, resume = iter(range(steps)), folder.exists()
        how = {"pretrained": plain} if name == "dpaa" else {}

        def train(rank: int) -> None:
            callbacks = Callbacks(stop_requested=lambda: not rank and next(left, None) is None)
            method = make_method(data, name, TINY | {"epochs": 4})
            fit_into(folder, data, method, resume=resume, callbacks=callbacks, **how)

        in_threads(count, train)

    for count, steps in ((2, first), (1, 3)):
        with pytest.raises(Interrupted):
            attempt(count, tmp_path / "stopped", steps)
    attempt(4, tmp_path / "stopped", 10**6)
    attempt(1, tmp_path / "whole", 10**6)
    read = [(tmp_path / run / "model.safetensors").read_bytes() for run in ("stopped", "whole")]
    assert read[0] == read[1]


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")
def test_torchrun_that_is_stopped_resumes_to_the_same_bytes(data: Dataset, tmp_path: Path) -> None:
    """Real processes, started by torchrun: all are interrupted, then one is killed; a single one finishes the run."""
    place, run = tmp_path / "data", tmp_path / "stopped"
    replace(data, randomised=None).write(place)
    wanted = [word for name in ("embedding_size=64", "layers=1", "batch_size=64") for word in ("--set", name)]
    wanted += ["--set", "epochs=60"]
    script = tmp_path / "often.py"
    script.write_text(
        "from dpaa.training import _state; _state.CHECKPOINT_SECONDS = 0; import dpaa.cli; dpaa.cli.main()"
    )
    call = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    call += [str(script), "train", str(place), *wanted, "--out", str(run)]
    state, reached = run / "checkpoint/state.safetensors", 0
    for end in (signal.SIGINT, signal.SIGKILL):
        words = ["--resume"] if reached else []
        started = subprocess.Popen([*call, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            deadline = time.monotonic() + 90
            while not (state.exists() and state.stat().st_mtime_ns > reached) and time.monotonic() < deadline:
                time.sleep(0.02)
            workers = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
            assert len(workers) == 2
            for worker in workers if end == signal.SIGINT else workers[1:]:
                os.kill(int(worker), end)
            _, said = started.communicate(timeout=90)
        finally:
            started.kill()
        assert started.returncode
        assert said.count("stopped; resume with the same command and --resume") == (end == signal.SIGINT)
        assert not (run / "manifest.json").exists()
        reached = state.stat().st_mtime_ns
    dpaa_ok("train", place, *wanted, "--out", run, "--resume")
    dpaa_ok("train", place, *wanted, "--out", tmp_path / "whole")
    read = [(one / "model.safetensors").read_bytes() for one in (run, tmp_path / "whole")]
    assert read[0] == read[1]
