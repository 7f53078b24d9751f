"""Help texts, and the message of a wrong call in one sentence instead of the box that typer draws."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import typer
from pydantic import ValidationError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for a wrong call (unknown option, missing argument …); its own name for it is private."""


def unwrapped(text: str) -> str:
    """A help text without line ends inside its paragraphs, which typer would keep; examples (after `\\b`) stay."""
    parts = cleandoc(text).split("\n\n")
    return "\n\n".join(part if part.startswith("\b") else " ".join(part.split()) for part in parts)


def in_one_sentence(error: Any) -> str:
    """What is wrong with the call, the value that was found, and where to look."""
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message.replace(". Did you", "; did you").replace(": Input should", ": it should")
    message = message[:1].lower() + message[1:]
    if isinstance(error.__cause__, ValidationError):  # typer's message has the rule but not the value
        message += f", got {error.__cause__.errors()[0]['input']!r}"
    command = error.ctx.command_path if error.ctx else "dpaa"
    if command == "dpaa train" and message.startswith("no such option"):
        message = message.partition(" (Possible")[0] + "; hyperparameters are given as --set NAME=VALUE"
    return f"{message}{'' if message.endswith('?') else ';'} see {command} --help"
