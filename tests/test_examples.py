"""What examples/ shows does what it says."""

import contextlib
import runpy
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command import dpaa_ok, run_dpaa

chores = pytest.importorskip("examples.chores", reason="examples are not part of this copy")
EXAMPLES = Path(chores.__file__).parent
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_trainings")]


def test_every_step_of_the_workflow_can_be_done(tmp_path: Path) -> None:
    workflow: dict[str, Any] = yaml.safe_load((EXAMPLES / "nightly.yml").read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    lines = [step["run"] for step in workflow["jobs"]["nightly"]["steps"] if "run" in step]
    commands = [line for line in lines if line.startswith("dpaa ")]
    assert len(commands) == 5
    chores.make_log(tmp_path)
    (tmp_path / "ratings.csv").rename(tmp_path / "yesterday.csv")
    (tmp_path / "tuesday.csv").rename(tmp_path / "today.csv")
    with contextlib.chdir(tmp_path):
        for line in commands:
            command, _, target = line.partition(" > ")
            said = dpaa_ok(*shlex.split(command)[1:])
            if target:
                Path(target).write_text(said.out, encoding="utf-8")
        workflow_keeps = workflow["jobs"]["nightly"]["steps"][-1]["with"]["path"].split()
        assert all(list(Path().glob(name)) for name in workflow_keeps)


def test_the_search_with_scikit_learn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["sklearn_search.py"])
    runpy.run_path(str(EXAMPLES / "sklearn_search.py"), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 5
    assert said[-1].startswith("best: {")


def test_shards_as_the_examples_of_ray_and_spark_make_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_this_process(call: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert call[:3] == [sys.executable, "-m", "dpaa"]
        said = run_dpaa(*call[3:])
        return subprocess.CompletedProcess(call, said.code, said.out, said.err)

    monkeypatch.setattr(subprocess, "run", in_this_process)
    dpaa_ok("data", "demo", "--size", "60x40", "--out", tmp_path / "data")
    dpaa_ok("train", tmp_path / "data", "--method", "most-popular", "--out", tmp_path / "run")
    how = {"run": str(tmp_path / "run"), "folder": str(tmp_path / "lists"), "shards": 2}
    by_ray = runpy.run_path(str(EXAMPLES / "recommend_with_ray.py"))["make_shard"]
    assert "recommendations written to" in by_ray({"item": 1}, **how)["said"]
    by_spark = runpy.run_path(str(EXAMPLES / "recommend_with_spark.py"))["make_shard"]
    assert "recommendations written to" in by_spark(2, **how)
    assert sorted(file.name for file in (tmp_path / "lists").glob("part-*")) == [
        "part-00001-of-00002.parquet",
        "part-00002-of-00002.parquet",
    ]


def test_there_are_thirty_and_each_is_short() -> None:
    assert len(chores.CHORES) == 30
    assert set(Counter(chore.part for chore in chores.CHORES)) == set(range(1, 10))
    for chore in chores.CHORES:
        assert bool(chore.command) != bool(chore.python)
        assert len(chore.python.splitlines()) <= 3
        assert "\n" not in chore.command
        assert chore.command.startswith("dpaa ") or chore.python


def all_done(folder: Path, coat: Path | None) -> int:
    todo = chores.prepare(folder, coat)
    with contextlib.chdir(folder):
        for chore in todo:
            wrong = chores.done(chore)
            assert wrong is None, f"{chore.wish}: {wrong}"
    return len(todo)


def test_on_a_log_like_movielens(tmp_path: Path) -> None:
    assert all_done(tmp_path, None) == 30


def test_on_coat(real_data: Path, tmp_path: Path) -> None:
    assert all_done(tmp_path, real_data / "coat") >= 15
