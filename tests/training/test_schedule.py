from __future__ import annotations

import pytest

from dpaa.methods.settings import TrainedSettings
from dpaa.training.stopping import learning_rate_at


def test_it_rises_in_a_straight_line_and_stays() -> None:
    settings = TrainedSettings(learning_rate=0.02, warmup_steps=4, learning_rate_schedule="constant")
    found = [learning_rate_at(step, settings) for step in (1, 2, 3, 4, 5, 10_000)]
    assert found == pytest.approx([0.005, 0.01, 0.015, 0.02, 0.02, 0.02])


def test_it_rises_in_a_straight_line_and_falls_with_the_root() -> None:
    settings = TrainedSettings(learning_rate=0.02, warmup_steps=4, learning_rate_schedule="inverse-sqrt")
    found = [learning_rate_at(step, settings) for step in (1, 2, 3, 4, 16, 400)]
    assert found == pytest.approx([0.005, 0.01, 0.015, 0.02, 0.01, 0.002])


def test_the_default_by_hand() -> None:
    assert [learning_rate_at(step, TrainedSettings()) for step in (1, 50, 100, 400, 10_000)] == [1e-3] * 5


def test_without_a_warm_up_the_root_falls_from_the_first_step() -> None:
    settings = TrainedSettings(learning_rate=0.02, warmup_steps=0, learning_rate_schedule="inverse-sqrt")
    assert [learning_rate_at(step, settings) for step in (1, 4)] == pytest.approx([0.02, 0.01])


def test_without_a_warm_up_it_is_constant_to_the_bit() -> None:
    settings = TrainedSettings(learning_rate=1e-3, warmup_steps=0, learning_rate_schedule="constant")
    assert {learning_rate_at(step, settings) for step in range(1, 200)} == {1e-3}
