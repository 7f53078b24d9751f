"""Where the trials of a study are kept: an Optuna storage URL, whose secrets are neither shown nor stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpaa.errors import InputError, MissingExtraError, reason
from dpaa.urls import HIDDEN, hide_secrets

try:
    import optuna as optuna
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError
except ImportError:
    raise MissingExtraError("tuning", "tune") from None

optuna.logging.set_verbosity(optuna.logging.WARNING)
REMEDY = "give an Optuna storage URL such as sqlite:///study.db"
PATIENCE = 100
"""Seconds that a process waits for another one's hold on a file of SQLite."""


def without_secrets(url: str) -> str:
    """A storage URL that may be shown and kept: no password, and of what follows `?` the names alone.

    It is the same for two URLs that differ in their secrets.
    """
    parsed = _parsed(url)
    if parsed.password is None and not parsed.query:
        return url
    query = "&".join(f"{name}={HIDDEN}" for name in sorted(parsed.query))
    return parsed.set(query={}).render_as_string(hide_password=True) + (f"?{query}" if query else "")


def open_storage(url: str) -> optuna.storages.RDBStorage:
    """Optuna's storage at this URL."""
    backend = _parsed(url).get_backend_name()
    how: dict[str, Any] = {"connect_args": {"timeout": PATIENCE}} if backend == "sqlite" else {"pool_pre_ping": True}
    if on_postgresql(url):
        url = _parsed(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    template = url.replace("{", "{{").replace("}", "}}")  # Optuna fills in a version where there are braces
    return optuna.storages.RDBStorage(template, engine_kwargs=how)


def on_postgresql(url: str) -> bool:
    """Whether it is on such a server."""
    return _parsed(url).drivername.partition("+")[0] in ("postgresql", "postgres")


def connection_words(url: str) -> dict[str, str]:
    """What a driver of PostgreSQL is told by a URL, name by name: nothing has to be written as in a URL again."""
    parsed = _parsed(url)
    words = parsed.translate_connect_args(username="user", database="dbname")
    asked = {name: value if isinstance(value, str) else ",".join(value) for name, value in parsed.query.items()}
    return {name: str(value) for name, value in words.items()} | asked


def sqlite_file(url: str) -> Path | None:
    """The file of a storage in SQLite; None for any other, and for one in memory."""
    parsed = _parsed(url)
    named = parsed.get_backend_name() == "sqlite" and parsed.database not in (None, "", ":memory:")
    return Path(str(parsed.database)).absolute() if named else None


def url_of(file: Path) -> str:
    """The URL of a file of SQLite, whatever its name."""
    return URL.create("sqlite", database=str(file.resolve())).render_as_string(hide_password=False)


@contextmanager
def in_words(url: str | None, file: Path, opening: bool = False) -> Iterator[None]:
    """What is wrong with a storage (damaged, no room, gone), in one sentence; it is at the URL, else in the file.

    While it is opened, Optuna says by a `RuntimeError` that it is none of its own.
    """
    try:
        yield
    except optuna.exceptions.StorageInternalError as error:
        raise unusable(error.__cause__ or error, url, file) from None
    except (SQLAlchemyError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not opening:
            raise
        raise unusable(error, url, file) from None


def unusable(error: BaseException, url: str | None, file: Path) -> InputError:
    """The sentence."""
    place, said = (without_secrets(url), _said(error, url)) if url else (str(file), reason(error))
    return InputError(
        f"{place} is not a usable Optuna storage ({said}); make room, restore it or choose another folder"
    )


def _parsed(url: str) -> URL:
    """As SQLAlchemy reads it; refused where it would take a part of a password for something else, and show it."""
    rest = url.partition("://")[2]
    before, _, behind = rest.partition("@")
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # what they say may quote a secret
        parsed = None
    named = parsed is None or parsed.username is not None
    if named and ("@" in behind or (behind and set(before) & set("/?"))):
        raise InputError("the storage URL can be read in two ways; in a password write @ as %40, / as %2F and ? as %3F")
    if parsed is None:
        shown = url if re.fullmatch(r"[\w./ -]*", url) else "that was given"  # nothing in it can be a secret
        raise InputError(f"cannot open the storage {shown} (it cannot be read as a URL); {REMEDY}")
    return parsed


def cannot_open(error: BaseException, url: str) -> InputError:
    """The sentence about a storage that is not even reached."""
    remedy = "start the server, or correct the URL" if on_postgresql(url) else REMEDY
    return InputError(f"cannot open the storage {without_secrets(url)} ({_said(error, url)}); {remedy}")


def _said(error: BaseException, url: str) -> str:
    """The reason without the URL and its secrets."""
    return hide_secrets(reason(error).replace(url, without_secrets(url)), url)
