from __future__ import annotations

import pytest

from dpaa.cli.progress import duration


@pytest.mark.parametrize(("seconds", "words"), [(45, "45 s"), (180, "3 min"), (9000, "2.5 h")])
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
