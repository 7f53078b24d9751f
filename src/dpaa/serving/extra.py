"""What the extras bring, imported where it is used; a missing one says what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dpaa.errors import MissingExtraError


def needed(module: str, what: str, extra: str) -> Any:
    """A module of an extra."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(what, extra) from None


def faiss() -> Any:
    """The index library, on one thread: requests are what runs in parallel."""
    found = needed("faiss", "an index", "index")
    found.omp_set_num_threads(1)
    return found


def check_serve() -> None:
    """Refuse before anything is loaded."""
    for module in ("starlette", "uvicorn", "orjson", "httptools"):
        needed(module, "dpaa serve", "serve")
