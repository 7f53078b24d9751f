"""`dpaa --help` is quick: neither torch nor polars is imported for it; the site shows all of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dpaa.cli import app, data_app
from dpaa.cli.usage import unwrapped

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
    said = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=True).stdout
    assert said.count("Usage: dpaa") == 3
    assert [line for line in said.splitlines() if line.startswith("loaded:")] == 3 * ["loaded:"]


def test_the_page_of_helps_has_every_command() -> None:
    pages = pytest.importorskip("scripts.help_pages", reason="scripts are not part of this copy")
    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    names += [f"data {one.name or (one.callback and one.callback.__name__)}" for one in data_app.registered_commands]
    assert sorted(["", "data", *names]) == sorted(pages.COMMANDS)
    page = pages.page()
    assert all(f"## `{' '.join(['dpaa', *name.split()])}`" in page for name in pages.COMMANDS)


def test_paragraphs_have_no_line_ends_and_examples_keep_theirs() -> None:
    assert unwrapped("One\n    two.\n\n    Three\n    four.\n\n    \b\n    Example:\n      five\n    ") == (
        "One two.\n\nThree four.\n\n\b\nExample:\n  five"
    )
