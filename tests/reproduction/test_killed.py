"""Kill a reproduction: what is finished stays, workers end with their parent, and the same call resumes."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import dpaa_ok
from tests.reproduction.conftest import SMOKE, folders
from tests.waiting import wait_until

PATIENCE = 300.0
"""Seconds; the machine may be busy."""
SEEDS = 3
MAIN = """
import os, signal
from dpaa.cli import main
from dpaa.reproduction import _plan
pool = _plan.in_pool
def killed(*calls):
    for (spec, *_), _ in pool(*calls):
        if spec.method == "lightgcn":  # its first result is there
            os.kill(os.getpid(), signal.SIGKILL)
_plan.in_pool = killed
main()
"""
"""It kills itself, so that it is on its way however busy the machine is."""


def children(parent: int) -> list[int]:
    """Running processes whose parent it is, by what the system says."""
    table = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in table.splitlines()]
    return [int(pid) for pid, owner, state in rows if int(owner) == parent and not state.startswith("Z")]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_killed_it_loses_only_what_was_in_flight(files: Path, tmp_path: Path) -> None:
    def call(folder: Path, jobs: int) -> list[str]:
        words = ["reproduce", "severity", *SMOKE, "--data", f"kuairec={files / 'kuairec'}", "--method", "lightgcn",
                 "--severity", 0, "--seeds", SEEDS, "--jobs", jobs, *folders(folder)]  # fmt: skip
        return [str(word) for word in words]

    def finished(folder: Path = tmp_path) -> dict[str, dict[str, object]]:
        results = (folder / "results" / "severity").glob("*.json")
        return {file.name: json.loads(file.read_text())["metrics"] for file in results}  # whole files only

    process = subprocess.Popen([sys.executable, "-c", MAIN, *call(tmp_path, 2)], stderr=subprocess.DEVNULL)
    wait_until(lambda: len(children(process.pid)) >= 2 or process.poll() is not None)
    workers = children(process.pid)
    assert process.wait(PATIENCE) == -signal.SIGKILL
    wait_until(lambda: not set(workers) & set(children(1)))
    left = 2 * SEEDS - len(finished())  # a training of most-popular, too, may have been in flight
    assert 0 < left < 2 * SEEDS
    assert f"\n{left} trained" in dpaa_ok(*call(tmp_path, 1)).err
    dpaa_ok(*call(tmp_path / "straight", 1))
    assert finished() == finished(tmp_path / "straight"), "as if never interrupted"
    assert not list((tmp_path / ".dpaa-work").glob("*/lightgcn-*"))
