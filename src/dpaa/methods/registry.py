"""Where methods are found: built in, installed as plug-ins (entry points `dpaa.methods`), or named in the call.

Nothing is imported before it is asked for by name.  A file can name a method, never make one be imported: only what is
built in, installed as a plug-in or named in the call (`package.module:Class`) is.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, packages_distributions, version
from inspect import isabstract
from typing import TYPE_CHECKING, Any

import dpaa
from dpaa.errors import InputError, reason

if TYPE_CHECKING:  # they bring torch, which the list of names does without
    from dpaa.methods.base import Method
    from dpaa.methods.settings import Settings

GROUP = "dpaa.methods"
BUILT_IN = {
    "lightgcn": "dpaa.methods.lightgcn:LightGCN",
    "dpaa": "dpaa.methods.dpaa:DPAA",
    "dpaa-as-printed": "dpaa.methods.dpaa:DpaaAsPrinted",
    "dpaa-auto": "dpaa.methods.dpaa_auto:DpaaAuto",
    "apda": "dpaa.methods.apda:APDA",
    "navip": "dpaa.methods.navip:NAVIP",
    "dap": "dpaa.methods.dap:DAP",
    "ppac": "dpaa.methods.ppac:PPAC",
    "macr": "dpaa.methods.macr:MACR",
    "cvib": "dpaa.methods.cvib:CVIB",
    "ips": "dpaa.methods.ips:IPS",
    "sam-reg": "dpaa.methods.sam_reg:SamReg",
    "most-popular": "dpaa.methods.references.most_popular:MostPopular",
    "item-knn": "dpaa.methods.references.item_knn:ItemKNN",
    "ease": "dpaa.methods.references.ease:EASE",
    "als": "dpaa.methods.references.als:ALS",
}
"""The only list of their names."""


class Registry(Mapping[str, "type[Method]"]):
    """Name → class; a class is imported when it is first asked for."""

    def __init__(self) -> None:
        self._named: dict[str, type[Method]] = {}

    @property
    def plugins(self) -> dict[str, EntryPoint]:
        """Installed plug-ins by name; one with the name of a built-in method is left out."""
        return {found.name: found for found in entry_points(group=GROUP) if found.name not in BUILT_IN}

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*BUILT_IN, *self.plugins, *self._named])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, name: str) -> type[Method]:
        if name in self._named:
            return self._named[name]
        if name in BUILT_IN:
            return _imported(BUILT_IN[name])
        plugin = self.plugins[name]
        try:
            return _checked(plugin.load(), plugin.value)
        except Exception as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"the plug-in {plugin.value} of method {name} cannot be imported ({reason(error)}); mend or remove it"
            ) from None

    def name(self, place: str | type[Method]) -> type[Method]:
        """Make a method known by its class or its place, `package.module:Class`, for the rest of this process."""
        method = _local(place) if isinstance(place, str) else _checked(place, repr(place))
        if method.name in BUILT_IN and method is not self[method.name]:
            raise InputError(f"{place} calls itself {method.name!r}, which is a built-in method; give it another name")
        self._named[method.name] = method
        return method


METHODS = Registry()


def find_method(method: str | type[Method] | type[Settings] | Settings) -> type[Method]:
    """The method of this name (underscores are as good as hyphens), at this place, or of this class or settings."""
    if isinstance(method, str):
        if ":" in method:
            return METHODS.name(method)
        wanted = method.strip().lower().replace("_", "-")
        if wanted in METHODS:
            return METHODS[wanted]
        close = difflib.get_close_matches(wanted, METHODS, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise InputError(f"there is no method {method!r}; {hint}known methods: {', '.join(METHODS)}")
    owner: Any = getattr(method, "method_type", None) or method
    if isinstance(owner, type) and _is_method(owner):
        found: type[Method] = owner
        return found if found.__module__.startswith("dpaa.") else METHODS.name(found)
    raise InputError(f"{method!r} is neither the name nor the class of a method; known methods: {', '.join(METHODS)}")


def origin_of(method: type[Method]) -> dict[str, str | None]:
    """The package and version that a method comes from, and its place in it, for the manifest."""
    top = method.__module__.partition(".")[0]
    if top == "dpaa":
        return {"package": "dpaa", "version": dpaa.__version__, "class": f"{method.__module__}:{method.__qualname__}"}
    packages = packages_distributions().get(top, [])
    found = version(packages[0]) if packages else None
    return {
        "package": packages[0] if packages else top,
        "version": found,
        "class": f"{method.__module__}:{method.__qualname__}",
    }


def _is_method(found: type) -> bool:
    from dpaa.methods.base import Method  # it brings torch

    return issubclass(found, Method) and not isabstract(found) and hasattr(found, "name")


def _checked(found: object, place: str) -> type[Method]:
    if isinstance(found, type) and _is_method(found):
        return found
    raise InputError(f"{place} is not a method: a class derived from dpaa.methods.Method with a name and a scorer")


def _imported(place: str) -> type[Method]:
    module, _, name = place.partition(":")
    found: type[Method] = getattr(import_module(module), name)
    return found


def _local(place: str) -> type[Method]:
    """A class that the call names; modules beside the caller count, as for `python -m`."""
    module, _, name = place.partition(":")
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), name)
    except Exception as error:  # it is the caller's own code: whatever it raises is told
        raise InputError(f"cannot import {place} ({reason(error)}); name it as package.module:Class") from None
    return _checked(found, place)
