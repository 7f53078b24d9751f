from __future__ import annotations

import torch

from dpaa.methods.sgl import SGL
from tests.methods.tools import some_graph, started


def test_graphs_are_those_of_seed_and_epoch() -> None:
    one, two = (started(SGL, some_graph(), embedding_size=4, layers=1, dropped_edges=0.5) for _ in (0, 1))
    two.thinned(7)
    for mine, other in zip(one.thinned(3), two.thinned(3), strict=True):
        assert torch.equal(mine._values[0], other._values[0])
    assert not torch.equal(one.thinned(3)[0]._values[0], one.thinned(3)[1]._values[0])
    before = one.thinned(3)[0]._values[0]
    assert not torch.equal(one.thinned(4)[0]._values[0], before)
