"""Re-rankers: what of their answers is checked."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.ranking.reranker import Candidates, Reranker, reranked


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
