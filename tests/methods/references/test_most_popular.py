from __future__ import annotations

import torch

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Histories, attach
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


def test_what_is_done_to_scores_stays_there() -> None:
    """Whoever ranks hides items by overwriting their scores."""
    method = counted((0, 1, 1), (2, 3, 5))
    method.scorer()(torch.arange(3)).fill_(-torch.inf)
    assert method.scorer()(torch.arange(1)).tolist() == [[0, 1, 0, 5]]
    other = attach(method, method.graph)
    other.load_state(method.state())
    assert torch.equal(other.scorer()(torch.arange(3)), method.scorer()(torch.arange(3)))
