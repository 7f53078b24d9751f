"""Kill a reproduction: what is finished stays, workers end with their parent, and the same call resumes."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
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


@pytest.fixture(autouse=True)
def slower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUDGETS, "smoke", BUDGETS["smoke"].model_copy(update={"hyperparameters": SLOWER}))


def call(files: Path, folder: Path, jobs: int) -> list[str]:
    words = ["reproduce", "severity", *SMOKE, "--kuairec", files / "kuairec", "--method", "lightgcn", "--severity", 0,
             "--seeds", 5, "--jobs", jobs, *folders(folder)]  # fmt: skip
    return [str(word) for word in words]


@contextlib.contextmanager
def begun(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-c", MAIN, *words], stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(done: object, what: str) -> None:
    assert callable(done)
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, f"no {what} within {PATIENCE:g} s"
        time.sleep(0.05)


def children(parent: int) -> list[int]:
    """Processes whose parent it is, by what the system says."""
    table = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [int(pid) for pid, owner in (line.split() for line in table.splitlines()) if int(owner) == parent]


def alive(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.strip().startswith("Z")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_killed_and_interrupted_it_loses_only_what_was_in_flight(files: Path, tmp_path: Path) -> None:
    results = tmp_path / "results" / "severity"

    def finished() -> dict[str, float]:
        return {file.name: file.stat().st_mtime for file in results.glob("lightgcn-*.json")} if results.exists() else {}

    with begun(call(files, tmp_path, 2), tmp_path / "log") as process:
        until(finished, "result")
        workers = children(process.pid)
        assert len(workers) >= 2
        process.kill()
        process.wait()
        until(lambda: not any(alive(pid) for pid in workers), "end of the workers")
    kept = finished()
    assert all(json.loads((results / name).read_text())["metrics"] for name in kept)  # whole files only
    assert len(kept) < 5
    with begun(call(files, tmp_path, 2), tmp_path / "log") as process:
        until(lambda: len(finished()) > len(kept) or process.poll() is not None, "further result")
        workers = children(process.pid)
        process.send_signal(signal.SIGINT)
        code = process.wait(PATIENCE)
        assert not any(alive(pid) for pid in workers)
    output = (tmp_path / "log").read_text()
    assert code == 130, output
    assert "Traceback" not in output
    assert output.splitlines()[-1].startswith("stopped; the same call resumes")
    again = finished()
    assert {name: again[name] for name in kept} == kept  # nothing was run twice
    messages = dpaa_ok(*call(files, tmp_path, 1)).err
    assert f"{5 - len(again)} trained" in messages
    assert len(finished()) == 5
    straight = tmp_path / "straight"
    dpaa_ok(*call(files, straight, 1))
    for name in finished():
        one, other = (
            json.loads((folder / "results" / "severity" / name).read_text()) for folder in (tmp_path, straight)
        )
        assert one["metrics"] == other["metrics"]  # as if never interrupted
    assert not list((tmp_path / "work").glob("*/lightgcn-*"))


def test_sigterm_ends_as_cleanly(files: Path, tmp_path: Path) -> None:
    with begun(call(files, tmp_path, 2), tmp_path / "log") as process:
        until(lambda: len(children(process.pid)) >= 2, "worker")
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE)
    output = (tmp_path / "log").read_text()
    assert code == 143, output
    assert "stopped; the same call resumes" in output
    assert "leaked" not in output
    assert "Traceback" not in output
