from __future__ import annotations

import torch

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Histories
from dpaa.methods.most_popular import MostPopular
from tests.methods.tools import learned


def counted(*pairs: tuple[int, int, int]) -> MostPopular:
    user, item, count = zip(*pairs, strict=True)
    made: MostPopular = learned(MostPopular, BipartiteGraph.from_pairs(Pairs.of(user, item, count), 3, 4))
    return made


def test_scores_are_the_counts_for_whomever() -> None:
    method = counted((0, 1, 1), (1, 1, 1), (2, 3, 5))  # a repeated pair counts as often as it occurs
    assert method.scorer()(torch.tensor([2, 0])).tolist() == [[0, 2, 0, 5]] * 2
    newcomers = Histories(Pairs.of([0], [3]), 1)
    assert method.scorer(torch.tensor([3, 1]), newcomers)(torch.tensor([0])).tolist() == [[5, 2]]
