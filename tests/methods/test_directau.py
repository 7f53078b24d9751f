from __future__ import annotations

import pytest
import torch

from dpaa.methods.directau import DirectAU
from tests.methods.spec import spec_graph, triples
from tests.methods.tools import l2_of, loss_of, readout_of, some_graph, started


def test_by_hand() -> None:
    """Users 0, 1, 2 with items 0, 2, 1: the same directions, so all that is left is evenness."""
    batch, rows = triples((0, 0, 3), (1, 2, 3), (2, 1, 3))
    method = started(DirectAU, spec_graph(), embedding_size=2, l2=0)
    assert method.loss(batch, rows).item() == pytest.approx(-1.54791, abs=1e-5)
    assert started(DirectAU, spec_graph(), embedding_size=2, l2=0, uniformity_weight=0).loss(
        batch, rows
    ).item() == pytest.approx(0, abs=1e-6)


def test_loss_equals_the_formula() -> None:
    method = started(DirectAU, some_graph(), embedding_size=8, layers=2, l2=0.0, uniformity_weight=3.0)
    batch = next(method.batches(1))
    final = torch.nn.functional.normalize(torch.from_numpy(readout_of(method)))
    user, item = final[batch.users], final[batch.positive + method.graph.n_users]
    even = [torch.pdist(side).square().mul(-2).exp().mean().log() for side in (user, item)]
    expected = (user - item).square().sum(dim=1).mean() + 1.5 * (even[0] + even[1])
    assert loss_of(method, batch) == pytest.approx(expected.item(), abs=1e-5)
    assert l2_of(method, batch) == 0


def test_alignment_is_never_below_zero() -> None:
    method = started(DirectAU, some_graph(), embedding_size=8, uniformity_weight=0)
    assert loss_of(method, next(method.batches(1))) >= 0
