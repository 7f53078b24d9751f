"""Losses as pure functions of the batch's rows."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus


def margins(user: Tensor, liked: Tensor, other: Tensor) -> Tensor:
    """`s_ui − s_uj` with `s` the inner product.  (batch,)."""
    return torch.sum(user * (liked - other), dim=1)


def bpr(user: Tensor, liked: Tensor, other: Tensor) -> Tensor:
    """Bayesian personalised ranking, `mean softplus(s_uj − s_ui)`.  A scalar."""
    return softplus(-margins(user, liked, other)).mean()


def half_squares(*rows: Tensor) -> Tensor:
    """`½ Σ ‖row‖² / B` over the batch's rows with repeats, B the batch's actual length.  A scalar."""
    return torch.stack([row.square().sum() for row in rows]).sum() * (0.5 / len(rows[0]))
