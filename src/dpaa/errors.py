"""Errors in the user's input or call: one sentence, exit code 2, no traceback."""

import operator
import re
from importlib import import_module
from typing import Any


class InputError(ValueError):
    """The input or the call is wrong: a sentence that names file, row, column or option, the value and the remedy."""


def need_type(value: object, kind: type, name: str, remedy: str) -> None:
    """Check the type of an argument, so that a wrong one gives a clear message instead of a late Python error."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be a {kind.__name__}, got {_shown(value)}; {remedy}")


def need_whole(value: Any, name: str, least: int = 1) -> int:
    """Check that a value is a whole number (Python's or numpy's) of at least `least`."""
    whole: Any = None if isinstance(value, bool) else value
    try:
        number = operator.index(whole)
    except TypeError:
        raise InputError(f"{name} must be a whole number from {least}, got {_shown(value)}") from None
    if number < least:
        raise InputError(f"{name} must be at least {least}, got {value!r}")
    return number


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__name__}"


def reason(error: BaseException) -> str:
    """Describe briefly why something failed: the system's error text, else the first line of the message."""
    message = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0] or type(error).__name__
    return re.sub(r"^parquet: File out of specification: underlying IO error: | \(os error \d+\)$", "", str(message))


class DivergedError(InputError):
    """The loss became NaN, or stayed far above its initial value, so resuming from a checkpoint would not help."""


class MissingExtraError(InputError):
    """A command needs an optional dependency that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs packages that are not installed; install them with: pip install 'dpaa[{extra}]'"
        )


def import_extra(module: str, what: str, extra: str) -> Any:
    """Import a module of an optional dependency.

    Parameters
    ----------
    module : name to import
    what : the feature that needs it, for the message
    extra : the extra of `pip install 'dpaa[…]'` that brings it

    Returns
    -------
    the module
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(what, extra) from None
