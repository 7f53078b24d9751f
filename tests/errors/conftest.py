import contextlib
import shutil
from pathlib import Path

import pytest

from tests.errors.workshop import build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `workshop.build`, made once."""
    folder = tmp_path_factory.mktemp("workshop")
    with contextlib.chdir(folder):
        build(folder)
    return folder


@pytest.fixture
def workshop(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to spoil, the current directory."""
    folder = Path(shutil.copytree(built, tmp_path / "workshop"))
    monkeypatch.chdir(folder)
    return folder
