"""What is written beside the vectors: how to ask them, as text and as code that runs."""

from __future__ import annotations

from importlib.resources import files
from string import Template


def asset(name: str) -> Template:
    """A file of this folder; `$name` stands for what is filled in."""
    return Template(files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8"))
