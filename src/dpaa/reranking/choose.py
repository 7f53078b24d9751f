"""Which re-ranker is meant: by a user's words, or by what a run keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpaa.errors import InputError
from dpaa.methods.base import check_fields
from dpaa.reranking.base import Reranker
from dpaa.reranking.registry import RERANKERS

NONE = "none"


def parse_reranker(text: str) -> Reranker | None:
    """`NAME`, or `NAME,SETTING=VALUE,…`; `none` is no re-ranker."""
    if text.strip().lower() == NONE:
        return None
    return make_reranker(*_read(text))


def told_reranker(text: str, place: object) -> Reranker:
    """The same from a file's words: only what is built in, installed or named in the call is ever imported."""
    name, settings = _read(text)
    return _made(RERANKERS.stored(name, None, place), settings)


def _read(text: str) -> tuple[str, dict[str, Any]]:
    name, *words = text.split(",")
    settings: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key.strip() in settings:
            raise InputError(f"cannot read {word!r} of the re-ranker {text!r}; write NAME,SETTING=VALUE, each once")
        settings[key.strip()] = value.strip()
    return name, settings


def make_reranker(name: str, settings: Mapping[str, object]) -> Reranker:
    """By its name, or `package.module:Class`; anything wrong is one sentence."""
    return _made(RERANKERS.find(name), settings)


def described(name: str) -> dict[str, Any]:
    """One re-ranker as plain data, like a method in `dpaa.methods.registry`."""
    kind = RERANKERS.find(name)
    settings = {
        key: {"default": field.default, "meaning": " ".join((field.description or "").split())}
        for key, field in kind.model_fields.items()
    }
    return {"name": kind.name, "title": kind.title, "paper": kind.paper, "settings": settings}


def stored_reranker(stored: object, place: object) -> Reranker | None:
    """The one that a manifest names, found in the same way."""
    if stored is None:
        return None
    if not isinstance(stored, dict) or not isinstance(stored.get("name"), str):
        raise InputError(f"{place} does not say which re-ranker it uses; restore it or train again")
    settings = stored.get("settings")
    kind = RERANKERS.stored(stored["name"], stored.get("origin"), place)
    return _made(kind, settings if isinstance(settings, dict) else {})


def _made(kind: type[Reranker], settings: Mapping[str, object]) -> Reranker:
    return kind(**check_fields(kind, settings, f"re-ranker {kind.name}"))
