"""Who may claim a trial now, and who is still at work: lock files, or advisory locks of a PostgreSQL that hosts share.

Both end with their process, however it ends: the file's by the kernel's word, the server's with the connection.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from dpaa.errors import InputError, MissingExtraError
from dpaa.files import held, locked, own_folder, remove_lock
from dpaa.tuning.storage import (
    cannot_open,
    connection_words,
    on_postgresql,
    open_storage,
    sqlite_file,
    unusable,
    without_secrets,
)

LOCK, LOCKS = ".lock", ".locks"
HEARTBEAT, LOST_AFTER = 30.0, 180.0
"""Seconds between signs of life where nothing better tells who is alive, and without one until a trial is lost."""
PATIENCE = 10
"""Seconds to wait for a server, unless the URL says otherwise."""
SESSION = {
    "statement_timeout": "0",  # a turn is waited for as long as it takes
    "lock_timeout": "0",
    "idle_session_timeout": "0",  # a training may take hours, and nothing is said meanwhile
    "tcp_keepalives_idle": "30",  # a machine that is gone is noticed within a minute and a half, not two hours
    "tcp_keepalives_interval": "15",
    "tcp_keepalives_count": "4",
}
"""Of a connection that holds locks; servers that do not know one of these go without it."""


class Locks(ABC):
    """What the workers of a study agree by."""

    beacon: str
    """What a claim names its worker by."""
    needs_heartbeat: bool
    """Whether a worker must write signs of life, since others could not tell otherwise."""

    @abstractmethod
    def opening(self) -> AbstractContextManager[None]:
        """One at a time: who opens the storage, which the first one fills with tables."""

    @abstractmethod
    def turn(self) -> AbstractContextManager[None]:
        """One at a time, of all workers of the study: who claims, requeues or counts."""

    @abstractmethod
    def at_work(self) -> AbstractContextManager[None]:
        """While it lasts, this process counts as alive; however it ends, others will know."""

    @abstractmethod
    def alive(self, claim: Mapping[str, Any] | None, seen: float) -> bool:
        """Whether the worker of a trial is, by its claim (None: it has not said) and its last sign of life.

        Asked by who has the turn.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of all."""


def locks_of(folder: Path, study: str, storage: str | None) -> Locks:
    """Those that fit the storage of a study."""
    if storage is not None and on_postgresql(storage):
        return ServerLocks(storage, study)
    file = None if storage is None else sqlite_file(storage)
    return FileLocks(folder, folder / LOCK if file is None else lock_beside(file), shared=storage is not None)


def server_locks(url: str, study: str) -> ServerLocks:
    """Those of a server; refused where it is none."""
    if not on_postgresql(url):
        raise InputError(
            f"{without_secrets(url)} is no PostgreSQL server; give a URL such as postgresql://me@host/database, or "
            "leave --storage out"
        )
    return ServerLocks(url, study)


@contextmanager
def opening(storage: str) -> Iterator[None]:
    """One at a time: who opens this storage."""
    if on_postgresql(storage):
        locks = ServerLocks(storage, "")
        try:
            with locks.opening():
                yield
        finally:
            locks.close()
        return
    file = sqlite_file(storage)
    with ExitStack() as hold:
        if file is not None and file.parent.is_dir():
            hold.enter_context(locked(lock_beside(file), wait=True))
        yield


def check_storage(url: str) -> None:
    """Refuse a storage that cannot be opened."""
    try:
        with opening(url):
            storage = open_storage(url)
        storage.remove_session()
        storage.engine.dispose()
    except InputError:
        raise
    except Exception as error:  # a driver may raise anything
        raise cannot_open(error, url) from None


def lock_beside(file: Path) -> Path:
    """Of a file of SQLite, which studies in several folders may share."""
    return file.parent / f".{file.name}{LOCK}"


class FileLocks(Locks):
    """For workers of one machine; those of others, who share the storage but not the folder, write signs of life."""

    def __init__(self, folder: Path, lock: Path, shared: bool) -> None:
        self._lock, self._folder = lock, folder / LOCKS
        self._file = self._folder / f"worker-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.beacon = str(self._file.resolve())
        self.needs_heartbeat = shared

    @contextmanager
    def opening(self) -> Iterator[None]:
        """As for a turn; what workers that were killed have left goes."""
        with self.turn():
            for left in self._folder.glob("*"):
                if not held(left):
                    remove_lock(left)
            yield

    @contextmanager
    def turn(self) -> Iterator[None]:
        """By a file."""
        with locked(self._lock, wait=True):
            yield

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """A file of this worker's own is locked."""
        with ExitStack() as beacon:
            with self.turn():
                own_folder(self._folder, "make room and call again")
                beacon.enter_context(locked(self._file, wait=True))
            beacon.callback(self._file.unlink, missing_ok=True)
            yield

    def alive(self, claim: Mapping[str, Any] | None, seen: float) -> bool:
        """By the worker's file on this machine, by its signs of life on another."""
        if claim is None and not self.needs_heartbeat:
            return False  # whoever claims has the turn, which is ours now
        if claim is not None and claim["host"] == socket.gethostname():
            return held(Path(claim["beacon"]))
        return time.time() - seen < LOST_AFTER

    def close(self) -> None:
        """Nothing is open between two turns."""


class ServerLocks(Locks):
    """For workers of any machine: advisory locks of one session each.

    A session that breaks (a server that was started again) loses its locks: the trial under way may be done by another
    worker too, whoever ends it first is heard, and the next turn opens a session anew.
    """

    needs_heartbeat = False

    def __init__(self, url: str, study: str) -> None:
        self._url = url
        self._study = _number("study", study)
        self._working = False
        self._session: Any = None
        try:
            self._psycopg = import_module("psycopg")
        except ImportError:
            raise MissingExtraError("a storage on PostgreSQL", "sql") from None
        self._renew()

    def opening(self) -> AbstractContextManager[None]:
        """One key for the whole database."""
        return self._held(_number("storage", ""))

    def turn(self) -> AbstractContextManager[None]:
        """A key of the study's."""
        return self._held(self._study)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """A key of this worker's own is held."""
        self._working = True
        try:
            self._ask("pg_advisory_lock", int(self.beacon))
            yield
        finally:
            self._working = False
            with suppress(Exception):  # without a connection there is no lock either
                self._session.execute("SELECT pg_advisory_unlock(%s)", [int(self.beacon)])

    def alive(self, claim: Mapping[str, Any] | None, seen: float) -> bool:
        """Whether the worker's key is held."""
        del seen
        beacon = "" if claim is None else claim["beacon"]
        if not (beacon.isascii() and beacon.isdigit() and len(beacon) < 20):
            return False  # whoever claims has the turn, which is ours now
        if beacon == self.beacon:
            return self._working  # this session would get its own lock once more
        if not self._ask("pg_try_advisory_lock", int(beacon)):
            return True
        self._ask("pg_advisory_unlock", int(beacon))
        return False

    def close(self) -> None:
        """End the session, and with it its locks."""
        if self._session is not None:
            self._session.close()

    @contextmanager
    def _held(self, key: int) -> Iterator[None]:
        self._ask("pg_advisory_lock", key)
        try:
            yield
        finally:
            with suppress(Exception):  # without a connection there is no lock either
                self._session.execute("SELECT pg_advisory_unlock(%s)", [key])

    @contextmanager
    def claimed(self, name: str) -> Iterator[bool]:
        """Whether nobody else has claimed the work of this name; it is this process's until the end."""
        key = _number("work", name)
        if not self._ask("pg_try_advisory_lock", key):
            yield False
            return
        try:
            yield True
        finally:
            with suppress(Exception):  # without a connection there is no lock either
                self._session.execute("SELECT pg_advisory_unlock(%s)", [key])

    def _ask(self, function: str, key: int) -> bool:
        """What the server answers."""
        return self.execute(f"SELECT {function}(%s)", [key])[0][0] is not False

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows that the server answers with; a session that is found to be gone is replaced, once."""
        try:
            for last in (False, True):
                try:
                    said = self._connected().execute(statement, values)
                    return list(said.fetchall()) if said.description else []
                except self._psycopg.OperationalError:
                    if last or not self._session.broken:
                        raise
            raise AssertionError
        except self._psycopg.Error as error:
            raise unusable(error, self._url, Path()) from None

    def _connected(self) -> Any:
        """The session, a new one if need be."""
        if self._session is None or self._session.closed:
            words: dict[str, Any] = {"connect_timeout": PATIENCE} | connection_words(self._url)
            try:
                self._session = self._psycopg.connect(autocommit=True, **words)
            except self._psycopg.Error as error:
                raise cannot_open(error, self._url) from None
            self._session.execute(
                "SELECT set_config(name, %s::jsonb ->> name, false) FROM pg_settings WHERE name = ANY(%s)",
                [json.dumps(SESSION), list(SESSION)],
            )
            if self._working:  # the old session's lock may last until the server notices; this one has its own
                self._renew()
                self._session.execute("SELECT pg_advisory_lock(%s)", [int(self.beacon)])
        return self._session

    def _renew(self) -> None:
        self.beacon = str(_number("worker", uuid.uuid4().hex))


def _number(what: str, name: str) -> int:
    """A key of 63 bits, as PostgreSQL's locks have them; `dpaa` in it keeps those of other programs away."""
    return int.from_bytes(hashlib.sha256(f"dpaa {what} {name}".encode()).digest()[:8], "big") >> 1
