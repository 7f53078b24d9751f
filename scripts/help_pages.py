"""Write docs/help.md: the help of every command, as a user sees it on a terminal of 100 columns.

python scripts/help_pages.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMANDS = (
    *("", "demo", "data", "data log", "data splits", "data coat", "data yahoo-r3", "data kuairec", "data demo"),
    *(
        "data example",
        "data sql",
        "data severity",
        "data randomised",
        "data describe",
        "audit",
        "train",
        "tune",
        "evaluate",
    ),
    *("benchmark", "recommend", "similar", "export", "rerank", "debias", "compare", "trace", "report", "serve"),
    *("methods", "reproduce"),
)
PAGE = Path("docs/help.md")
ALL = "import sys; from dpaa.cli import app\nfor words in sys.argv[1:]:\n    print(chr(0)); "
ALL += "app([*words.split(), '--help'], standalone_mode=False, prog_name='dpaa')"


def page() -> str:
    """All helps, from one process."""
    environment = os.environ | {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    call = [sys.executable, "-c", ALL, *COMMANDS]
    said = subprocess.run(call, capture_output=True, text=True, check=True, env=environment).stdout.split("\0")[1:]
    parts = ["# The help of every command\n\nMade by `python scripts/help_pages.py`.\n"]
    for command, text in zip(COMMANDS, said, strict=True):
        lines = "\n".join(line.rstrip() for line in text.splitlines())
        parts.append(f"\n## `{' '.join(['dpaa', *command.split()])}`\n\n```text\n{lines.strip()}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
