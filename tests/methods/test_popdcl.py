from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from dpaa.methods.contrast import others
from dpaa.methods.popdcl import PopDCL, corrected_log_sum_exp
from tests.methods.tools import spec_graph, started, triples


@pytest.mark.parametrize("index", [torch.arange(5), torch.tensor([3, 1, 3, 3, 0])])
@pytest.mark.parametrize("cells", [1, 1 << 19])
def test_gradient_of_the_corrected_sum(cells: int, index: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.methods.contrast.BLOCK_CELLS", cells)
    torch.manual_seed(0)
    user, item = (normalize(torch.randn(5, 3)).double().requires_grad_() for _ in (0, 1))
    weight = torch.rand(5).double()

    def fast(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        _, columns, times, hide = others(index, two[index])
        return corrected_log_sum_exp(one, columns, (one * two[index]).sum(dim=1) / 0.4, weight, 0.4, times, hide)

    def slow(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        logits = one @ two[index].T / 0.4
        own = logits.diagonal()[:, None]
        changed = logits - weight[:, None] / 0.4 * torch.exp(own - logits)
        return torch.logsumexp(changed.masked_fill(torch.eye(5, dtype=torch.bool), -torch.inf), dim=1)

    torch.testing.assert_close(fast(user, item), slow(user, item))
    assert torch.autograd.gradcheck(fast, (user, item))


def test_a_batch_of_one_and_tiny_temperatures_stay_finite() -> None:
    method = started(PopDCL, spec_graph(), embedding_size=2, layers=0, temperature=0.01)
    for wanted in (((2, 0, 2),), ((2, 0, 2), (1, 2, 3), (0, 1, 2))):
        batch, rows = triples(*wanted)
        rows._distinct.requires_grad_()
        loss = method.loss(batch, rows)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(rows._distinct.grad).all()
