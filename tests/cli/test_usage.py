"""A wrong call in one sentence."""

from __future__ import annotations

import pytest
import typer

from dpaa.cli.usage import UsageError, asks_for_help, in_one_sentence
from tests.command import run_dpaa


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "train data --epochs 3",
            "no such option: --epochs; settings are given as --set NAME=VALUE; see dpaa train --help",
        ),
        ("methods --epochs 3", "no such option: --epochs; see dpaa methods --help"),
        ("trian", "no such command 'trian'; did you mean 'train', 'trace'? see dpaa --help"),
        ("data dem", "no such command 'dem'; did you mean 'demo'? see dpaa data --help"),
        ("recommend", "missing argument 'run'; see dpaa recommend --help"),
    ],
)
def test_what_is_wrong_and_where_to_look(words: str, sentence: str) -> None:
    said = run_dpaa(*words.split())
    assert (said.code, said.out, said.err) == (2, "", f"error: {sentence}\n")


@pytest.mark.parametrize("value", ["0", "many", "[bold]"])
def test_the_value_that_was_found_is_named(value: str) -> None:
    said = run_dpaa("recommend", "run", "--k", value)
    assert said.err.startswith("error: invalid value for '--k': it should be")
    assert f", got {value!r}; see dpaa recommend --help" in said.err


def test_several_lines_and_full_stops_become_one_sentence() -> None:
    error = typer.BadParameter("Not a number.\n  Did you mean 7?")
    assert isinstance(error, UsageError)
    assert not asks_for_help(error)
    assert in_one_sentence(error) == "invalid value: Not a number; did you mean 7? see dpaa --help"
