"""The command line as a user meets it: words in, exit code and two streams out."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

import typer.main

from dpaa.cli import main

_command = cache(typer.main.get_command)
"""All commands with their options, read from annotations once: a process of a user's does so once, too."""


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


def run_dpaa(*words: object) -> Said:
    """`dpaa WORDS…` in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    argv, commands = ["dpaa", *map(str, words)], patch.object(typer.main, "get_command", _command)
    with patch.object(sys, "argv", argv), commands, redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code
    return Said(code if isinstance(code, int) else int(code is not None), out.getvalue(), err.getvalue())


def dpaa_ok(*words: object) -> Said:
    """The same, where all must go well."""
    said = run_dpaa(*words)
    assert said.code == 0, said.err
    return said
