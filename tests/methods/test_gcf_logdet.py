from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.methods.gcf_logdet import GcfLogdet, log_det_divergence, spread
from dpaa.methods.lightgcn import LightGCN
from tests.methods.tools import ITEMS, USERS, spec_graph, started, triples


def test_by_hand() -> None:
    users, items = USERS.double(), ITEMS.double()
    assert log_det_divergence(users.T @ users).item() == pytest.approx(0.90139, abs=1e-5)
    assert log_det_divergence(items.T @ items).item() == pytest.approx(0.99592, abs=1e-5)
    assert log_det_divergence(spread(items)).item() == pytest.approx(0, abs=1e-6)


@given(n=st.integers(1, 8), seed=st.integers(0, 99))
def test_it_is_never_below_zero(n: int, seed: int) -> None:
    rows = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    assert log_det_divergence(spread(rows)).item() >= -1e-9
    assert log_det_divergence(torch.eye(4)).item() == 0


def test_repeats_count_once() -> None:
    method = started(GcfLogdet, spec_graph(), embedding_size=2, l2=0, divergence_weight=1)
    plain = started(LightGCN, spec_graph(), embedding_size=2, l2=0)
    batch, rows = triples((0, 0, 3), (1, 2, 3), (0, 0, 3))
    far = method.loss(batch, rows) - plain.loss(batch, rows)
    assert far.item() == pytest.approx(0, abs=1e-5)  # users 0, 1 and items 0, 2 stand at right angles
