"""`dpaa serve` before anything is started."""

from __future__ import annotations

import sys

import pytest

from dpaa.errors import InputError
from dpaa.serving._server import listen
from tests.command import run_dpaa


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    said = run_dpaa("serve", "run")
    assert (said.code, "pip install 'dpaa[serve]'" in said.err) == (2, True)


def test_a_used_port_is_refused() -> None:
    with listen("127.0.0.1", 0) as busy, pytest.raises(InputError, match="cannot listen"):
        listen("127.0.0.1", busy.getsockname()[1])
