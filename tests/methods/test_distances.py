from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.methods._clusters import distance_correlation


def slow(one: np.ndarray, two: np.ndarray) -> float:
    """By the definition, distance by distance."""

    def centred(rows: np.ndarray) -> np.ndarray:
        n = len(rows)
        far = np.array([[np.linalg.norm(rows[a] - rows[b]) for b in range(n)] for a in range(n)])
        return far - far.mean(axis=0) - far.mean(axis=1, keepdims=True) + far.mean()

    first, second = centred(one), centred(two)
    return float(np.sqrt((first * second).mean() / np.sqrt((first**2).mean() * (second**2).mean())))


@given(seed=st.integers(0, 200), n=st.integers(3, 9))
def test_it_equals_the_definition(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    one, two = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    found = distance_correlation(torch.from_numpy(one), torch.from_numpy(two)).item()
    assert found == pytest.approx(slow(one, two), abs=1e-4)
    assert 0 <= found <= 1 + 1e-6


@pytest.mark.parametrize("rows", [torch.ones(4, 2), torch.ones(1, 2), torch.zeros(3, 2)])
def test_where_nothing_varies_the_gradient_is_finite(rows: torch.Tensor) -> None:
    rows = rows.clone().requires_grad_()
    found = distance_correlation(rows, torch.randn(len(rows), 2))
    found.backward()
    assert found.isfinite()
    assert torch.isfinite(rows.grad).all()  # type: ignore[arg-type]
