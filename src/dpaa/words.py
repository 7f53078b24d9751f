"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    """`1 user has`, `1,204 users have`."""
    return f"{number:,} {one if number == 1 else many}"
