from __future__ import annotations

from typing import Any

import pytest

from dpaa.methods.lightgcn import LightGCN
from dpaa.training.trainer import learning_rate_at


@pytest.mark.parametrize(
    ("given", "rates"),
    [
        ({"warmup_steps": 4}, {1: 0.005, 3: 0.015, 4: 0.02, 5: 0.02, 10_000: 0.02}),
        ({"warmup_steps": 4, "learning_rate_schedule": "inverse-sqrt"}, {1: 0.005, 4: 0.02, 16: 0.01, 400: 0.002}),
        ({"warmup_steps": 0, "learning_rate_schedule": "inverse-sqrt"}, {1: 0.02, 4: 0.01}),
        ({}, {1: 0.02, 50: 0.02, 10_000: 0.02}),
    ],
)
def test_rates_by_hand(given: dict[str, Any], rates: dict[int, float]) -> None:
    configured = LightGCN(learning_rate=0.02, **given)
    assert {step: learning_rate_at(step, configured) for step in rates} == pytest.approx(rates)
