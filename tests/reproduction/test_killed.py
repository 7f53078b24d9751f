"""Kill a reproduction: what is finished stays, workers end with their parent, and the same call resumes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpaa.reproduction import BUDGETS
from tests.command import dpaa_ok
from tests.reproduction.conftest import SMOKE, folders

PATIENCE = 300.0
"""Seconds; the machine may be busy."""
SLOWER = {"embedding_size": 8, "layers": 2, "epochs": 25, "patience": 1000}
"""Trainings that can be killed on their way."""
MAIN = (
    "from dpaa.cli import main; from dpaa.reproduction import BUDGETS; "
    f"BUDGETS['smoke'] = BUDGETS['smoke'].model_copy(update={{'hyperparameters': {SLOWER}}}); main()"
)


def until(done: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, f"no {what} within {PATIENCE:g} s"
        time.sleep(0.05)


def children(parent: int) -> list[int]:
    """Running processes whose parent it is, by what the system says."""
    table = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in table.splitlines()]
    return [int(pid) for pid, owner, state in rows if int(owner) == parent and not state.startswith("Z")]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_killed_it_loses_only_what_was_in_flight(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUDGETS, "smoke", BUDGETS["smoke"].model_copy(update={"hyperparameters": SLOWER}))

    def call(folder: Path, jobs: int) -> list[str]:
        words = ["reproduce", "severity", *SMOKE, "--kuairec", files / "kuairec", "--method", "lightgcn",
                 "--severity", 0, "--seeds", 3, "--jobs", jobs, *folders(folder)]  # fmt: skip
        return [str(word) for word in words]

    def finished(folder: Path = tmp_path) -> dict[str, dict[str, object]]:
        results = (folder / "results" / "severity").glob("lightgcn-*.json")
        return {file.name: json.loads(file.read_text())["metrics"] for file in results}  # whole files only

    process = subprocess.Popen([sys.executable, "-c", MAIN, *call(tmp_path, 2)], stderr=subprocess.DEVNULL)
    until(lambda: finished() or process.poll() is not None, "result")
    workers = children(process.pid)
    process.kill()
    process.wait(PATIENCE)
    until(lambda: not set(workers) & set(children(1)), "end of the workers")
    left = 3 - len(finished())
    assert left > 0, "it was killed on its way"
    assert f"\n{left} trained" in dpaa_ok(*call(tmp_path, 1)).err
    dpaa_ok(*call(tmp_path / "straight", 1))
    assert finished() == finished(tmp_path / "straight"), "as if never interrupted"
    assert not list((tmp_path / "work").glob("*/lightgcn-*"))
