"""The wheel alone: built, installed into an empty environment without extras, walked through from another folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpaa

PROJECT = Path(__file__).parents[1]
NOT_NEEDED = {"altair", "vl-convert-python", "optuna", "implicit", "playwright", "pytest", "hypothesis", "mypy", "ruff"}
UNREACHABLE = ("Could not find a version", "Temporary failure", "ConnectionError", "NewConnectionError", "No matching")


def call(*words: object, cwd: Path) -> str:
    """Run a command that must succeed.  Returns what it printed on stdout."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    said = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    return said.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, PROJECT, cwd=folder)
    (file,) = folder.iterdir()
    return file


@pytest.mark.slow
def test_what_the_wheel_holds(wheel: Path) -> None:
    assert wheel.name == f"dpaa-{dpaa.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert {"dpaa/py.typed", "dpaa/report/assets/page.css", "dpaa/report/assets/page.js"} <= set(names)
    templates = PROJECT.joinpath("src", "dpaa", "report", "templates").iterdir()
    assert {f"dpaa/report/templates/{file.name}" for file in templates} <= set(names)
    assert "dpaa/exporting/assets/load.sql.txt" in names
    assert all(name.startswith(("dpaa/", f"dpaa-{dpaa.__version__}.dist-info/")) for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.fixture
def binaries(wheel: Path, tmp_path: Path) -> Iterator[Path]:
    """The commands of a new environment with the wheel in it; removed in the end, for it takes a gigabyte."""
    environment = tmp_path / "venv"
    call(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    install(environment / "bin" / "python", wheel)
    yield environment / "bin"
    shutil.rmtree(environment)


@pytest.mark.slow
def test_the_walk_with_the_wheel_alone(binaries: Path, tmp_path: Path) -> None:
    listed = json.loads(call(binaries / "python", "-m", "pip", "list", "--format", "json", cwd=tmp_path))
    assert not {package["name"].lower() for package in listed} & NOT_NEEDED
    command = binaries / "dpaa"
    assert call(command, "--version", cwd=tmp_path) == f"dpaa {dpaa.__version__}\n"
    call(command, "data", "demo", "--users", 100, "--items", 80, "--out", "data", cwd=tmp_path)
    call(command, "train", "data", "--set", "epochs=2", "--set", "embedding_size=8", "--out", "run", cwd=tmp_path)
    assert "recall@20" in json.loads(call(command, "evaluate", "run", "--json", cwd=tmp_path))["metrics"]
    call(command, "recommend", "run", "--k", 5, "--out", "recs.csv", cwd=tmp_path)
    assert (tmp_path / "recs.csv").read_text().startswith("user_id,item_id,score,rank,source\n")


def install(python: Path, wheel: Path) -> None:
    """As README says it; skipped where no package index can be reached."""
    quick = ("--disable-pip-version-check", "--no-compile")  # of torch alone there are thousands of modules
    words = ["-m", "pip", "install", *quick, "-c", PROJECT / "constraints.txt", wheel]
    said = subprocess.run([str(word) for word in (python, *words)], capture_output=True, text=True, check=False)
    if said.returncode and any(sign in said.stderr for sign in UNREACHABLE):
        pytest.skip(f"no package index can be reached: {said.stderr.strip().splitlines()[-1]}")
    assert said.returncode == 0, said.stderr
