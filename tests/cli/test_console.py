import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from dpaa.cli.console import print_records
from tests.cli.conftest import TINY
from tests.command import run_dpaa

HANGS = 120
"""Seconds after which a command that takes one or two hangs."""


def in_shell(line: str, *words: object) -> subprocess.CompletedProcess[str]:
    """`sh -c LINE`, where `"$@"` is `dpaa WORDS…` and descriptors can be closed."""
    call = ["sh", "-c", line, "sh", sys.executable, "-m", "dpaa", *map(str, words)]
    return subprocess.run(call, capture_output=True, text=True, check=False, timeout=HANGS)


def test_records_become_rows(capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"name": "x", "share": 0.25}, {"name": "y", "share": None}]
    print_records("Shares", {"item": "name", "share": "share:.1%"}, records)
    shown = capsys.readouterr().out.split()
    assert shown[:3] == ["Shares", "item", "share"]
    assert shown[-4:] == ["x", "25.0%", "y", "-"]
    print_records("Nothing", {"item": "name"}, [])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("closed", "words"), [("<&- >&- 2>&-", "data describe data"), (">&- 2>&-", "-h"), ("<&-", "-h")]
)
def test_closed_descriptors_are_no_reason_to_hang(walk: Path, closed: str, words: str) -> None:
    ended = in_shell(f'cd {walk}; exec "$@" {closed}', *words.split())
    assert ended.returncode == 0, ended.stderr
    assert bool(ended.stdout) == (closed == "<&-")


full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")


@full
def test_a_progress_output_that_fails_does_not_end_the_training(walk: Path, tmp_path: Path) -> None:
    ended = in_shell('exec "$@" 2>/dev/full', "train", walk / "data", *TINY, "--out", tmp_path / "run")
    assert ended.returncode == 0
    assert "run written to" in ended.stdout
    assert (tmp_path / "run" / "manifest.json").exists()


@full
def test_results_that_cannot_be_printed_are_a_fault() -> None:
    ended = in_shell('exec "$@" >/dev/full', "-h")
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: cannot continue with the output (No space left on device)")


def _no_memory() -> None:
    raise MemoryError


@pytest.mark.parametrize("wants", [_no_memory, lambda: np.empty(1 << 58), lambda: torch.empty(1 << 50)])
def test_too_little_memory_is_one_sentence(
    walk: Path, monkeypatch: pytest.MonkeyPatch, wants: Callable[[], object]
) -> None:
    monkeypatch.setattr("dpaa.data.dataset.read_dataset", lambda *_: wants())
    said = run_dpaa("data", "describe", walk / "data")
    assert said.code == 2
    assert said.err.startswith("error: there is not enough memory; use less data")
    assert said.err.count("\n") == 1
