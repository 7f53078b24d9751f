import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from dpaa.cli import main
from dpaa.cli.console import print_records
from dpaa.data.parquet import polars_errors
from dpaa.errors import InputError
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_ends_results_but_no_training(walk: Path, tmp_path: Path) -> None:
    ended = in_shell('exec "$@" 2>/dev/full', "train", walk / "data", *TINY, "--out", tmp_path / "run")
    assert ended.returncode == 0
    assert "run written to" in ended.stdout
    assert (tmp_path / "run" / "manifest.json").exists()
    ended = in_shell('exec "$@" >/dev/full', "-h")
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: cannot continue with the output (No space left on device)")


def _no_memory() -> None:
    raise MemoryError


@pytest.mark.parametrize("wants", [_no_memory, lambda: np.empty(1 << 58), lambda: torch.empty(1 << 50)])
def test_too_little_memory(walk: Path, monkeypatch: pytest.MonkeyPatch, wants: Callable[[], object]) -> None:
    monkeypatch.setattr("dpaa.data.dataset.read_dataset", lambda *_: wants())
    said = run_dpaa("data", "describe", walk / "data")
    assert said.code == 2
    assert said.err.startswith("error: there is not enough memory; use less data")
    assert said.err.count("\n") == 1


def run(monkeypatch: pytest.MonkeyPatch, body: object) -> int:
    """The exit code of a command whose work is `body`."""
    monkeypatch.setattr("dpaa.cli.app", lambda **_: body())  # type: ignore[operator]
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    "fault", [ValueError("no shape"), InputError("not a Parquet file"), pl.exceptions.PanicException("x")]
)
def test_an_interrupt_that_a_library_takes_for_a_fault_is_an_interrupt(
    fault: BaseException, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def body() -> None:
        try:
            interrupt()
        except KeyboardInterrupt:
            raise fault from None

    assert run(monkeypatch, body) == 130
    assert capfd.readouterr().err == "interrupted\n"


def test_without_an_interrupt_faults_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def body() -> None:
        raise ValueError("a fault of our own")

    monkeypatch.setattr("dpaa.cli.app", lambda **_: body())
    with pytest.raises(ValueError, match="of our own"):
        main()


def test_polars_does_not_call_a_file_damaged_because_of_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), polars_errors():
        raise pl.exceptions.PanicException("PyErr { type: <class 'KeyboardInterrupt'>, value: KeyboardInterrupt() }")
