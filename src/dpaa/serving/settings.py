"""How a service is set up: what `dpaa serve` was told, and the limits of what strangers may ask."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from dpaa.errors import InputError

KINDS = ("exact", "hnsw", "ivf")
"""How items are found; see `index.py`."""


class ServeSettings(BaseModel):
    """One service."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    run: Path
    """The run folder; `POST /reload` reads it again."""
    index: Literal["exact", "hnsw", "ivf"] = "exact"
    """How candidates are found; an index pays from about 100,000 items on."""
    titles: Path | None = None
    """A table of item_id and title."""
    plugins: tuple[str, ...] = ()
    token: str | None = None
    """Whoever asks must show it; `POST /reload` needs one in any case."""
    allow_origin: tuple[str, ...] = ()
    """Web pages of other origins that may ask."""
    allow_host: tuple[str, ...] = ()
    """Names the service is asked under, besides those of this machine's loopback."""
    any_host: bool = False
    """Whether every name is good: where a token or a proxy keeps strangers out."""
    workers: int = 1
    threads: int = 1
    """That a worker computes with."""
    most_k: int = 200
    """Longest list."""
    most_people: int = 100
    """Users or histories of one `POST /recommend`."""
    most_ids: int = 1000
    """Ids of one `exclude`, `allow` or history."""
    most_bytes: int = 1_000_000
    """Body of a request."""
    most_waiting: int = 256
    """Questions that may wait; who comes after is told to come again."""
    most_together: int = 32
    """Questions that are answered in one batch."""
    timeout: float = 10.0
    """Seconds until a request is given up: for its body, and for its answer."""
    grace: float = 10.0
    """Seconds that requests on their way get when the service stops."""


def is_loopback(host: str) -> bool:
    """Whether nobody from outside of this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_token(host: str, token: str | None, no_token: bool) -> None:
    """Refuse to listen to the world without a key."""
    if token is not None and len(token) < 16:
        raise InputError("the token is shorter than 16 characters; make one with `openssl rand -hex 32`")
    if not is_loopback(host) and token is None and not no_token:
        raise InputError(
            f"{host} can be reached from outside of this machine, so a token is needed; give --token-file FILE or set "
            "DPAA_SERVE_TOKEN, or pass --no-token if a proxy in front of it lets only the right people through"
        )
