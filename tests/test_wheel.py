"""The wheel alone: built, installed into a new environment, used without extras from another folder."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import dpaa

PROJECT = Path(__file__).parents[1]
NOT_NEEDED = {"altair", "vl_convert", "optuna", "fastapi", "faiss", "implicit", "pandas", "playwright", "hypothesis"}
"""Modules of extras and of development."""
WALK = """
import sys
from pathlib import Path

import dpaa
from dpaa.cli import main

assert Path(dpaa.__file__).is_relative_to(Path.cwd().resolve())
for line in (
    "data demo --size 100x80 --out data",
    "train data --set epochs=2 --set embedding_size=8 --out run",
    "recommend run --k 5 --out recs.csv",
    "evaluate run --json",
):
    sys.argv = ["dpaa", *line.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, line
"""


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
def binaries(wheel: Path, tmp_path: Path) -> Path:
    """The commands of a new environment with the wheel in it.

    Its requirements are those of the running environment, extras and tools of development hidden: installing torch
    anew would take a minute and a gigabyte.
    """
    environment = tmp_path / "venv"
    call(sys.executable, "-m", "venv", "--without-pip", environment, cwd=tmp_path)
    python = environment / "bin" / "python"
    install = ("install", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-compile")
    call(sys.executable, "-m", "pip", "--python", python, *install, wheel, cwd=tmp_path)
    site = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    packages = [path for path in sys.path if path.endswith("site-packages")]
    (site / "requirements.pth").write_text("\n".join([*packages, "import hidden"]))
    (site / "hidden.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({sorted(NOT_NEEDED)}))\n")
    return environment / "bin"


@pytest.mark.slow
def test_the_walk_with_the_wheel_alone(binaries: Path, tmp_path: Path) -> None:
    assert call(binaries / "dpaa", "--version", cwd=tmp_path) == f"dpaa {dpaa.__version__}\n"
    printed = call(binaries / "python", "-c", WALK, cwd=tmp_path)
    assert "recall@20" in json.loads(printed[printed.index("{") :])["metrics"]
    assert (tmp_path / "recs.csv").read_text().startswith("user_id,item_id,score,rank,source\n")
