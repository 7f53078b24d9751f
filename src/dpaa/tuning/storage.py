"""Where the trials of a study are kept: an Optuna storage URL, whose secrets are neither shown nor stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


def check_storage(url: str) -> None:
    """Refuse a storage that cannot be opened."""
    shown = without_secrets(url)
    try:
        storage = open_storage(url)
        storage.remove_session()
        storage.engine.dispose()
    except Exception as error:  # a driver may raise anything
        raise InputError(f"cannot open the storage {shown} ({_said(error, url)}); {REMEDY}") from None


def open_storage(url: str) -> optuna.storages.RDBStorage:
    """Optuna's storage at this URL."""
    patient = {"connect_args": {"timeout": PATIENCE}} if _parsed(url).get_backend_name() == "sqlite" else None
    template = url.replace("{", "{{").replace("}", "}}")  # Optuna fills in a version where there are braces
    return optuna.storages.RDBStorage(template, engine_kwargs=patient)


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


def _said(error: BaseException, url: str) -> str:
    """The reason without the URL and its secrets."""
    return hide_secrets(reason(error).replace(url, without_secrets(url)), url)
