"""Generated graphs of the size of real ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph

if TYPE_CHECKING:
    from collections.abc import Iterable

SIZES = {
    "Yahoo-size": (14_382, 1_000, 88_684, 2),
    "KuaiRec-size": (7_176, 10_728, 935_000, 4),
}
"""Users, items, pairs, layers."""
SMALL = {
    "Coat-size": (290, 300, 3_622, 2),
    "severity-9-size": (1_410, 3_275, 4_921, 4),
    "severity-0-size": (1_410, 3_275, 30_312, 4),
}
"""The same of data with few batches an epoch."""


@dataclass(frozen=True)
class Cases:
    """Which graphs and table widths are asked for."""

    names: tuple[str, ...] = ()
    """Of graphs; none means all."""
    sizes: tuple[int, ...] = (64, 256)

    def graphs(self, known: Iterable[str]) -> list[str]:
        """Those of the known graphs that are asked for."""
        return [name for name in known if not self.names or name in self.names]


def zipf_pairs(n_users: int, n_items: int, n_pairs: int, power: float = 0.8, seed: int = 0) -> Pairs:
    """Distinct pairs, users uniform, items by a power law."""
    rng = np.random.default_rng(seed)
    chance = np.arange(1, n_items + 1) ** -power
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < n_pairs:
        more = 2 * (n_pairs - len(keys)) + 1000
        drawn = rng.integers(0, n_users, more) * n_items + rng.choice(n_items, more, p=chance / chance.sum())
        keys = np.unique(np.concatenate([keys, drawn]))
    keys = rng.choice(keys, n_pairs, replace=False)
    return Pairs.of(keys // n_items, keys % n_items)


def graph_of(name: str) -> tuple[BipartiteGraph, int]:
    """The graph and its number of layers."""
    n_users, n_items, n_pairs, layers = (SIZES | SMALL)[name]
    return BipartiteGraph.from_pairs(zipf_pairs(n_users, n_items, n_pairs), n_users, n_items), layers
