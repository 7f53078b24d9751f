import math

import pytest
import torch

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.trace._trace import Premise, Tracer

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
    assert [found.mean[decile] for decile in (1, 2, 3, 4, 6, 7, 8, 9)] == [None] * 8
    mass = [HALF * 1, (0.25 + 0.5 * HALF) * 5]
    assert found.mass_share[0] == pytest.approx(mass[0] / sum(mass))
    assert found.mass_share[5] == pytest.approx(mass[1] / sum(mass))
    assert found.plain_mass_share[5] == pytest.approx((0.5 + HALF) * 5 / ((0.5 + HALF) * 5 + HALF))


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
    reduction = found.ratio_without - found.ratio_with
    assert reduction == pytest.approx((1 - 0.375 / 0.8) * 3, rel=1e-6)  # (1 − r̄_p/r̄_q) · I_p/I_q


@pytest.mark.parametrize(
    ("popular", "verdict", "says"),
    [
        (0.4749, "holds", "the premise holds; the inverse interaction weight is 0.50 for the rarest fifth"),
        (0.4751, "flat", "the premise is flat"),
        (0.5249, "flat", "the premise is flat"),
        (0.5251, "reversed", "the premise is reversed"),
        (math.nan, "unknown", "cannot be judged"),
    ],
)
def test_the_rule(popular: float, verdict: str, says: str) -> None:
    premise = Premise("own", 0, [], 0.5, popular)
    assert premise.verdict == verdict
    assert says in premise.sentence
    assert Premise("own", 0, [], 0.0, 0.5).verdict == "reversed"
    assert Premise("pretrained", None, [], 0.5, 0.4).sentence.startswith("read-out of the pre-trained model: the")


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
