"""Advisory locks of a PostgreSQL server, which end with their process: for `dpaa.reproduction.shared` alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from dpaa._text import hide_secrets, without_secrets
from dpaa.errors import InputError, MissingExtraError, reason


def server_locks(url: str, study: str) -> ServerLocks:
    """Those of a server; refused where it is none."""
    if not url.startswith(("postgresql", "postgres")):
        raise InputError(
            f"{without_secrets(url)} is no PostgreSQL server; give a URL such as postgresql://me@host/database, or "
            "leave --storage out"
        )
    return ServerLocks(url, study)


class ServerLocks:
    """Locks of one session."""

    def __init__(self, url: str, study: str) -> None:
        self._url, self._study = url, study
        try:
            psycopg = import_module("psycopg")
        except ImportError:
            raise MissingExtraError("a storage on PostgreSQL", "sql") from None
        scheme, mark, rest = url.partition("://")
        try:
            self._session = psycopg.connect(f"{scheme.partition('+')[0]}{mark}{rest}", autocommit=True)
        except psycopg.Error as error:
            why = hide_secrets(reason(error), url)
            raise InputError(
                f"cannot open the storage {without_secrets(url)} ({why}); start the server, or correct the URL"
            ) from None

    @contextmanager
    def opening(self) -> Iterator[None]:
        """One process at a time."""
        self.execute("SELECT pg_advisory_lock(%s)", [_number("storage")])
        try:
            yield
        finally:
            self.execute("SELECT pg_advisory_unlock(%s)", [_number("storage")])

    @contextmanager
    def claimed(self, name: str) -> Iterator[bool]:
        """Whether nobody else has claimed the work of this name; it is this process's until the end."""
        key = _number(f"work {self._study} {name}")
        mine = bool(self.execute("SELECT pg_try_advisory_lock(%s)", [key])[0][0])
        try:
            yield mine
        finally:
            if mine:
                with suppress(Exception):  # without a connection there is no lock either
                    self._session.execute("SELECT pg_advisory_unlock(%s)", [key])

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows that the server answers with."""
        cursor = self._session.execute(statement, values)
        return list(cursor.fetchall()) if cursor.description else []

    def close(self) -> None:
        """End the session, and with it its locks."""
        self._session.close()


def _number(name: str) -> int:
    """A key of 63 bits."""
    return int.from_bytes(hashlib.sha256(f"dpaa {name}".encode()).digest()[:8], "big") >> 1
