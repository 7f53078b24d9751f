from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.methods.resn import principal_energy
from tests.methods.tools import (
    ITEMS,
    USERS,
)


@pytest.mark.parametrize("cells", [1, 1 << 20])
@given(seed=st.integers(0, 99), n=st.integers(1, 6))
def test_it_is_never_above_the_largest_singular_value(cells: int, seed: int, n: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    users, items = (torch.randn(size, 3, generator=draw).double() for size in (n, 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.methods.resn.BLOCK_CELLS", cells)
        for kind, matrix in (("sigmoid", torch.sigmoid(users @ items.T)), ("linear", users @ items.T)):
            largest = torch.linalg.svdvals(matrix)[0].item() ** 2
            assert principal_energy(users, items, kind).item() <= largest * (1 + 1e-9) + 1e-12


def test_blocks_have_the_gradient_of_the_whole() -> None:
    users, items = USERS.clone().requires_grad_(), ITEMS.clone().requires_grad_()
    whole = torch.autograd.grad(principal_energy(users, items, "sigmoid"), (users, items))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.methods.resn.BLOCK_CELLS", 1)
        parts = torch.autograd.grad(principal_energy(users, items, "sigmoid"), (users, items))
    for one, other in zip(parts, whole, strict=True):
        torch.testing.assert_close(one, other)
