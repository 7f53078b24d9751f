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
    *("data severity", "data describe", "audit", "train", "tune", "evaluate", "recommend"),
    *("compare", "trace", "report", "methods", "reproduce"),
)

if __name__ == "__main__":
    parts = ["# The help of every command\n\nMade by `python scripts/help_pages.py`.\n"]
    for command in COMMANDS:
        call = [sys.executable, "-c", "from dpaa.cli import main; main()", *command.split(), "--help"]
        environment = os.environ | {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
        said = subprocess.run(call, capture_output=True, text=True, check=True, env=environment).stdout
        lines = "\n".join(line.rstrip() for line in said.replace("Usage: -c", "Usage: dpaa").splitlines())
        parts.append(f"\n## `dpaa {command}`\n\n```text\n{lines.strip()}\n```\n".replace("`dpaa `", "`dpaa`"))
    Path("docs/help.md").write_text("".join(parts), encoding="utf-8")
