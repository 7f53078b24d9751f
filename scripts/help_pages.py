"""The help of every command as one page of the site, as a user sees it on a terminal of 80 columns."""

from __future__ import annotations

import os
import subprocess
import sys

COMMANDS = (
    *("", "demo", "data", "data log", "data splits", "data coat", "data yahoo-r3", "data kuairec", "data demo"),
    *("data example", "data severity", "data randomised", "data describe", "audit", "train", "tune"),
    "evaluate",
    *("benchmark", "recommend", "similar", "export", "rerank", "debias", "backtest", "compare", "simulate", "plan"),
    *("trace", "report", "serve", "methods", "reproduce"),
)
ALL = "import sys; from dpaa.cli import app\nfor words in sys.argv[1:]:\n    print(chr(0)); "
ALL += "app([*words.split(), '--help'], standalone_mode=False, prog_name='dpaa')"


def page() -> str:
    """Markdown of all help texts, from one process."""
    environment = os.environ | {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    call = [sys.executable, "-c", ALL, *COMMANDS]
    texts = subprocess.run(call, capture_output=True, text=True, check=True, env=environment).stdout.split("\0")[1:]
    parts = ["# The help of every command\n"]
    for command, text in zip(COMMANDS, texts, strict=True):
        lines = "\n".join(line.rstrip() for line in text.splitlines())
        parts.append(f"\n## `{' '.join(['dpaa', *command.split()])}`\n\n```text\n{lines.strip()}\n```\n")
    return "".join(parts)
