from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from dpaa.data import scratch

pytest.importorskip("fcntl", reason="folders have no locks here")
HOLDS = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from dpaa.data.scratch import scratch_file
print(scratch_file("-", lambda stream: stream.write(b"x")), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "_folder", cache(scratch._folder.__wrapped__))
    yield tmp_path
    scratch._folder().cleanup()


def _process(place: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(place)], stdin=-1, stdout=-1, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_folders_of_killed_processes_go_and_those_of_living_ones_stay(place: Path) -> None:
    killed, left = _process(place)
    killed.kill()
    killed.communicate()
    living, kept = _process(place)
    try:
        assert kept.exists()
        assert not left.parent.exists()
        own = scratch.scratch_file("-", lambda stream: stream.write(b"y"))
        assert own.read_bytes() == b"y"
        assert kept.exists()
    finally:
        living.communicate("")
    assert not kept.parent.exists()


def test_what_only_has_the_name_is_left_alone(place: Path) -> None:
    secret = place / "secret"
    secret.mkdir()
    (secret / "file").touch()
    (place / f"{scratch.PREFIX}link").symlink_to(secret)
    (place / f"{scratch.PREFIX}file").write_text("mine")
    scratch.scratch_file("-", lambda stream: stream.write(b"y"))
    assert (secret / "file").exists()
    assert (place / f"{scratch.PREFIX}file").read_text() == "mine"
