from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.methods.als_reg import AlsReg, group_spread
from dpaa.methods.lightgcn import LightGCN
from tests.methods.tools import ITEMS, spec_graph, started, triples


def test_by_hand() -> None:
    head = torch.tensor([True, True, False, False])
    assert group_spread(ITEMS, head).item() == pytest.approx(5.5, abs=1e-5)
    method = started(AlsReg, spec_graph(), embedding_size=2, l2=0, group_weight=1, head_share=0.5)
    assert method.popular.tolist() == head.tolist()
    batch, rows = triples((0, 0, 2), (0, 1, 3), (0, 0, 3))  # every item, some twice
    fit = started(LightGCN, spec_graph(), embedding_size=2, l2=0).loss(batch, rows)
    assert (method.loss(batch, rows) - fit).item() == pytest.approx(5.5 / 16, abs=1e-5)


@given(seed=st.integers(0, 99), n=st.integers(1, 7))
def test_it_is_the_sum_over_pairs_of_a_group(seed: int, n: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    rows, popular = torch.randn(n, 3, generator=draw).double(), torch.rand(n, generator=draw) < 0.5
    expected = sum(
        0.5 * (rows[a] - rows[b]).square().sum().item() for a in range(n) for b in range(n) if popular[a] == popular[b]
    )
    assert group_spread(rows, popular).item() == pytest.approx(expected, abs=1e-9)
