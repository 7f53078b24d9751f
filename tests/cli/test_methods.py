"""`dpaa methods`: the list, and the settings of one."""

from __future__ import annotations

import json

from dpaa.methods import METHODS
from tests.command import dpaa_ok


def test_methods() -> None:
    shown = dpaa_ok("methods").out
    assert all(name in shown for name in METHODS)
    listed = json.loads(dpaa_ok("methods", "--json").out)
    assert list(listed) == list(METHODS)
    assert "embedding_size = 64" in dpaa_ok("methods", "lightgcn").out
    one = json.loads(dpaa_ok("methods", "most_popular", "--json").out)
    assert one["most-popular"]["settings"]["seed"]["default"] == 0
