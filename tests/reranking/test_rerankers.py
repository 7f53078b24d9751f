"""Every built-in re-ranker: without strength, and over lists of its own; golden arrays have the rest."""

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
from tests.methods.tools import some_graph

NAMES = [name for name in RERANKERS.built_in if name != "dial"]
every_reranker = pytest.mark.parametrize("name", NAMES)


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
