from __future__ import annotations

from typing import Any

import pytest

from dpaa.errors import InputError
from dpaa.methods import METHODS, find_method
from dpaa.methods.base import Method
from dpaa.methods.settings import Settings, TrainedSettings


def test_underscores_are_as_good_as_hyphens() -> None:
    assert find_method("Most_Popular") is METHODS["most-popular"]
    with pytest.raises(InputError, match="there is no method 'lightgnc'; did you mean lightgcn"):
        find_method("lightgnc")


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_found_by_name_class_settings_and_configured(name: str) -> None:
    kind = METHODS[name]
    assert kind.name == name
    for wanted in (name, kind, kind.settings_type, kind.settings_type()):
        assert find_method(wanted) is kind


@pytest.mark.parametrize("wrong", [None, 3, int, Settings, Settings(), TrainedSettings(), Method])
def test_what_is_no_method_is_refused_with_those_that_are(wrong: Any) -> None:
    with pytest.raises(
        InputError, match="is neither the name nor the class of a method; known methods: lightgcn, dpaa"
    ):
        find_method(wrong)
