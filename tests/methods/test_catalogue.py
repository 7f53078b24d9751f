from __future__ import annotations

from dpaa.methods.catalogue import catalogue
from dpaa.methods.registry import METHODS


def test_every_method_is_described() -> None:
    methods = catalogue()
    assert set(methods) >= set(METHODS.built_in)
    assert all(methods[name]["title"] and methods[name]["settings"] is not None for name in METHODS.built_in)
    assert methods["lightgcn"]["settings"]["layers"]["default"] == 3
    assert "layers" in methods["lightgcn"]["settings"]["layers"]["meaning"]


def test_names_as_they_are_typed() -> None:
    assert list(catalogue("DPAA_as_printed")) == ["dpaa-as-printed"]
