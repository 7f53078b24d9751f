from __future__ import annotations

import pytest

from dpaa.data.dataset import Dataset
from dpaa.graph.kernels import KERNELS
from dpaa.methods.lightgcn import LightGCN
from dpaa.runs.build import make_method
from dpaa.runs.calibrate import _seconds, calibrated

SETTINGS = {"embedding_size": 8, "layers": 2, "threads": 1, "l2": 0.5}


@pytest.mark.parametrize("fastest", KERNELS)
def test_the_fastest_kernel_is_kept_and_nothing_else_changes(
    small_world: Dataset, monkeypatch: pytest.MonkeyPatch, fastest: str
) -> None:
    monkeypatch.setattr("dpaa.runs.calibrate._seconds", lambda _, kernel: 0.001 if kernel == fastest else 0.0125)
    said: list[str] = []
    method = make_method(small_world, "lightgcn", SETTINGS)
    found = calibrated(method, said.append)
    assert found.settings.model_dump() == method.settings.model_dump() | {"kernel": fastest}
    assert found.graph is method.graph
    times = [f"{kernel} {'1.00' if kernel == fastest else '12.50'} ms" for kernel in KERNELS]
    assert said == [f"calibration: {', '.join(times)}; {fastest} it is"]


def test_what_does_not_propagate_is_left_as_it_is(small_world: Dataset) -> None:
    said: list[str] = []
    method = make_method(small_world, "most-popular", {})
    assert calibrated(method, said.append) is method
    assert said == ["nothing to calibrate: most-popular does not propagate"]


def test_every_kernel_can_be_timed_without_changing_the_method(small_world: Dataset) -> None:
    method = make_method(small_world, "lightgcn", SETTINGS)
    assert isinstance(method, LightGCN)
    before = method.settings
    assert all(_seconds(method, kernel) > 0 for kernel in KERNELS)
    assert method.settings is before
