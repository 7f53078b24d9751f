"""Most popular: everybody gets the items with the highest training counts.  The row every table needs."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Histories, Method, Scorer
from dpaa.methods.settings import Settings


class MostPopular(Method):
    """Score = number of training interactions of the item; no training, the same list for all but their own items."""

    name: ClassVar[str] = "most-popular"
    title: ClassVar[str] = "rank by training counts; no training, the floor of every table"
    paper: ClassVar[str] = "-"
    seeded: ClassVar[bool] = False

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """The counts, for whomever."""
        del histories
        counts = self.item_count if items is None else self.item_count[items]
        return lambda index: counts.repeat(len(index), 1)

    def fit(self) -> None:
        """Count."""
        self.item_count = self.graph.item_degree

    @classmethod
    def tensor_shapes(cls, graph: BipartiteGraph, settings: Settings) -> dict[str, tuple[int, ...]]:
        """The counts."""
        del settings
        return {"item_count": (graph.n_items,)}

    def tensors(self) -> dict[str, Tensor]:
        """The counts."""
        return {"item_count": self.item_count}

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """The counts."""
        self.item_count = tensors["item_count"]
