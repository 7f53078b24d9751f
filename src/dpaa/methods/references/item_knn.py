"""Item-KNN: every item a user took votes for the items most like it, by cosine (Sarwar et al., WWW 2001).

A reference without training: what counting alone achieves.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from dpaa.kernels.cooccurrence import in_common, row_blocks
from dpaa.kernels.topk import top_k
from dpaa.methods.base import Histories, Method, Scorer
from dpaa.methods.neighbourhood import items_of, users_of_items
from dpaa.methods.settings import Settings


class ItemKnnSettings(Settings):
    """How many neighbours vote."""

    neighbours: int = Field(default=100, ge=1)
    """Most similar items kept per item."""


class ItemKNN(Method):
    """Score = sum over the user's items of their cosine with the item, where it is among their nearest."""

    name: ClassVar[str] = "item-knn"
    title: ClassVar[str] = "items like those taken, by cosine of their users; no training"
    default_candidate: ClassVar[bool] = True
    paper: ClassVar[str] = "Sarwar et al., Item-Based Collaborative Filtering, WWW 2001"
    seeded: ClassVar[bool] = False
    settings_type: ClassVar[type[Settings]] = ItemKnnSettings
    grid: ClassVar[dict[str, tuple[object, ...]]] = {"neighbours": (20, 50, 100, 200, 500)}

    saved: ClassVar[dict[str, tuple[str | int, ...]]] = {
        "similarity": ("items", "neighbours"),
        "neighbour": ("items", "neighbours"),
    }
    """Cosines, and the items they belong to (−1 where there are fewer)."""

    settings: ItemKnnSettings

    def fit(self) -> None:
        """Cosines of the matrix's columns, block by block; a repeated pair counts once."""
        graph = self.graph
        users = users_of_items(graph)
        length = users.lengths.clamp(min=1).sqrt()
        found = []
        for block in row_blocks(torch.arange(graph.n_items, device=users.starts.device), users, users):
            cosine = in_common(users, block, users) / (length[block][:, None] * length)
            cosine[torch.arange(len(block), device=block.device), block] = 0.0
            found.append(top_k(torch.where(cosine > 0, cosine, -torch.inf), self.settings.neighbours))
        similarity, neighbour = (torch.cat(parts) for parts in zip(*found, strict=True))
        self.similarity = torch.where(neighbour >= 0, similarity, 0.0)
        self.neighbour = neighbour

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """The votes of the user's items."""
        taken, n_items = items_of(self.graph, histories), self.graph.n_items
        to, vote = self.neighbour.long().clamp(min=0), self.similarity

        def score(index: Tensor) -> Tensor:
            owner, item = taken.entries(index)
            cells = torch.zeros(len(index) * n_items, device=vote.device)
            cells.index_add_(0, (owner[:, None] * n_items + to[item]).view(-1), vote[item].view(-1))
            whole = cells.view(len(index), n_items)
            return whole if items is None else whole[:, items]

        return score
