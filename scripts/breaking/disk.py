"""A disk that is full at the N-th write, and signals before the N-th change of a file: the C library, interposed."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

WATCH, FAIL_ONCE, FAIL_FROM, SIGNAL = range(4)
"""Only count; let one write fail; let it and all after it fail; send a signal before one change.  As in disk.c."""
HEADER = struct.Struct("<6q")
LONGEST = 4096


def compiled(folder: Path) -> Path | None:
    """The library, or None where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    library = folder.resolve() / "disk.so"
    source = Path(__file__).with_name("disk.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@dataclass(frozen=True)
class Disk:
    """The folder whose changes are counted, and the file through which the library is told."""

    folder: Path
    control: Path

    def tell(self, mode: int, at: int = 0, number: int = 0, group: bool = False) -> Path:
        """What to do in the next call.  Returns the file to hand it."""
        place = str(self.folder).encode()
        self.control.write_bytes(HEADER.pack(mode, at, number, group, 0, 0) + place.ljust(LONGEST, b"\0"))
        return self.control

    def counted(self) -> tuple[int, int]:
        """Writes, and changes of any kind, of the last call."""
        found = HEADER.unpack(self.control.read_bytes()[: HEADER.size])
        return found[4], found[5]
