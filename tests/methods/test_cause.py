from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.data.randomised import with_randomised
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.cause import CausE
from dpaa.methods.lightgcn import LightGCN
from dpaa.runs.fit import make_method
from dpaa.training.trainer import Trainer
from tests.methods.spec import spec_graph, triples
from tests.methods.tools import CrossEntropyLightGCN, l2_of, loss_of, readout_of, some_graph, started, trained

SAMPLE = Pairs.of([0, 1, 1, 5, 9, 9], [3, 4, 7, 3, 0, 11])


def with_sample(**settings: object) -> CausE:
    method = CausE(some_graph(), CausE.settings_type(**settings))
    method.take_randomised(SAMPLE)
    return method


def test_without_agreement_it_is_lightgcn_with_cross_entropy_bit_for_bit() -> None:
    how: dict[str, object] = {"embedding_size": 40, "layers": 2, "batch_size": 16, "epochs": 3, "seed": 5}
    method = with_sample(agreement_weight=0, learning_rate=0.01, **how)
    Trainer(method).run()
    assert torch.equal(method.ego.rows(), trained(CrossEntropyLightGCN, some_graph()).ego.rows())


def test_loss_equals_the_slow_twin() -> None:
    method = with_sample(embedding_size=8, layers=2, agreement_weight=0.3)
    method.start()
    batch = next(method.batches(1))
    other = started(LightGCN, BipartiteGraph.from_pairs(SAMPLE, 30, 20), embedding_size=8, layers=2)
    other.ego.copy_(method.treatment.detach())
    z, t = readout_of(method), readout_of(other)

    def entropy(vectors: np.ndarray, users: torch.Tensor, liked: torch.Tensor, others: torch.Tensor) -> float:
        good = np.sum(vectors[users] * vectors[liked + 30], axis=1)
        bad = np.sum(vectors[users] * vectors[others + 30], axis=1)
        return float(np.mean(np.log1p(np.exp(-good)) + np.log1p(np.exp(bad))))

    randomised = method.randomised_triples(batch)
    assert sorted(zip(randomised[0].tolist(), randomised[1].tolist(), strict=True)) == sorted(
        zip(SAMPLE.user.tolist(), SAMPLE.item.tolist(), strict=True)
    )
    expected = entropy(z, batch.users, batch.positive, batch.negative) + entropy(t, *randomised) + l2_of(method, batch)
    gap = (z - t) ** 2
    items = torch.cat([batch.positive, batch.negative]) + 30
    expected += 0.3 * (gap[batch.users].mean() + gap[items].mean())
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-5)


def test_worked_number() -> None:
    """Both tables alike and no randomised triple but (u1, i2): ln(1 + e⁻¹) + ln(1 + e⁻¹) more than the log's own."""
    method = CausE(spec_graph(), CausE.settings_type(embedding_size=2, layers=0, l2=0, agreement_weight=1.0))
    method.take_randomised(Pairs.of([1], [2]))
    method.start()
    batch, rows = triples((0, 0, 2))
    with torch.no_grad():
        method.treatment.zero_()
        method.treatment[1], method.treatment[3 + 2] = torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0])
    # the log: s = 1 and 0; randomised: 1 and, whatever item stands against it, 0; apart: z_u0 = (1, 0), z_i0 = (1, 0)
    log = np.log1p(np.exp(-1)) + np.log(2)
    apart = 1 / 2 + 1 / 4  # of u0; of i0, beside i2 whose vectors are the same
    assert method.loss(batch, rows).item() == pytest.approx(log + np.log1p(np.exp(-1)) + np.log(2) + apart, abs=1e-5)


def test_the_second_table_pulls_the_first() -> None:
    how: dict[str, object] = {"embedding_size": 8, "layers": 1, "batch_size": 16, "epochs": 20, "learning_rate": 0.02}
    loose, tight = with_sample(agreement_weight=1e-3, **how), with_sample(agreement_weight=10.0, **how)

    def apart(method: CausE) -> float:
        Trainer(method).run()
        beside = torch.stack(list(method._beside.differentiable_layers(method.treatment))).mean(dim=0)
        own = torch.cat([method.user_embedding, method.item_embedding])
        return float((own - beside.detach()).square().mean())

    assert apart(tight) < 0.5 * apart(loose)


def test_without_a_randomised_sample_one_sentence(small_world: Dataset) -> None:
    with pytest.raises(
        InputError, match=r"cause also learns from pairs of randomised exposure, and .* carries none; make"
    ):
        make_method(small_world, "cause", {})
    assert make_method(with_randomised(small_world, 0.3), "cause", {}).needs_randomised
