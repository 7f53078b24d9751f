"""`dpaa --help` is quick and has examples; a wrong call is one sentence."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer

from dpaa.cli import app, data_app
from dpaa.methods import METHODS
from tests.command import dpaa_ok, run_dpaa

NAMES = [one.name or one.callback.__name__ for one in app.registered_commands if one.callback]
NAMES += [f"data {one.name or one.callback.__name__}" for one in data_app.registered_commands if one.callback]
CALL = """
import sys
from dpaa.cli import main
for words in ([], ["train"], ["data", "log"]):
    sys.argv = ["dpaa", *words, "--help"]
    try:
        main()
    except SystemExit:
        pass
    print("loaded:", *sorted({"torch", "polars", "scipy", "safetensors"} & set(sys.modules)))
"""


def test_help_loads_neither_torch_nor_polars() -> None:
    plain = os.environ | {"TERM": "dumb"}  # typer colours its help wherever GITHUB_ACTIONS is set
    said = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=True, env=plain).stdout
    assert said.count("Usage: dpaa") == 3
    assert [line for line in said.splitlines() if line.startswith("loaded:")] == 3 * ["loaded:"]


MOST_OPTIONS = 220
"""Of all commands, arguments and `--help` not counted: who adds one finds one that can leave."""


def commands_of(group: Any) -> Iterator[Any]:
    """The group and all below it."""
    yield group
    for command in getattr(group, "commands", {}).values():
        yield from commands_of(command)


def test_options_are_few() -> None:
    parameters = [one for command in commands_of(typer.main.get_command(app)) for one in command.params]
    own = (one for one in parameters if one.name not in ("install_completion", "show_completion"))  # not typer's
    options = [one for one in own if one.param_type_name == "option"]
    assert 150 < len(options) <= MOST_OPTIONS


def test_every_page_of_help_is_complete_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing longer, no word broken, every option with what it takes, and an example."""
    for variable, value in {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(variable, value)
    for name in ("", *NAMES):
        page = dpaa_ok(*name.split(), "--help").out
        assert max(map(len, page.splitlines())) <= 80, name
        assert not re.search(r"<\w+( range)?>|\[x[<>]|\[default: \(", page), name
        assert not re.search(r"\w…\s*│?$", page, re.MULTILINE), name
        assert f"dpaa {name}".strip() in page.partition("Example")[2], name
        command: Any = typer.main.get_command(app)
        for word in name.split():
            command = command.commands[word]
        for one in command.get_params(command.make_context(name, [], resilient_parsing=True)) if name else ():
            if not one.hidden:
                assert one.rich_help_panel is not None or one.param_type_name == "argument" or name == "serve", one
                shown = [one.metavar] if one.param_type_name == "argument" else [max(one.opts, key=len), one.metavar]
                assert all(f" {word} " in page for word in shown if word), (name, shown)
    first = dpaa_ok("--help").out.partition("Start here")[2].partition("╰")[0]
    assert re.findall(r"│ (\w+) ", first) == ["audit", "debias", "evaluate", "recommend", "report"]


def test_the_page_of_helps_has_every_command() -> None:
    pages = pytest.importorskip("scripts.help_pages", reason="scripts are not part of this copy")
    assert sorted(["", "data", *NAMES]) == sorted(pages.COMMANDS)


def test_methods() -> None:
    shown = dpaa_ok("methods").out
    assert all(name in shown for name in METHODS)
    assert list(json.loads(dpaa_ok("methods", "--json").out)) == list(METHODS)
    assert "embedding_size = 64" in dpaa_ok("methods", "lightgcn").out
    assert "--rerank calibrated-popularity,NAME=VALUE" in dpaa_ok("methods", "calibrated_popularity").out
    one = json.loads(dpaa_ok("methods", "most_popular", "--json").out)
    assert one["most-popular"]["settings"]["seed"]["default"] == 0


@pytest.mark.parametrize("value", ["0", "[bold]"])
def test_a_wrong_value_is_named(value: str) -> None:
    said = run_dpaa("recommend", "run", "--k", value)
    assert said.err.startswith("error: invalid value for '--k': it should be")
    assert f", got {value!r}; see dpaa recommend --help" in said.err


@pytest.mark.parametrize("command", [[], ["data"]])
def test_without_a_command_the_help_is_shown(command: list[str]) -> None:
    said = run_dpaa(*command)
    assert said.code == 2
    assert "Usage" in said.out + said.err
    assert "error:" not in said.err


def test_from_ready_made_splits(walk: Path, tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        pl.read_parquet(walk / "data" / f"{split}.parquet").write_csv(tmp_path / f"{split}.csv")
    files = [word for split in ("train", "valid", "test") for word in (f"--{split}", tmp_path / f"{split}.csv")]
    dpaa_ok("data", "splits", *files, "--out", tmp_path / "data")
    found = [json.loads(dpaa_ok("data", "describe", folder / "data", "--json").out) for folder in (walk, tmp_path)]
    assert found[0]["fingerprint"] == found[1]["fingerprint"]
    dpaa_ok("evaluate", walk / "run", "--dataset", tmp_path / "data")
