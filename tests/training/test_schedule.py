from __future__ import annotations

import pytest

from dpaa.methods.settings import TrainedSettings
from dpaa.training.schedule import learning_rate_at


def test_it_rises_in_a_straight_line_and_stays() -> None:
    settings = TrainedSettings(learning_rate=0.02, warmup_steps=4)
    found = [learning_rate_at(step, settings) for step in (1, 2, 3, 4, 5, 10_000)]
    assert found == pytest.approx([0.005, 0.01, 0.015, 0.02, 0.02, 0.02])


def test_the_default_has_half_its_rate_after_fifty_steps() -> None:
    assert learning_rate_at(50, TrainedSettings()) == pytest.approx(5e-3)
    assert learning_rate_at(100, TrainedSettings()) == 1e-2


def test_without_a_warm_up_it_is_constant_to_the_bit() -> None:
    settings = TrainedSettings(learning_rate=1e-3, warmup_steps=0)
    assert {learning_rate_at(step, settings) for step in range(1, 200)} == {1e-3}
