"""Re-rankers: what of their answers is checked, their names, and how they are read from words and manifests."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.ranking.reranker import Candidates, Dial, Reranker, parse_reranker, reranked, stored_reranker
from dpaa.ranking.rerankers._greedy import Gain, greedy
from dpaa.ranking.rerankers.xquad import coverage


class Given(Reranker):
    """Answers what it was given."""

    name = "given"
    title = "a fixed answer"
    lists: list[list[int]]
    wide: int = 0

    def rerank(self, scores: Tensor, users: Tensor, k: int, candidates: Candidates) -> tuple[Tensor, Tensor]:
        columns = torch.tensor(self.lists)
        return torch.zeros(len(columns), columns.shape[1] + self.wide), columns


def test_what_must_not_be_recommended_stays_out_whatever_a_reranker_says(toy_graph: BipartiteGraph) -> None:
    scores = torch.tensor([[1.0, -torch.inf, 2.0], [-torch.inf, -torch.inf, 0.0]])
    about = Candidates(toy_graph, None)
    _, columns = reranked(Given(lists=[[1, 0], [2, 0]]), scores, 2, torch.arange(2), about)
    assert columns.tolist() == [[-1, 0], [2, -1]]
    _, columns = reranked(Given(lists=[[2, -1], [-1, -1]]), scores, 2, torch.arange(2), about)
    assert columns.tolist() == [[2, -1], [-1, -1]]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_words_and_manifest_come_back(kappa: float) -> None:
    dial = Dial(kappa=kappa)
    assert parse_reranker(dial.in_words()) == dial
    assert stored_reranker(dial.as_json(), "the run") == dial


def test_what_is_typed() -> None:
    assert parse_reranker("dial, kappa = -0.5 ") == Dial(kappa=-0.5)
    assert parse_reranker("Dial") == Dial()
    assert parse_reranker(" None ") is None
    assert stored_reranker(None, "the run") is None
    earlier = {"name": "xquad", "settings": {"strength": 0.3, "head_share": 0.5}}
    assert stored_reranker(earlier, "the run") == parse_reranker("xquad,strength=0.3,popular_mass=0.5")
    for text in ("none,kappa=3", "dial,kappa=1,kappa=2", "dial,kappa"):
        with pytest.raises(InputError):
            parse_reranker(text)


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ("dial", "the run does not say which re-ranker it uses"),
        ({"settings": {}}, "the run does not say which re-ranker it uses"),
        ({"name": "slots", "origin": {"package": "other"}}, "the run was made with the re-ranker 'slots' of package"),
        ({"name": "slots", "origin": {"package": "dpaa"}}, "there is no re-ranker 'slots'"),
        ({"name": "dial", "settings": {"kappa": []}}, "hyperparameter kappa"),
    ],
)
def test_manifests_that_are_refused(stored: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        stored_reranker(stored, "the run")


HEAD, TAIL = 0, 1


def letters(places: Tensor, names: str) -> str:
    return "".join("-" if place < 0 else names[place] for place in places[0].tolist())


def xquad(kind: str, strength: float, wanted: Tensor) -> Gain:
    return lambda first, counts: torch.lerp(first, wanted * coverage(kind, counts), strength)


@pytest.mark.parametrize(
    ("kind", "strength", "expected"),
    [
        ("binary", 0.0, "abcf"),
        ("smooth", 0.0, "abcf"),
        ("binary", 0.5, "abdc"),
        ("smooth", 0.5, "abdc"),
        ("binary", 0.7, "adbc"),
        ("binary", 0.8, "adbc"),
        ("smooth", 0.8, "adbe"),
    ],
)
def test_xquad_by_hand(kind: str, strength: float, expected: str) -> None:
    scores = torch.tensor([[1.0, 0.9, 0.8, 0.7, 0.4, 0.3]], dtype=torch.float64)
    groups = torch.tensor([[HEAD, HEAD, HEAD, HEAD, TAIL, TAIL]])
    found = greedy(scores, groups, 2, 4, xquad(kind, strength, torch.tensor([[0.5, 0.5]], dtype=torch.float64)))
    assert letters(found, "abcfde") == expected
