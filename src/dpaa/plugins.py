"""Classes by name: built in, installed as plug-ins (entry points), or named in the call.

Nothing is imported before its name is used.  A file can name a class, never make one be imported: only what is
built in, installed as a plug-in or named in the call (`package.module:Class`) is.
"""

import difflib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
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
    """Name → class; a class is imported when it is first used."""

    what: str
    """`method`, say."""
    group: str
    """Of entry points."""
    base: str
    """The class they derive from, as `module:Class`."""
    built_in: dict[str, str]
    """Name → `module:Class`."""
    unlisted: dict[str, str] = field(default_factory=dict)
    """The same for classes that occur in runs but are not offered in lists of names."""
    _named: dict[str, type[T]] = field(default_factory=dict)

    @property
    def plugins(self) -> dict[str, EntryPoint]:
        """Installed plug-ins by name; one with the name of a built-in class is left out."""
        return {point.name: point for point in entry_points(group=self.group) if point.name not in self.built_in}

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*self.built_in, *self.plugins, *self._named])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, name: str) -> type[T]:
        if name in self._named:
            return self._named[name]
        if address := self.built_in.get(name) or self.unlisted.get(name):
            return self._checked(_imported(address), name)
        plugin = self.plugins[name]
        try:
            loaded = plugin.load()
        except Exception as error:  # it is someone else's code: whatever it raises is shown
            raise InputError(f"the plug-in {plugin.value} cannot be imported ({reason(error)}); remove it") from None
        return self._checked(loaded, plugin.value)

    def find(self, wanted: str | type[T]) -> type[T]:
        """Find a class.

        Parameters
        ----------
        wanted : its name (underscores are as good as hyphens), its address `package.module:Class`, or itself
        """
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

    def stored(self, name: str, origin: object, source: object) -> type[T]:
        """Find the class that a file names; one that is not known here is never imported.

        Parameters
        ----------
        name : of the class
        origin : what `origin_of` wrote beside it
        source : the file, for the message
        """
        package = origin.get("package", "dpaa") if isinstance(origin, dict) else "dpaa"
        if name in self or package == "dpaa":
            # A colon would make it an address, which `find` imports; without one it can only be looked up.
            return self.find(name.replace(":", " "))  # an unknown name is refused with the known ones
        what = f"{source} was made with the {self.what} {name!r} of package {package}, which is not installed as a"
        raise InputError(f"{what} plug-in here; install it, or name its class with dpaa --plugin package.module:Class")

    def add(self, added: str | type[T]) -> type[T]:
        """Make a class known by its name for the rest of this process.

        Parameters
        ----------
        added : the class, or its address `package.module:Class`
        """
        kind = self._checked(_local(added) if isinstance(added, str) else added, str(added))
        name: str = kind.name  # type: ignore[attr-defined]  # as `accepts` has checked
        if name in {**self.built_in, **self.unlisted} and kind is not self[name]:
            raise InputError(f"{added} calls itself {name!r}, which is a built-in {self.what}; give it another name")
        self._named[name] = kind
        return kind

    def accepts(self, kind: object) -> bool:
        """Whether this is such a class: derived from the base, with a name and a title."""
        if not isinstance(kind, type) or not issubclass(kind, _imported(self.base)) or isabstract(kind):
            return False
        name, title = getattr(kind, "name", None), getattr(kind, "title", None)
        return isinstance(name, str) and NAME.fullmatch(name) is not None and isinstance(title, str)

    def describe(self, name: str) -> dict[str, Any]:
        """Name, title, paper and fields of a class, with their defaults and meanings, as plain data."""
        kind: Any = self.find(name)
        fields = getattr(kind, "hyperparameters", kind).model_fields.items()
        about = {
            key: {"default": field.default, "meaning": " ".join((field.description or "").split())}
            for key, field in fields
        }
        return {"name": kind.name, "title": kind.title, "paper": kind.paper, "settings": about}

    def address(self, name: str) -> str:
        """Return the name of a class for other processes, or its address if only this call knows it."""
        kind = self._named.get(name)
        return name if kind is None else f"{kind.__module__}:{kind.__qualname__}"

    def _checked(self, kind: type[T], address: str) -> type[T]:
        if not self.accepts(kind):
            needed = f"a class derived from {self.base.replace(':', '.')}, with a title and a name"
            raise InputError(f"{address} is no {self.what}: that is {needed} (lower-case letters, digits, hyphens)")
        return kind


def add_plugin(address: str, *registries: Registry[Any]) -> None:
    """Make the class at `package.module:Class` known to the registry that it belongs to.

    Parameters
    ----------
    address : of the class
    registries : to choose from
    """
    kind = _local(address)
    next((registry for registry in registries if registry.accepts(kind)), registries[0]).add(kind)


def on_first_use(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package whose names are imported when they are first used.

    Parameters
    ----------
    package : its name, for the message about a name that it does not have
    home : name → module that has it
    """

    def attribute(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home[name]), name)

    return attribute


def origin_of(kind: type) -> dict[str, str | None]:
    """The package and version that a class comes from, and its address, for the manifest."""
    top = kind.__module__.partition(".")[0]
    packages = ["dpaa"] if top == "dpaa" else packages_distributions().get(top, [])
    return {
        "package": packages[0] if packages else top,
        "version": version(packages[0]) if packages else None,
        "class": f"{kind.__module__}:{kind.__qualname__}",
    }


def _imported(address: str) -> Any:
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


def _local(address: str) -> Any:
    """Import a class that the call names; modules in the current folder count, as for `python -m`."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return _imported(address)
    except Exception as error:  # it is the caller's own code: whatever it raises is shown
        raise InputError(f"cannot import {address} ({reason(error)}); name it as package.module:Class") from None
