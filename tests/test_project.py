"""The files around the package agree with one another: workflows, Makefile, metadata, containers, release notes."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from scripts.release_notes import notes

from tests.command import run_dpaa

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install 'dpaa[docs]'")

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHANGELOG = """# Changelog

## [Unreleased]
- later

## [0.2.0] - 2027-01-31

### Added
- a thing

## [0.1.0]
- no date

[0.2.0]: https://example.org
"""


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def steps(file: Path) -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(file.read_text())["jobs"].values() for step in job["steps"]]


def test_tests_run_on_every_python_and_system_that_is_promised() -> None:
    promised = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if "Python :: 3." in one}
    matrix = yaml.safe_load(text(".github/workflows/tests.yml"))["jobs"]["tests"]["strategy"]["matrix"]
    assert set(matrix["python"]) == promised == {"3.11", "3.12", "3.13"}
    assert {one.partition("-")[0] for one in matrix["os"]} == {"ubuntu", "macos"}
    assert PROJECT["requires-python"] == f">={min(promised)}"


def test_workflows_call_what_is_there() -> None:
    called = [step["run"] for file in WORKFLOWS for step in steps(file) if "run" in step]
    targets = re.search(r"^\.PHONY: (.+)$", text("Makefile"), re.MULTILINE)
    made = {target for run in called for target in re.findall(r"\bmake (\S+)", run)}
    assert made == {"test", "docs", "package"}
    assert made <= set(targets[1].split())
    files = [name for run in called for name in re.findall(r"\bscripts/\w+\.py", run)]
    assert files
    assert all((ROOT / name).is_file() for name in files)


def test_workflows_may_no_more_than_they_need() -> None:
    """Read only, but for the job that publishes; nothing that a stranger can name is put into a shell line."""
    for file in WORKFLOWS:
        assert yaml.safe_load(file.read_text())["permissions"] == {"contents": "read"}, file.name
        assert not [step["run"] for step in steps(file) if "${{" in step.get("run", "")], file.name
        for step in steps(file):
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, file.name


@pytest.mark.parametrize("name", ["cli", "serve"])
def test_containers_copy_what_is_there_and_install_extras_that_are(name: str) -> None:
    lines = text(f"docker/{name}.Dockerfile")
    sources = [one for line in re.findall(r"^COPY (?!--)(.+) \S+$", lines, re.MULTILINE) for one in line.split()]
    let_in = {line[1:] for line in text(".dockerignore").splitlines() if line.startswith("!")}
    assert set(sources) <= let_in
    assert all((ROOT / one).exists() for one in let_in)
    (extras,) = re.findall(r"whl\)\[([\w,]+)\]", lines)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert "\nUSER dpaa\n" in lines


def test_release_notes_are_those_of_the_version() -> None:
    assert notes(CHANGELOG, "0.2.0") == "### Added\n- a thing"
    for version, told in {"0.3.0": "has no heading", "0.1.0": "has no date"}.items():
        with pytest.raises(ValueError, match=told):
            notes(CHANGELOG, version)


@pytest.mark.slow
@pytest.mark.parametrize(("checks", "code"), [("log_items>3\n\nlog_gini>0.9\n", 0), ("log_items>3\nlog_items<4\n", 1)])
def test_the_action_audits(checks: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell makes the call; the command gets its words, and the step ends with its exit code."""
    action = yaml.safe_load(text("action.yml"))
    *others, audit = action["runs"]["steps"]
    assert not [step["run"] for step in (*others, audit) if "${{" in step.get("run", "")], "inputs are no shell text"
    names = re.findall(r"inputs\.([\w-]+)", yaml.safe_dump(action["runs"]))
    assert set(names) == set(action["inputs"])
    monkeypatch.chdir(tmp_path)
    Path("clicks.csv").write_text("user_id,item_id\n" + "".join(f"u{n},i{n % 3}\n" for n in range(30)))
    Path("dpaa").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@"\nexit {code}\n', encoding="utf-8")
    Path("dpaa").chmod(0o755)
    inputs = dict.fromkeys(audit["env"], "") | {"LOG": "clicks.csv", "JSON": "words.txt", "FAIL_IF": checks}
    environment = os.environ | inputs | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.run(["bash", "-e", "-c", audit["run"]], env=environment, check=False).returncode == code
    said = run_dpaa(*Path("words.txt").read_text().splitlines())
    assert said.code == code, said.err
    assert len(json.loads(said.out)["checks"]) == 2
