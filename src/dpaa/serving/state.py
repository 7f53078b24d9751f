"""The folder that supervisor, workers and preparers share: settings, snapshots, which of them is served, counters.

It is ours alone (mode 700).  The name of the served snapshot is replaced in one rename; workers look for another one
several times a second, and the folder before the last is removed: whoever maps its files keeps them.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpaa._io import SMALL_JSON, read_text
from dpaa.errors import InputError
from dpaa.serving.settings import ServeSettings

SETTINGS, CURRENT, LOCK = "settings.json", "current", "lock"


class ReloadingError(Exception):
    """Another reload is on its way."""


@dataclass(frozen=True)
class State:
    """One service's folder."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, settings: ServeSettings) -> State:
        """With what the service was told."""
        file = os.open(folder / SETTINGS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            out.write(settings.model_dump_json())
        return cls(folder)

    def settings(self) -> ServeSettings:
        """What the service was told."""
        return ServeSettings.model_validate_json(read_text(self.folder / SETTINGS, SMALL_JSON))

    def snapshot(self, name: str) -> Path:
        """Where one lies."""
        return self.folder / name

    def current(self) -> str:
        """The name of the one to be served."""
        return (self.folder / CURRENT).read_text(encoding="utf-8")

    @property
    def begun(self) -> bool:
        """Whether there is one."""
        return (self.folder / CURRENT).exists()

    def publish(self, name: str) -> None:
        """Serve this one from now on, and let go of those before the last."""
        before = self.current() if self.begun else name
        beside = self.folder / f"{CURRENT}.{secrets.token_hex(4)}"
        beside.write_text(name, encoding="utf-8")
        beside.replace(self.folder / CURRENT)
        for old in self.folder.glob("run-*"):
            if old.name not in (name, before):
                shutil.rmtree(old, ignore_errors=True)
                (self.folder / f"served-{old.name}.bin").unlink(missing_ok=True)

    def prepare(self) -> str:
        """Make a snapshot of the run as it is now, in a process of its own, and serve it.  Returns its name.

        If that fails, the old one stays and the reason is an `InputError`.
        """
        with self._alone():
            name = f"run-{secrets.token_hex(4)}"
            call = [sys.executable, "-m", "dpaa.serving.prepare", str(self.folder), name]
            done = subprocess.run(call, capture_output=True, text=True, check=False, errors="replace")
            if done.returncode == 2 and done.stdout:
                raise InputError(done.stdout)
            if done.returncode:
                said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
                raise InputError(f"the run could not be prepared ({said[0][:300]}); see to memory and disk")
            self.publish(name)
            return name

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.folder / LOCK).open("a") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ReloadingError from None
            yield
