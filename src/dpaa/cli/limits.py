"""Limits of lists by columns of the items, as they are typed: `genre=3`, `in_stock=true`."""

from __future__ import annotations

from dpaa.errors import InputError


def read_only(given: list[str]) -> dict[str, list[str]]:
    """`COLUMN=VALUE` → the values that are allowed in each column."""
    found: dict[str, list[str]] = {}
    for text in given:
        column, equals, value = text.rpartition("=")
        if not equals or not column.strip() or not value.strip():
            raise InputError(f"--only takes COLUMN=VALUE, got {text!r}; write for example --only in_stock=true")
        found.setdefault(column.strip(), []).append(value.strip())
    return found


def read_limits(given: list[str], option: str) -> dict[str, int]:
    """`COLUMN=N` → N of each column."""
    found: dict[str, int] = {}
    for text in given:
        column, equals, number = text.rpartition("=")
        if not equals or not column.strip() or not number.strip().isdecimal() or int(number) < 1:
            raise InputError(f"{option} takes COLUMN=N with N from 1, got {text!r}; write for example {option} genre=3")
        if column.strip() in found:
            raise InputError(f"{option} is given twice for column {column.strip()!r}; give it once")
        found[column.strip()] = int(number)
    return found
