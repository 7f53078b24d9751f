"""Classes found by name: built in, installed as plug-ins (entry points), or named in the call.

Nothing is imported before it is asked for by name.  A file can name a class, never make one be imported: only what is
built in, installed as a plug-in or named in the call (`package.module:Class`) is.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, packages_distributions, version
from inspect import isabstract
from typing import Any, Generic, TypeVar

from dpaa.errors import InputError, reason

T = TypeVar("T")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(eq=False)
class Registry(Mapping[str, type[T]], Generic[T]):
    """Name → class; a class is imported when it is first asked for."""

    what: str
    """`method`, say."""
    group: str
    """Of entry points."""
    base: str
    """The class they derive from, as `module:Class`."""
    built_in: dict[str, str]
    """Name → `module:Class`."""
    _named: dict[str, type[T]] = field(default_factory=dict)

    @property
    def plugins(self) -> dict[str, EntryPoint]:
        """Installed plug-ins by name; one with the name of a built-in class is left out."""
        return {found.name: found for found in entry_points(group=self.group) if found.name not in self.built_in}

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*self.built_in, *self.plugins, *self._named])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, name: str) -> type[T]:
        if name in self._named:
            return self._named[name]
        if name in self.built_in:
            found: type[T] = _imported(self.built_in[name])
            return found
        plugin = self.plugins[name]
        try:
            return self._checked(plugin.load(), plugin.value)
        except Exception as error:  # it is a stranger's code: whatever it raises is told
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"the plug-in {plugin.value} of {self.what} {name} cannot be imported ({reason(error)}); "
                "mend or remove it"
            ) from None

    def find(self, wanted: str | type[T]) -> type[T]:
        """The class of this name (underscores are as good as hyphens), at this place, or itself."""
        if not isinstance(wanted, str):
            return wanted if wanted.__module__.startswith("dpaa.") else self.add(wanted)
        if ":" in wanted:
            return self.add(wanted)
        name = wanted.strip().lower().replace("_", "-")
        if name in self:
            return self[name]
        close = difflib.get_close_matches(name, self, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise InputError(f"there is no {self.what} {wanted!r}; {hint}known {self.what}s: {', '.join(self)}")

    def stored(self, name: str, origin: object, place: object) -> type[T]:
        """The class that a file names; one that is not known here is never imported."""
        if name in self:
            return self[name]
        package = origin.get("package") if isinstance(origin, dict) else None
        if package is None or package == "dpaa":
            return self.find(name.replace(":", " "))  # which says what there is
        raise InputError(
            f"{place} was made with the {self.what} {name!r} of package {package}, which is not installed as a plug-in "
            "here; install it, or name its class with dpaa --plugin package.module:Class"
        )

    def add(self, place: str | type[T]) -> type[T]:
        """Make a class, or the one at `package.module:Class`, known by its name for the rest of this process."""
        found = self._checked(_local(place) if isinstance(place, str) else place, str(place))
        name = str(getattr(found, "name", ""))
        if name in self.built_in and found is not self[name]:
            raise InputError(f"{place} calls itself {name!r}, which is a built-in {self.what}; give it another name")
        self._named[name] = found
        return found

    def accepts(self, found: object) -> bool:
        """Whether this is such a class."""
        base = _imported(self.base)
        return isinstance(found, type) and issubclass(found, base) and not isabstract(found) and hasattr(found, "name")

    def address(self, name: str) -> str:
        """By what another process finds a class: its name, or its place where only this call knows it."""
        found = self._named.get(name)
        return name if found is None else f"{found.__module__}:{found.__qualname__}"

    def _checked(self, found: Any, place: str) -> type[T]:
        if self.accepts(found):
            name, title = found.name, getattr(found, "title", None)
            if not isinstance(name, str) or not NAME.fullmatch(name) or not isinstance(title, str):
                raise InputError(f"{place} needs a name (lower-case letters, digits, hyphens) and a title, both text")
            checked: type[T] = found
            return checked
        raise InputError(f"{place} is no {self.what}: a class with a name, derived from {self.base.replace(':', '.')}")


def add_plugin(place: str, *registries: Registry[Any]) -> None:
    """Make the class at `package.module:Class` known to the registry that it belongs to."""
    found = _local(place)
    known = next((one for one in registries if one.accepts(found)), None)
    if known is None:
        kinds = " nor ".join(one.what for one in registries)
        raise InputError(f"{place} is neither {kinds}; name a class derived from one of dpaa's base classes")
    known.add(found)


def origin_of(found: type) -> dict[str, str | None]:
    """The package and version that a class comes from, and its place in it, for the manifest."""
    place, top = f"{found.__module__}:{found.__qualname__}", found.__module__.partition(".")[0]
    if top == "dpaa":
        return {"package": "dpaa", "version": version("dpaa"), "class": place}
    packages = packages_distributions().get(top, [])
    return {
        "package": packages[0] if packages else top,
        "version": version(packages[0]) if packages else None,
        "class": place,
    }


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _local(place: str) -> Any:
    """What the call names; modules in the current folder count, as for `python -m`."""
    if not all(place.partition(":")):
        raise InputError(f"{place!r} is no place of a class; write package.module:Class")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return _imported(place)
    except Exception as error:  # it is the caller's own code: whatever it raises is told
        raise InputError(f"cannot import {place} ({reason(error)}); name it as package.module:Class") from None
