"""Numbers in sentences."""

from __future__ import annotations

from dpaa._text import counted


def test_one_is_no_many() -> None:
    assert [counted(number, "user has", "users have") for number in (0, 1, 1204)] == [
        "0 users have", "1 user has", "1,204 users have"
    ]  # fmt: skip
