"""Every built-in re-ranker on whole blocks: neutral settings, candidates, histories; against slow twins."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.kernels import top_k
from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import Candidates, Reranker, parse_reranker, reranked
from dpaa.ranking.rerankers.calibrated_popularity import CalibratedPopularity
from dpaa.ranking.rerankers.fa_ir import FAIR
from dpaa.ranking.rerankers.pc import PC
from dpaa.ranking.rerankers.scale import Scale
from dpaa.ranking.rerankers.steck import Steck
from dpaa.ranking.rerankers.xquad import XQuAD
from tests.methods.tools import some_graph
from tests.reranking.slow_rerank import (
    assert_greedy,
    calibration_gain,
    from_zero_to_one,
    groups_by_popularity,
    slow_compensation,
    slow_fewest,
    slow_scale,
    xquad_gain,
)

NAMES = [name for name in RERANKERS.built_in if name != "dial"]
every_reranker = pytest.mark.parametrize("name", NAMES)
strengths = st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0])


@cache
def graph() -> BipartiteGraph:
    return some_graph(40, 30)


def block(seed: int, whole: bool = False, graph_: BipartiteGraph | None = None) -> torch.Tensor:
    """Scores of all users over all items; what they took is hidden, and some more."""
    about = graph_ or graph()
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(about.n_users, about.n_items)).astype(np.float32)
    scores = torch.from_numpy(drawn.round() if whole else drawn)
    scores[about.edge_user.long(), about.edge_item.long()] = -torch.inf
    scores[torch.from_numpy(rng.random(scores.shape) < 0.2)] = -torch.inf
    scores[0] = -torch.inf  # nothing may be recommended
    return scores


def made(name: str, **settings: object) -> Reranker:
    found = parse_reranker(",".join([name, *(f"{key}={value}" for key, value in settings.items())]))
    assert found is not None
    return found


@every_reranker
@pytest.mark.parametrize("depth", [3, 100])
@given(seed=st.integers(0, 30), k=st.integers(1, 33), whole=st.booleans())
def test_without_strength_the_list_is_as_it_was(name: str, depth: int, seed: int, k: int, whole: bool) -> None:
    scores = block(seed, whole)
    found = reranked(made(name, strength=0, depth=depth), scores, k, torch.arange(40), Candidates(graph(), None))
    expected = top_k(scores, k)
    assert torch.equal(found[1], expected[1])
    if name != "scale":
        assert torch.equal(found[0].float(), expected[0])


@every_reranker
def test_lists_of_their_own_are_those_of_a_block(name: str) -> None:
    reranker = made(name, strength=0.7)
    scores, users, about = block(4), torch.arange(40), Candidates(graph(), None)
    values, items = top_k(scores, 30)
    found, places = reranker.rerank_lists(values, items, users, 5, about)
    expected = reranked(reranker, scores, 5, users, about)
    assert torch.equal(torch.where(places < 0, -1, items.gather(1, places.clamp(min=0))), expected[1])
    torch.testing.assert_close(found, expected[0])


@pytest.mark.parametrize("kind", ["binary", "smooth", "proportional"])
@given(seed=st.integers(0, 50), strength=strengths)
def test_xquad_equals_its_slow_twin(kind: str, seed: int, strength: float) -> None:
    compare_with_twin(XQuAD(strength=strength, coverage=kind, depth=8), seed, (0.8,), "xquad", kind)  # type: ignore[arg-type]


@given(seed=st.integers(0, 50), strength=strengths)
def test_calibrations_equal_their_slow_twin(seed: int, strength: float) -> None:
    compare_with_twin(CalibratedPopularity(strength=strength, depth=8), seed, (0.2, 0.8), "calibrated", "")
    compare_with_twin(Steck(strength=strength, depth=8), seed, (0.2, 0.8), "steck", "")


def compare_with_twin(reranker: Reranker, seed: int, shares: tuple[float, ...], name: str, kind: str) -> None:
    about, scores = graph(), block(seed)
    group = groups_by_popularity(about.item_degree.tolist(), *shares)
    strength = reranker.model_dump()["strength"]
    _, best = top_k(scores, 8)
    _, lists = reranked(reranker, scores, 5, torch.arange(40), Candidates(about, None))
    for user in range(40):
        columns = [column for column in best[user].tolist() if column >= 0]
        if not columns:
            assert (lists[user] == -1).all()
            continue
        plain = from_zero_to_one([scores[user, column].item() for column in columns])
        history = [group[item] for item in about.edge_item[about.edge_user == user].tolist()]
        groups = [group[column] for column in columns]
        if name == "xquad":
            gain = xquad_gain(kind, strength, plain, groups, history)
        else:
            gain = calibration_gain(name, strength, plain, groups, history)
        places = [columns.index(column) if column >= 0 else -1 for column in lists[user].tolist()]
        assert_greedy(places, len(columns), 5, gain)


@given(seed=st.integers(0, 50), strength=strengths, k=st.integers(1, 12))
def test_fair_lists_have_what_they_need_and_are_otherwise_the_best(seed: int, strength: float, k: int) -> None:
    about, scores = graph(), block(seed)
    niche = torch.tensor(groups_by_popularity(about.item_degree.tolist(), 0.8)).bool()
    values, lists = reranked(FAIR(strength=strength), scores, k, torch.arange(40), Candidates(about, None))
    needed = slow_fewest(k, strength, 0.1)
    for user, listed in enumerate(lists.tolist()):
        left = [item for item in top_k(scores, 30)[1][user].tolist() if item >= 0]
        for place, item in enumerate(listed):
            had = sum(bool(niche[other]) for other in listed[:place])
            rare = [other for other in left if niche[other]]
            must = had < needed[place] and rare
            expected = rare[0] if must else left[0] if left else -1
            assert item == expected
            if item >= 0:
                left.remove(item)
    assert values.shape == lists.shape


INF = -torch.inf


@given(seed=st.integers(0, 50), strength=strengths, share=st.sampled_from([0.0, 0.3, 1.0]))
def test_new_scores_equal_their_slow_twins(seed: int, strength: float, share: float) -> None:
    scores, counts = block(seed).double(), graph().item_degree
    compensated = PC(strength=strength, score_share=share).rescored(scores, counts)
    scaled = Scale(strength=max(strength, 0.1)).rescored(scores, counts)
    for user in range(1, 40):
        there = scores[user] > INF
        plain, own = scores[user][there].tolist(), counts[there].tolist()
        expected = slow_compensation(plain, own, strength, share)
        assert compensated[user][there].tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)
        expected = slow_scale(plain, own, max(strength, 0.1))
        assert scaled[user][there].tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)
