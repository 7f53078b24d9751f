"""The contrastive primitive against dense formulas, its gradients, and numbers by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.methods.contrast import info_nce, log_sum_exp, others, uniformity


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("rows", [0, 1])
def test_without_a_pair_there_is_nothing_to_spread(rows: int) -> None:
    alone = torch.ones(rows, 2, requires_grad=True)
    uniformity(alone).backward()
    assert uniformity(alone).item() == 0


@pytest.mark.parametrize("kept", [0, 1 << 20])
@pytest.mark.parametrize("cells", [1, 7, 1 << 20])
@given(n=st.integers(1, 8), m=st.integers(1, 9), seed=st.integers(0, 99), biased=st.booleans())
def test_blocks_equal_the_whole_matrix(cells: int, kept: int, n: int, m: int, seed: int, biased: bool) -> None:
    one, two = (part.requires_grad_() for part in (drawn(n, 4, seed=seed), drawn(m, 4, seed=seed + 1)))
    bias = drawn(m, seed=seed + 2) if biased else None
    mask = drawn(n, m, seed=seed + 3) > 0.5
    dense = (one @ two.T / 0.3 + (0 if bias is None else bias)).masked_fill(mask, -torch.inf)
    some = ~mask.all(dim=1)
    weight = drawn(n, seed=seed + 4)
    expected = torch.autograd.grad((torch.logsumexp(dense[some], dim=1) * weight[some]).sum(), (one, two))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.methods.contrast.BLOCK_CELLS", cells)
        patch.setattr("dpaa.methods.contrast.KEPT_CELLS", kept)
        found = log_sum_exp(one, two, 0.3, bias, lambda logits, part: logits.masked_fill_(mask[part], -torch.inf))
        by = torch.autograd.grad((found[some] * weight[some]).sum(), (one, two))
    torch.testing.assert_close(found, torch.logsumexp(dense, dim=1))
    assert (found[~some] == -torch.inf).all()
    for mine, theirs in zip(by, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_no_matrix_of_all_rows_and_columns_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0
    plain = torch.mm

    def watched(one: Tensor, two: Tensor, **how: Tensor) -> Tensor:
        nonlocal largest
        found = plain(one, two, **how)
        largest = max(largest, found.numel())
        return found

    monkeypatch.setattr(torch, "mm", watched)
    monkeypatch.setattr("dpaa.methods.contrast.BLOCK_CELLS", 1000)
    monkeypatch.setattr("dpaa.methods.contrast.KEPT_CELLS", 1000)
    one = drawn(64, 4).requires_grad_()
    info_nce(one, drawn(500, 4), 0.1, torch.arange(64)).backward()
    assert largest <= 1000


@pytest.mark.parametrize("cells", [1, 1 << 20])
@given(index=st.lists(st.integers(0, 4), min_size=1, max_size=9), seed=st.integers(0, 99))
def test_distinct_columns_equal_all_columns_without_the_own(cells: int, index: list[int], seed: int) -> None:
    table, user = drawn(5, 3, seed=seed).requires_grad_(), drawn(len(index), 3, seed=seed + 1)
    rows, which = table[index], torch.tensor(index)
    dense = (user @ rows.T / 0.3).masked_fill(torch.eye(len(index), dtype=torch.bool), -torch.inf)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.methods.contrast.BLOCK_CELLS", cells)
        for named in (which, None):
            found, columns, bias, hide = others(named, rows)
            assert found.tolist() == (sorted(set(index)) if named is not None else list(range(len(index))))
            sums = log_sum_exp(user, columns, 0.3, bias, hide)
            torch.testing.assert_close(sums, torch.logsumexp(dense, dim=1))
            if len(index) > 1:
                mine, slow = (
                    torch.autograd.grad(part.sum(), table, retain_graph=True)[0] for part in (sums, dense.logsumexp(1))
                )
                torch.testing.assert_close(mine, slow)


@pytest.mark.parametrize("cells", [1, 7, 1 << 20])
def test_gradient_of_uniformity(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.methods.contrast.BLOCK_CELLS", cells)
    rows = normalize(drawn(6, 3)).requires_grad_()
    pairs = torch.pdist(rows).square().mul(-2).exp().mean().log()
    torch.testing.assert_close(uniformity(rows), pairs)
    slow = (2 - 2 * (rows @ rows.T)[torch.triu_indices(6, 6, 1).unbind()]).mul(-2).exp().mean().log()  # at length 1
    mine, theirs = (torch.autograd.grad(part, rows, retain_graph=True)[0] for part in (uniformity(rows), slow))
    torch.testing.assert_close(mine, theirs)


def test_rows_that_count_several_times() -> None:
    one, two, own = drawn(4, 3), drawn(6, 3, seed=1), torch.tensor([2, 0, 5, 2])
    times = torch.tensor([3, 1, 2, 1])
    repeated = info_nce(one.repeat_interleave(times, 0), two, 0.2, own.repeat_interleave(times))
    torch.testing.assert_close(info_nce(one, two, 0.2, own, times), repeated)
