"""Which re-ranker is meant: by a user's words, or by what a run keeps."""

from __future__ import annotations

from typing import Any

from dpaa.errors import InputError
from dpaa.methods.settings import make_settings
from dpaa.reranking.base import Reranker
from dpaa.reranking.registry import RERANKERS

NONE = "none"


def parse_reranker(text: str) -> Reranker | None:
    """`NAME`, or `NAME,SETTING=VALUE,…`; `none` is no re-ranker."""
    name, *words = text.split(",")
    if name.strip().lower() == NONE and not words:
        return None
    settings: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key.strip() in settings:
            raise InputError(f"cannot read {word!r} of the re-ranker {text!r}; write NAME,SETTING=VALUE, each once")
        settings[key.strip()] = value.strip()
    return _made(RERANKERS.find(name), settings)


def stored_reranker(stored: object, place: object) -> Reranker | None:
    """The one that a manifest names; only what is built in, installed or named in the call is ever imported."""
    if stored is None:
        return None
    if not isinstance(stored, dict) or not isinstance(stored.get("name"), str):
        raise InputError(f"{place} does not say which re-ranker it uses; restore it or train again")
    settings = stored.get("settings")
    kind = RERANKERS.stored(stored["name"], stored.get("origin"), place)
    return _made(kind, settings if isinstance(settings, dict) else {})


def _made(kind: type[Reranker], settings: dict[str, Any]) -> Reranker:
    return make_settings(kind, settings, kind.name, "re-ranker")
