"""The least of what machine, system and container leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpaa import _machine as memory
from dpaa._machine import memory_at_hand


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 8,000,000 bytes whose system files are written here."""
    monkeypatch.setattr(memory, "Path", lambda place: tmp_path / place.lstrip("/"))
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4000, "SC_PHYS_PAGES": 2000}.__getitem__)
    for folder in ("proc", "sys/fs/cgroup"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def test_a_system_that_tells_nothing_has_what_the_machine_has(root: Path) -> None:
    assert memory_at_hand() == 8_000_000


def test_what_others_have_taken_is_not_at_hand(root: Path) -> None:
    (root / "proc/meminfo").write_text("MemTotal:    7000 kB\nMemFree:      10 kB\nMemAvailable:  3000 kB\n")
    assert memory_at_hand() == 3000 * 1024


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [
        ("5000000", "4100000", 900_000),
        ("5000000\n", "100\n", 3000 * 1024),  # the system has less than the container may take
        ("max\n", "100\n", 3000 * 1024),
        ("5000000", None, 3000 * 1024),
    ],
)
def test_a_container_has_the_rest_of_its_limit(root: Path, limit: str, used: str | None, expected: int) -> None:
    (root / "proc/meminfo").write_text("MemAvailable:  3000 kB\n")
    (root / "sys/fs/cgroup/memory.max").write_text(limit)
    if used is not None:
        (root / "sys/fs/cgroup/memory.current").write_text(used)
    assert memory_at_hand() == expected
