from __future__ import annotations

import pytest
import torch

from dpaa.graph.columns import split_columns
from dpaa.graph.tiles import Columns, unit_sums
from dpaa.training import distributed
from tests.threads import in_threads


def random_rows(n: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, columns, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("size", "count"), [(64, 2), (256, 4), (50, 3)])
def test_sums_and_whole_rows_over_processes(size: int, count: int) -> None:
    rows, weight = random_rows(7, size), random_rows(7, size, 1)
    alone = Columns(size).sum(unit_sums(rows))
    seen = []

    def work(_rank: int) -> None:
        columns = split_columns(size, distributed.peers())
        own = columns.cut(rows).clone().requires_grad_()
        total = columns.sum(unit_sums(own.detach()))
        whole = columns.whole(own)
        (whole * weight).sum().backward()  # type: ignore[no-untyped-call]
        assert own.grad is not None
        collected = columns.to_leader(own.detach())
        seen.append(
            torch.equal(total, alone)
            and torch.equal(whole, rows)
            and torch.equal(own.grad, columns.cut(weight))
            and torch.equal(collected, rows if columns.leads else torch.empty(0))
        )

    sent = in_threads(count, work).sent
    assert seen == [True] * count
    if (size, count) != (50, 3):
        assert sent[0] == 7 * 4, "who holds an aligned block of columns sends one number a row"
