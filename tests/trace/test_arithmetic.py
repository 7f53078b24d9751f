from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.trace import Premise
from dpaa.trace._arithmetic import Tracer, first_singular_vectors, layer_shares, popularity_direction
from tests.conftest import random_pairs

HALF = math.sqrt(0.5)


@pytest.fixture
def by_hand(toy_graph: BipartiteGraph) -> Tracer:
    """u0–{i0, i1}, u1–{i0}: LightGCN's weights are ½, √½, √½; here they are halved on i0's edges."""
    return Tracer(toy_graph, [EdgeWeights(torch.tensor([0.25, HALF, 0.5 * HALF]))] * 2, residual=0.5)


EGO = torch.tensor([[1.0, 0], [0, 2], [3, 4], [0, 1], [7, 7]], dtype=torch.float64)


def test_weights_and_mass_by_hand(by_hand: Tracer) -> None:
    found = by_hand.layer_weights(0, EGO[2:])
    assert found.mean[0] == pytest.approx(HALF)  # i1, the rarer of two items, is the first half's decile
    assert found.mean[5] == pytest.approx((0.25 + 0.5 * HALF) / 2)
    assert found.relative[0] == pytest.approx(1)
    assert found.relative[5] == pytest.approx(0.5)
    assert found.mean_back is None
    assert [found.mean[decile] for decile in (1, 2, 3, 4, 6, 7, 8, 9)] == [None] * 8
    mass = [HALF * 1, (0.25 + 0.5 * HALF) * 5]
    assert found.mass_share is not None
    assert found.plain_mass_share is not None
    assert found.mass_share[0] == pytest.approx(mass[0] / sum(mass))
    assert found.mass_share[5] == pytest.approx(mass[1] / sum(mass))
    assert found.plain_mass_share[5] == pytest.approx((0.5 + HALF) * 5 / ((0.5 + HALF) * 5 + HALF))


def test_layers_by_hand(by_hand: Tracer) -> None:
    layers = list(by_hand.layers(EGO))
    assert len(layers) == 3
    expected = [
        [0.25 * 3 + 0.5 * 1, 0.25 * 4 + HALF * 1],
        [0.5 * HALF * 3, 0.5 * HALF * 4 + 0.5 * 2],
        [0.25 * 1 + 0.5 * 3, 0.5 * HALF * 2 + 0.5 * 4],
        [HALF * 1, 0.5 * 1],
        [3.5, 3.5],
    ]
    np.testing.assert_allclose(layers[1], expected, rtol=1e-6)


def test_cosines_by_hand(by_hand: Tracer) -> None:
    found = by_hand.premise(EGO, "own", 0)
    assert found.cosine[0] == pytest.approx(0)  # u0 ⟂ i1
    assert found.cosine[5] == pytest.approx((0.6 + 0.8) / 2)
    assert found.verdict == "unknown"  # two items have no fifths
    assert "cannot be judged" in found.sentence


def test_lemma_1_by_hand() -> None:
    """u0 takes items 0..9, u1 takes item 9: one item per decile."""
    graph = BipartiteGraph.from_pairs(Pairs.of([0] * 10 + [1], [*range(10), 9]), 2, 10)
    relative = torch.ones(11)
    relative[0], relative[9], relative[10] = 0.8, 0.5, 0.25
    tracer = Tracer(graph, [EdgeWeights(graph.symmetric_weights().to_user * relative)])
    items = torch.zeros(10, 2, dtype=torch.float64)
    items[:, 0] = 1
    items[0, 0], items[9, 0] = 2, 3
    found = {pair.groups: pair for pair in tracer.contributions(items)}["decile 10 / decile 1"]
    assert found.ratio_without == pytest.approx(2 * 3 / 2)
    assert found.ratio_with == pytest.approx(2 * 0.375 * 3 / (0.8 * 2), rel=1e-6)
    assert found.reduction == pytest.approx(1.59375, rel=1e-6)
    assert found.reduction_by_items == pytest.approx((1 - 0.375 / 0.8) * 3, rel=1e-6)
    assert found.difference < 1e-6


@given(seed=st.integers(0, 10_000), repeated=st.booleans())
def test_lemma_1_and_mass_for_any_weights(seed: int, repeated: bool) -> None:
    rng = np.random.default_rng(seed)
    pairs = random_pairs(rng, 12, 25)
    if repeated:
        pairs = Pairs.of(pairs.user, pairs.item, rng.integers(1, 5, len(pairs)))
    graph = BipartiteGraph.from_pairs(pairs, 12, 25)
    tracer = Tracer(graph, [EdgeWeights(torch.from_numpy(rng.random(graph.n_edges).astype(np.float32) + 0.01))])
    items = torch.from_numpy(rng.normal(size=(25, 3)))
    for pair in tracer.contributions(items):
        assert pair.difference < 1e-6
        assert pair.reduction == pytest.approx(pair.ratio_without - pair.ratio_with)
    found = tracer.layer_weights(0, items)
    for shares in (found.mass_share, found.plain_mass_share):
        assert shares is not None
        assert sum(share or 0 for share in shares) == pytest.approx(1)


@given(seed=st.integers(0, 10_000), layers=st.integers(1, 3), residual=st.sampled_from([0.0, 0.2, 1.0]))
def test_gradient_through_a_layer_equals_dense_jacobians(seed: int, layers: int, residual: float) -> None:
    rng = np.random.default_rng(seed)
    graph = BipartiteGraph.from_pairs(random_pairs(rng, 5, 4, 0.5), 5, 4)
    draw = lambda: torch.from_numpy(rng.random(graph.n_edges))  # noqa: E731
    weights = [EdgeWeights(draw(), draw()) for _ in range(layers)]
    by_readout = torch.from_numpy(rng.normal(size=(9, 3)))
    jacobian, expected = torch.eye(9, dtype=torch.float64), [by_readout]
    for layer in weights:
        matrix = torch.zeros(9, 9, dtype=torch.float64)
        matrix[graph.edge_user, graph.edge_item + 5] = layer.to_user
        matrix[graph.edge_item + 5, graph.edge_user] = layer.back
        jacobian = matrix @ jacobian + residual * torch.eye(9, dtype=torch.float64)
        expected.append(jacobian.T @ by_readout)
    found = Tracer(graph, weights, residual).gradient_norms(by_readout)
    np.testing.assert_allclose(found, [float(part.norm()) / (layers + 1) for part in expected], rtol=1e-9)


@pytest.mark.parametrize(
    ("popular", "verdict", "says"),
    [
        (0.10, "holds", "holds on this data: the inverse interaction weight falls from 0.50"),
        (0.4749, "holds", "falls from 0.50"),
        (0.4751, "flat", "is flat on this data: the inverse interaction weight goes from 0.50"),
        (0.5249, "flat", "goes from 0.50"),
        (0.5251, "reversed", "is reversed on this data: the inverse interaction weight rises from 0.50"),
        (math.nan, "unknown", "cannot be judged"),
    ],
)
def test_the_rule(popular: float, verdict: str, says: str) -> None:
    premise = Premise("own", 0, [], 0.5, popular)
    assert premise.verdict == verdict
    assert says in premise.sentence
    assert Premise("own", 0, [], 0.0, 0.5).verdict == "reversed"
    assert Premise("pretrained", None, [], 0.5, 0.4).sentence.startswith("in the read-out of the pre-trained model the")


def test_fifths_of_synthetic_cosines() -> None:
    """Item k is taken by k + 1 of five users, who are all alike; its cosine with them is given."""
    cosines = [0.9, 0.8, 0.7, 0.6, 0.5]
    user, item = zip(*[(user, item) for item in range(5) for user in range(item + 1)], strict=True)
    graph = BipartiteGraph.from_pairs(Pairs.of(user, item), 5, 5)
    vectors = torch.zeros(10, 2, dtype=torch.float64)
    vectors[:5, 0] = 1
    for index, cosine in enumerate(cosines):
        vectors[5 + index] = torch.tensor([cosine, math.sqrt(1 - cosine**2)])
    found = Tracer(graph, [graph.symmetric_weights()]).premise(vectors, "own", 0)
    assert found.verdict == "reversed"
    assert (found.rarest_fifth, found.most_popular_fifth) == pytest.approx((0.1, 0.5))
    assert found.iiw[::2] == pytest.approx([1 - cosine for cosine in cosines])


def test_lemma_2_normalises_like_with_like() -> None:
    rows = layer_shares([4, 3, 2, 1], [1, 1, 1, 1], emphasis=2, layer_weights=[0.5, 1, 1.5])
    assert [row.readout for row in rows] == pytest.approx([0.4, 0.3, 0.2, 0.1])
    assert [row.readout_of_hops for row in rows[1:]] == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    assert [row.last_hop for row in rows[1:]] == pytest.approx([1 / 14, 4 / 14, 9 / 14])
    assert [row.compounded for row in rows[1:]] == pytest.approx([1 / 41, 4 / 41, 36 / 41])
    assert [row.in_force for row in rows[1:]] == pytest.approx([0.5 / 1.75, 0.5 / 1.75, 0.75 / 1.75])
    assert rows[0].last_hop is None
    assert layer_shares([1, 1], [0, 0])[1].gradient_of_hops == 0
    assert layer_shares([1, 1], [0, 0])[1].compounded is None


# ---------------------------------------------------------------------- the direction of popularity


def dense(graph: BipartiteGraph) -> np.ndarray:
    matrix = np.zeros((graph.n_users, graph.n_items))
    matrix[graph.edge_user.numpy(), graph.edge_item.numpy()] = graph.edge_count.numpy()
    return matrix


def test_first_singular_vectors_are_those_of_dense_algebra() -> None:
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(0), 30, 20), 30, 20)
    users, items = first_singular_vectors(graph)
    left, _, right = np.linalg.svd(dense(graph))
    np.testing.assert_allclose(users, np.abs(left[:, 0]), atol=1e-9)
    np.testing.assert_allclose(items, np.abs(right[0]), atol=1e-9)


def test_all_energy_none_and_chance() -> None:
    rng = np.random.default_rng(0)
    graph = BipartiteGraph.from_pairs(random_pairs(rng, 400, 300), 400, 300)
    users, items = first_singular_vectors(graph)
    on = np.concatenate([np.outer(users, rng.normal(size=5)), np.outer(items, rng.normal(size=5))])
    random = torch.from_numpy(rng.normal(size=(700, 64)))
    off = random.clone()
    off[400:] -= torch.from_numpy(np.outer(items, items @ random[400:].numpy()))
    found = popularity_direction(graph, [torch.from_numpy(on), off], random)
    assert [share.layer for share in found.shares] == [0, 1, None]
    assert found.shares[0].users == pytest.approx(1)
    assert found.shares[0].items == pytest.approx(1)
    assert found.shares[1].items == pytest.approx(0, abs=1e-12)
    assert found.shares[-1].items == pytest.approx(found.chance_items, rel=0.5)


def test_no_pairs_no_direction() -> None:
    graph = BipartiteGraph.from_pairs(Pairs.of([], []), 3, 2)
    found = popularity_direction(graph, [], torch.zeros(5, 4))
    assert (found.cosine, found.shares[-1].users, found.shares[-1].items) == (0, 0, 0)
