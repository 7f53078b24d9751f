"""Re-rankers: what of their answers is checked, their names, and how they are read from words and manifests."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import Candidates, Dial, Reranker, parse_reranker, reranked, stored_reranker


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


@pytest.mark.parametrize("answer", [Given(lists=[[0]]), Given(lists=[[0, 1, 2]]), Given(lists=[[0, 1]], wide=1)])
def test_lists_of_another_shape_are_refused(toy_graph: BipartiteGraph, answer: Given) -> None:
    with pytest.raises(InputError, match=r"re-ranker given gave lists of shape .* wanted \(1, 2\) for both"):
        reranked(answer, torch.zeros(1, 3), 2, torch.arange(1), Candidates(toy_graph, None))


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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dail", "there is no re-ranker 'dail'; did you mean dial"),
        ("dial,0.5", "cannot read '0.5' of the re-ranker 'dial,0.5'; write NAME,PARAMETER=VALUE"),
        ("dial,kapa=1", "re-ranker dial has no hyperparameter 'kapa'; did you mean kappa"),
        ("dial,kappa=much", "hyperparameter kappa: input should be a valid number.*got 'much'"),
        ("dial,kappa=nan", "hyperparameter kappa: input should be a finite number"),
    ],
)
def test_words_that_are_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
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


@pytest.mark.parametrize("name", RERANKERS.built_in)
def test_every_name_leads_to_its_class(name: str) -> None:
    found = RERANKERS[name]
    assert issubclass(found, Reranker)
    assert found.name == name
    assert found.title
    assert found.__doc__
    assert all(field.description for field in found.model_fields.values())
    assert found().in_words().startswith(name)


def test_the_list_does_without_torch() -> None:
    code = "import sys; from dpaa.ranking.registry import RERANKERS; list(RERANKERS); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
