import shutil
from pathlib import Path

import pytest

from tests.command import dpaa_ok

TINY = ("--set", "embedding_size=8", "--set", "layers=2", "--set", "epochs=3", "--set", "threads=1")
"""Settings of a training that takes a moment."""


@pytest.fixture(scope="session")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset `data` and a run `run`, made by the commands."""
    folder = tmp_path_factory.mktemp("walk")
    dpaa_ok("data", "demo", "--size", "120x80", "--out", folder / "data")
    dpaa_ok("train", folder / "data", *TINY, "--seed", 5, "--out", folder / "run")
    return folder


@pytest.fixture
def run(walk: Path, tmp_path: Path) -> Path:
    """A copy of the run, for commands that write into it."""
    return Path(shutil.copytree(walk / "run", tmp_path / "run"))
