"""Methods as plain data: names, titles, papers and hyperparameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpaa.errors import InputError
from dpaa.methods.registry import METHODS, find_method
from dpaa.plugins import origin_of

if TYPE_CHECKING:
    from dpaa.methods.base import Method


def catalogue(name: str | None = None) -> dict[str, dict[str, Any]]:
    """Describe every method, or one.

    Parameters
    ----------
    name : a method; None is all, plug-ins that cannot be imported among them

    Returns
    -------
    name → name, title, paper, settings (each with default and meaning), and for plug-ins the package
    """
    if name is not None:
        method = find_method(name)
        return {method.name: described(method)}
    methods: dict[str, dict[str, Any]] = {}
    for one in METHODS:
        try:
            methods[one] = described(METHODS[one])
        except InputError as error:  # a broken plug-in
            methods[one] = {"name": one, "title": str(error), "paper": "", "settings": {}}
    return methods


def described(method: type[Method]) -> dict[str, Any]:
    """Describe one method; see `catalogue`."""
    settings = {
        name: {"default": field.default, "meaning": " ".join((field.description or "").split())}
        for name, field in method.settings_type.model_fields.items()
    }
    origin = origin_of(method)
    package = (
        {} if origin["package"] == "dpaa" else {"package": f"{origin['package']} {origin['version'] or ''}".strip()}
    )
    return {"name": method.name, "title": method.title, "paper": method.paper, "settings": settings} | package
