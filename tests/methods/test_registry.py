from __future__ import annotations

import pytest

from dpaa.errors import InputError
from dpaa.methods import METHODS, find_method


def test_underscores_are_as_good_as_hyphens() -> None:
    assert find_method("Most_Popular") is METHODS["most-popular"]
    with pytest.raises(InputError, match="there is no method 'lightgnc'; did you mean lightgcn"):
        find_method("lightgnc")
