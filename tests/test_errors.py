from __future__ import annotations

import numpy as np
import pytest

from dpaa.errors import InputError, need_type, need_whole, reason


def test_whole_numbers_of_any_library() -> None:
    assert need_whole(np.int64(3), "k") == 3
    for wrong in (True, 1.5, "1", None, np.arange(3)):
        with pytest.raises(InputError, match="k must be a whole number from 1, got "):
            need_whole(wrong, "k")
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        need_whole(0, "k")


def test_types_are_named() -> None:
    with pytest.raises(InputError, match=r"name must be a str, got 3; write text"):
        need_type(3, str, "name", "write text")


def test_reasons_are_short() -> None:
    assert reason(OSError(28, "No space left on device")) == "No space left on device"
    assert reason(ValueError("first line\nsecond")) == "first line"
    assert reason(ValueError()) == "ValueError"
