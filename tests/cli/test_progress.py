"""Training as it looks in a terminal of sixty columns."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from tests.cli.conftest import TINY

COLUMNS = 60
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def in_terminal(columns: int, *words: str) -> str:
    """What a command writes to a terminal of so many columns."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    call = [sys.executable, "-c", "from dpaa.cli import main; main()", *words]
    said = b""
    with subprocess.Popen(
        call, stdout=theirs, stderr=theirs, stdin=theirs, env=environment | {"TERM": "xterm", "PYTHONUTF8": "1"}
    ) as process:
        os.close(theirs)
        while True:
            try:
                part = os.read(mine, 65_536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
    os.close(mine)
    assert process.returncode == 0, said
    return said.decode()


def test_the_bar_stays_in_its_line(walk: Path, tmp_path: Path) -> None:
    call = ("train", walk / "data", "--method", "dpaa", "--out", tmp_path / "run", *TINY, "--set", "epochs=60")
    said = in_terminal(COLUMNS, *map(str, call), "--set", "patience=60", "--set", "batch_size=16")
    drawn = [CONTROL.sub("", line).strip("\r") for line in re.split(r"[\n\r]", said) if "/60" in line]
    assert drawn
    assert all(len(line) <= COLUMNS for line in drawn)
    assert any("lightgcn" in line for line in drawn)
    assert any("dpaa" in line for line in drawn)
