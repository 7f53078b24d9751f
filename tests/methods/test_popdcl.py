from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from dpaa.methods.contrast import others
from dpaa.methods.popdcl import PopDCL, corrected_log_sum_exp
from dpaa.methods.rows import Batch
from dpaa.methods.ssm import SSM
from tests.methods.spec import spec_graph, triples
from tests.methods.tools import loss_of, readout_of, some_graph, started, trained


def slow_loss(method: PopDCL, batch: Batch, vectors: np.ndarray) -> float:
    """The formula, pair by pair."""
    graph, settings = method.graph, method.settings
    count = graph.item_degree.double().numpy()
    taken = [
        sum(count[i] for u, i in zip(graph.edge_user.tolist(), graph.edge_item.tolist(), strict=True) if u == user)
        for user in range(graph.n_users)
    ]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    users, items = batch.users.tolist(), batch.positive.tolist()

    def cosine(user: int, item: int) -> float:
        return float(unit[user] @ unit[graph.n_users + item])

    terms = []
    for b, (user, item) in enumerate(zip(users, items, strict=True)):
        own = cosine(user, item)
        others = [cosine(user, other) for c, other in enumerate(items) if c != b]
        share = min(taken[user] / count.sum(), 1 - 1e-6)
        plus = settings.correction / (1 + np.exp(-count[item] / taken[user] * np.mean(others)))
        minus = [settings.correction * share / (1 - share) * np.exp((own - f) / settings.temperature) for f in others]
        top = np.exp((own - plus) / settings.temperature)
        bottom = sum(np.exp((f - m) / settings.temperature) for f, m in zip(others, minus, strict=True))
        terms.append(-np.log(top / (top + bottom)))
    return float(np.mean(terms))


def test_without_corrections_it_is_ssm() -> None:
    graph = some_graph()
    found = trained(PopDCL, graph, correction=0, temperature=0.2)
    torch.testing.assert_close(found.ego.rows(), trained(SSM, graph, temperature=0.2).ego.rows())


@pytest.mark.parametrize("correction", [0.5, 1.0])
def test_loss_equals_the_slow_twin(correction: float) -> None:
    method = started(PopDCL, some_graph(), embedding_size=8, layers=2, l2=0, correction=correction, temperature=0.3)
    batch = next(method.batches(1))
    assert loss_of(method, batch) == pytest.approx(slow_loss(method, batch, readout_of(method)), abs=1e-5)


def test_worked_number() -> None:
    """Two pairs, (u0, i1) and (u1, i0), τ = .5.

    D = 5, 4, 6 of 7 interactions; of the first f = .7071, the other's 1: M⁺ = σ(2/5) = .59869,
    M⁻ = 5/2 e^((.7071 − 1)/.5) = 1.39171; of the second f = 0, the other's .7071: M⁺ = σ(3/4 · .7071) = .62955,
    M⁻ = 4/3 e^(−.7071/.5) = .32416.
    """
    method = started(PopDCL, spec_graph(), embedding_size=2, layers=0, temperature=0.5, l2=0)
    batch, rows = triples((0, 1, 2), (1, 0, 3))
    first = np.log1p(np.exp((1 - 1.39171 - 0.70711 + 0.59869) / 0.5))
    second = np.log1p(np.exp((0.70711 - 0.32416 - 0 + 0.62955) / 0.5))
    assert method.loss(batch, rows).item() == pytest.approx((first + second) / 2, abs=1e-4)


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
        rows._readout.requires_grad_()
        loss = method.loss(batch, rows)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(rows._readout.grad).all()
