"""The options of `dpaa serve`, and who may reach the service."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from dpaa.errors import InputError, need_whole


@dataclass(frozen=True)
class ServeOptions:
    """How one service runs; the fields are the options of `dpaa serve`.

    Parameters
    ----------
    run : the run folder
    plugins : methods and re-rankers that are not built in
    token : what requests must show; `POST /reload` needs one in any case
    allow_origin : origins whose web pages may send requests
    allow_host : host names of the service, besides those of the loopback interface
    any_host : whether every host name is accepted, since a token or a proxy protects the service
    workers : processes
    threads : threads that a worker computes with
    most_waiting : lists that may wait in a worker; more are refused with 503
    """

    run: Path
    plugins: tuple[str, ...] = ()
    token: str | None = None
    allow_origin: tuple[str, ...] = ()
    allow_host: tuple[str, ...] = ()
    any_host: bool = False
    workers: int = 1
    threads: int = 1
    most_waiting: int = 256

    def __post_init__(self) -> None:
        for name in ("workers", "threads", "most_waiting"):
            need_whole(getattr(self, name), name)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone.

    Parameters
    ----------
    host : a name or an IP address, of version 6 also in brackets

    Returns
    -------
    True for `localhost` and the loopback addresses
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_token(host: str, token: str | None, no_token: bool) -> None:
    """Refuse a short token, and an open address without one.

    Parameters
    ----------
    host : address that the service listens on
    token : what requests must show, None for no token
    no_token : whether a proxy controls access
    """
    if token is not None and len(token) < 16:
        raise InputError("the token is shorter than 16 characters; make one with `openssl rand -hex 32`")
    if token is None and not no_token and not is_loopback(host):
        raise InputError(
            f"{host} can be reached from outside of this machine, so a token is needed; give --token-file FILE or set "
            "DPAA_SERVE_TOKEN, or pass --token-file none if a proxy controls access"
        )
