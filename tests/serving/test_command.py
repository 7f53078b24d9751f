"""`dpaa serve` before anything is started."""

from __future__ import annotations

import sys

import pytest

from dpaa.errors import InputError
from dpaa.serving import check_token, is_loopback
from dpaa.serving._server import listen
from tests.command import run_dpaa


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    said = run_dpaa("serve", "run")
    assert (said.code, "pip install 'dpaa[serve]'" in said.err) == (2, True)


def test_who_needs_a_token() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.evil.example", "")))
    check_token("0.0.0.0", None, no_token=True)
    check_token("127.0.0.1", None, no_token=False)
    check_token("0.0.0.0", "x" * 32, no_token=False)


def test_a_used_port_is_refused() -> None:
    with listen("127.0.0.1", 0) as busy, pytest.raises(InputError, match="cannot listen"):
        listen("127.0.0.1", busy.getsockname()[1])
