"""The options of `dpaa serve`, and the limits of a request."""

from __future__ import annotations

import ipaddress
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from dpaa.errors import InputError, MissingExtraError

KINDS = ("exact", "hnsw", "ivf")
"""How items are found; see `index.py`."""
MOST_PEOPLE = 100
"""Users or histories of one `POST /recommend`."""
MOST_IDS = 1000
"""Ids of one `exclude`, `allow` or history."""
MOST_BYTES = 1_000_000
"""Body of a request."""


class ServeOptions(BaseModel):
    """How one service runs; the fields are the options of `dpaa serve`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    run: Path
    """The run folder; a reload reads it again."""
    index: Literal["exact", "hnsw", "ivf"] = "exact"
    """How candidates are found; an index pays in large catalogues only."""
    titles: Path | None = None
    """A table of item_id and title."""
    plugins: tuple[str, ...] = ()
    token: str | None = None
    """What requests must show; `POST /reload` needs one in any case."""
    allow_origin: tuple[str, ...] = ()
    """Origins whose web pages may send requests."""
    allow_host: tuple[str, ...] = ()
    """Host names of the service, besides those of the loopback interface."""
    any_host: bool = False
    """Whether every host name is accepted: a token or a proxy protects the service."""
    workers: int = 1
    threads: int = 1
    """Threads that a worker computes with."""
    most_k: int = 200
    """Longest list."""
    most_waiting: int = 256
    """Lists that may wait in a worker; more are refused with 503."""
    most_together: int = 32
    """Lists of one batch."""
    timeout: float = 10.0
    """Seconds for a request: its body and its answer."""
    grace: float = 10.0
    """Seconds that open requests get when the service stops."""


def needed(module: str, what: str, extra: str) -> Any:
    """A module of an extra; a missing one is an error that says what to install.

    Parameters
    ----------
    module : name to import
    what : the feature that needs it, for the message
    extra : the extra of `pip install 'dpaa[…]'` that brings it

    Returns
    -------
    the module
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(what, extra) from None


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone.

    Parameters
    ----------
    host : a name or an IP address, of version 6 also in brackets

    Returns
    -------
    True for `localhost` and the loopback addresses
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_token(host: str, token: str | None, no_token: bool) -> None:
    """Refuse a short token, and an open address without one.

    Parameters
    ----------
    host : address that the service listens on
    token : what requests must show, None for no token
    no_token : whether the user has chosen to leave access control to a proxy
    """
    if token is not None and len(token) < 16:
        raise InputError("the token is shorter than 16 characters; make one with `openssl rand -hex 32`")
    if not is_loopback(host) and token is None and not no_token:
        raise InputError(
            f"{host} can be reached from outside of this machine, so a token is needed; give --token-file FILE or set "
            "DPAA_SERVE_TOKEN, or pass --no-token if a proxy in front of it lets only the right people through"
        )
