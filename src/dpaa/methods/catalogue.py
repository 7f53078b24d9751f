"""What there is to choose from: names, titles, papers and settings, without loading what computes.

Those of the built-in methods are in `catalogue.json`, made from their classes and checked by a test.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dpaa.errors import InputError
from dpaa.methods.registry import METHODS, find_method
from dpaa.plugins import origin_of

if TYPE_CHECKING:  # it brings torch
    from dpaa.methods.base import Method

FILE = "catalogue.json"


def catalogue(name: str | None = None) -> dict[str, dict[str, Any]]:
    """Every method (or one) as plain data; only plug-ins are imported for it."""
    built_in: dict[str, dict[str, Any]] = json.loads(files(__package__).joinpath(FILE).read_text(encoding="utf-8"))
    if name is not None:
        wanted = name.strip().lower().replace("_", "-")
        return {wanted: built_in[wanted]} if wanted in built_in else _of(find_method(name))
    found = dict(built_in)
    for other in METHODS:
        if other not in METHODS.built_in:
            try:
                found |= _of(METHODS[other])
            except InputError as error:  # somebody's broken plug-in
                found[other] = {"name": other, "title": str(error), "paper": "", "settings": {}}
    return found


def _of(method: type[Method]) -> dict[str, dict[str, Any]]:
    return {method.name: described(method)}


def described(method: type[Method]) -> dict[str, Any]:
    """One method as plain data."""
    settings = {
        name: {"default": field.default, "meaning": " ".join((field.description or "").split())}
        for name, field in method.hyperparameters.model_fields.items()
    }
    origin = origin_of(method)
    package = (
        {} if origin["package"] == "dpaa" else {"package": f"{origin['package']} {origin['version'] or ''}".strip()}
    )
    return {"name": method.name, "title": method.title, "paper": method.paper, "settings": settings} | package
