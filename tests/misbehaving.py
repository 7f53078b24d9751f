"""A command line that does what it is told to do wrong, for the judge of `scripts/breaking` to find."""

# ruff: noqa: T201  # it has a command line's streams

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

CONTENT = "line\n" * 20


def main() -> None:
    try:
        word, *rest = sys.argv[1:]
        ACTIONS[word](*rest)
    except KeyboardInterrupt:
        sys.exit(130)


def refuse() -> None:
    print("note: all is well", file=sys.stderr)
    print("error: x.csv has no rows; add some", file=sys.stderr)
    sys.exit(2)


def leave() -> None:
    Path("left.tmp").write_text("half")
    refuse()


def alter() -> None:
    Path("input.txt").write_text("other")
    refuse()


def two_sentences() -> None:
    print("error: first", file=sys.stderr)
    refuse()


def chatter_after() -> None:
    print("error: first\nand so on", file=sys.stderr)
    sys.exit(2)


def eat() -> None:
    eaten = [bytearray(50_000_000) for _ in range(20)]
    time.sleep(5)
    del eaten


def spin() -> None:
    while True:
        pass


def start_another() -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def write_in_place(name: str) -> None:
    """Half the file is there before the other half, and an old one is gone before both."""
    with Path(name).open("w") as file:
        file.write(CONTENT)
        file.flush()
        time.sleep(0.02)
        file.write(CONTENT)


def write_beside(name: str) -> None:
    """Whole or not at all, but what is beside stays if it is interrupted."""
    beside = Path(f".{name}-{os.getpid()}")
    beside.write_text(CONTENT)
    beside.replace(name)


def write_well(name: str) -> None:
    """Whole or not at all; says so where there is no room, and clears away what a killed call left."""
    beside = Path(f".{name}.new")
    try:
        beside.write_text(CONTENT)
        beside.replace(name)
    except OSError as error:
        beside.unlink(missing_ok=True)
        print(f"error: cannot write {name} ({error.strerror}); make room", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        beside.unlink(missing_ok=True)
        raise


ACTIONS = {
    "refuse": refuse,
    "leave": leave,
    "alter": alter,
    "raise": lambda: 1 / 0,
    "two-sentences": two_sentences,
    "chatter-after": chatter_after,
    "escape": lambda: print("an id: \x1b[31mred"),
    "c1": lambda: print("an id: \x9b31mred"),
    "panic": lambda: print("thread 'main' panicked at src/lib.rs:1", file=sys.stderr),
    "odd-code": lambda: sys.exit(3),
    "die": lambda: os.abort(),
    "eat": eat,
    "wait": lambda: Path("fifo").read_bytes(),
    "spin": spin,
    "start-another": start_another,
    "write-in-place": write_in_place,
    "write-beside": write_beside,
    "write-well": write_well,
}
