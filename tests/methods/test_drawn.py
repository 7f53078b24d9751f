"""Softmax losses over drawn negatives: which of them count, and what is ranked by."""

import pytest
import torch

from dpaa import DDC, METHODS, PSL, InputError, SLAtK
from dpaa.methods._drawn import DrawnSoftmax
from dpaa.methods.base import attach
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.tables import Batch
from tests.methods.tools import loss_of, spec_graph, started

USERS, POSITIVE, NEGATIVE = torch.tensor([0, 2]), torch.tensor([0, 3]), torch.tensor([2, 2])
"""User 0 took items 0 and 1, user 2 took 0, 1 and 3."""


def batch(*drawn: int) -> Batch:
    return Batch(USERS, POSITIVE, NEGATIVE, more_items=(torch.tensor(drawn),))


@pytest.mark.parametrize("name", ["psl", "bsl", "sl-at-k"])
def test_items_that_the_user_took_are_no_negatives(name: str) -> None:
    method = started(METHODS[name], spec_graph(), embedding_size=4, layers=1)  # type: ignore[arg-type]
    assert loss_of(method, batch(2, 1, 0, 1)) == pytest.approx(loss_of(method, batch(2)), abs=1e-6)
    assert loss_of(method, batch(2, 2)) != pytest.approx(loss_of(method, batch(2)), abs=1e-3)  # a draw counts


@pytest.mark.parametrize("kind", [DrawnSoftmax, PSL, SLAtK])
def test_who_took_all_drawn_items_keeps_them(kind: type[DrawnSoftmax]) -> None:
    method = started(kind, spec_graph(), embedding_size=4, layers=1)
    rows = method.tables.forward(batch(1, 0))
    method.loss(batch(1, 0), rows).backward()
    assert torch.isfinite(rows._distinct.grad).all()


def test_the_relu_of_opposite_vectors_has_a_finite_gradient() -> None:
    method = started(PSL, spec_graph(), embedding_size=2, layers=0, activation="relu")
    method.tables.restore({"ego": torch.tensor([[1.0, 0.0]] * 4 + [[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])})
    rows = method.tables.forward(batch(2))
    loss = method.loss(batch(2), rows)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(rows._distinct.grad).all()


def test_ranked_by_cosine_or_by_inner_product() -> None:
    by_cosine, plain = (
        started(DrawnSoftmax, spec_graph(), layers=1, ranking=ranking) for ranking in ("cosine", "inner-product")
    )
    for method in (by_cosine, plain):
        method.finish()
    everybody, item_length = torch.arange(3), plain.item_embedding.norm(dim=1)
    expected = plain.scorer()(everybody) / (plain.user_embedding.norm(dim=1)[:, None] * item_length)
    torch.testing.assert_close(by_cosine.scorer()(everybody), expected)


def test_ddc_needs_the_layers_of_a_lightgcn_of_its_size() -> None:
    with pytest.raises(InputError, match="method ddc corrects a LightGCN of this dataset with embedding_size 64"):
        attach(DDC(), spec_graph()).take_pretrained(Pretrained(torch.zeros(7, 64)))
