from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.errors import InputError
from dpaa.graph.columns import split_columns
from dpaa.graph.propagation import UNIT, Columns, add_in_pairs, unit_sums
from tests.threads import ThreadGroup, in_threads


def random_rows(n: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, columns, generator=torch.Generator().manual_seed(seed))


def group(rank: int, count: int) -> ThreadGroup:
    found = ThreadGroup.__new__(ThreadGroup)
    found.rank, found.count = rank, count
    return found


@given(size=st.integers(1, 300), count=st.integers(2, 6), seed=st.integers(0, 99))
def test_a_sum_over_columns_does_not_depend_on_who_holds_them(size: int, count: int, seed: int) -> None:
    """Units are joined in the same tree, here played without processes: everybody's few numbers side by side."""
    count = min(count, -(-size // UNIT))
    products = random_rows(5, size, seed)
    alone = Columns(size).sum(unit_sums(products))
    parts = [split_columns(size, group(rank, count)) for rank in range(count)]
    few = [part for one in parts for part in one.joined(unit_sums(one.cut(products).clone()))]
    assert torch.equal(add_in_pairs(few)[0], alone)
    torch.testing.assert_close(alone, products.sum(dim=1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("size", "count"), [(64, 2), (64, 4), (256, 4), (96, 4), (50, 3), (128, 3)])
def test_sums_and_whole_rows_over_processes(size: int, count: int) -> None:
    rows, weight = random_rows(7, size), random_rows(7, size, 1)
    alone = Columns(size).sum(unit_sums(rows))
    seen = []

    def work(group: ThreadGroup) -> None:
        columns = split_columns(size, group)
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

    sent = in_threads(count, work, work).sent
    assert seen == [True] * count
    if (size, count) in ((64, 2), (64, 4), (256, 4)):
        assert sent[0] == 7 * 4, "who holds an aligned block of columns sends one number a row"


def test_too_few_columns_are_said_to_be_too_few() -> None:
    with pytest.raises(
        InputError, match="embedding_size 32 can be shared by at most 2 processes, 16 columns each, got 3"
    ):
        split_columns(32, group(0, 3))
