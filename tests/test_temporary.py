from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dpaa.temporary import temporary_folder

pytest.importorskip("fcntl", reason="folders have no locks here")
HOLDS = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from pathlib import Path
from dpaa.temporary import temporary_folder
folder = temporary_folder("dpaa-here-")
Path(folder.name, "file").touch()
print(folder.name, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


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
        assert (kept / "file").exists()
        assert not left.exists()
        with temporary_folder("dpaa-here-") as own:
            assert Path(own).is_dir()
        assert (kept / "file").exists()
    finally:
        living.communicate("")
    assert not kept.exists()


def test_other_kinds_are_left_alone(place: Path) -> None:
    (place / "dpaa-there-x").mkdir()
    with temporary_folder("dpaa-here-"):
        assert (place / "dpaa-there-x").exists()


def test_what_only_has_the_name_is_left_alone(place: Path) -> None:
    secret = place / "secret"
    secret.mkdir()
    (secret / "file").touch()
    (place / "dpaa-here-link").symlink_to(secret)
    (place / "dpaa-here-file").write_text("mine")
    own = [place / "dpaa-here-training" / "a.csv", place / "dpaa-here-12345678" / "b.csv"]
    for file in own:
        file.parent.mkdir()
        file.touch()
    with temporary_folder("dpaa-here-"):
        assert (secret / "file").exists()
        assert all(file.exists() for file in own)
        assert (place / "dpaa-here-file").read_text() == "mine"
