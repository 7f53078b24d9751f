"""What stands between the fields of a text file: told by its first line."""

from __future__ import annotations

import csv

from dpaa.errors import InputError

SEPARATORS = (",", "\t", ";", "|", "::")
QUOTING = (",", ";")
"""Quotes mean something in files with these alone."""
NAMES = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars (|)", "::": "double colons (::)"}
_GIVEN = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "bar": "|"}
"""Words for what is hard to type."""


def fields(line: str, separator: str) -> list[str]:
    """A line cut at a separator."""
    if separator not in QUOTING:
        return line.rstrip("\r\n").split(separator)
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return line.rstrip("\r\n").split(separator)


def detect(line: str, usual: str, n_columns: int | None = None) -> str:
    """The separator of a first line: the usual one where it cuts it, else the one that cuts it into most fields.

    Where the number of columns is known, the first that cuts the line into so many.
    """
    found = {separator: len(fields(line, separator)) for separator in dict.fromkeys((usual, *SEPARATORS))}
    if n_columns is not None:
        return next((separator for separator, n in found.items() if n == n_columns), usual)
    if found[usual] > 1:
        return usual
    best = max(found, key=lambda separator: found[separator])
    return best if found[best] > 1 else usual


def given_separator(text: str) -> str:
    """A separator that somebody named: a character, `::`, or a word such as `tab`."""
    found = _GIVEN.get(text.lower(), text)
    if found != "::" and (len(found) != 1 or not found.isascii() or found in '"\n\r'):
        raise InputError(f"the separator {text!r} is not one character, `tab` or `::`; choose one of them")
    return found


def in_words(separator: str) -> str:
    """As a sentence names it."""
    return NAMES.get(separator, repr(separator))
