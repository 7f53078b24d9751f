"""Item-KNN: score an item by its nearest neighbours in the user's history (Sarwar et al., WWW 2001)."""

from functools import cached_property

import torch
from pydantic import Field
from torch import Tensor

from dpaa.graph import cooccurrence
from dpaa.graph.cooccurrence import Lists, in_common, row_blocks
from dpaa.graph.kernels import top_k
from dpaa.methods._shared import items_of, users_of_items
from dpaa.methods.base import ClosedForm, Histories, Scorer, fitted, method


@method(
    "item-knn",
    title="items similar to those in the history, by cosine over users; no training",
    default_candidate=True,
    paper="Sarwar et al., Item-Based Collaborative Filtering, WWW 2001",
    version=2,
    seeded=False,
    grid={"neighbours": (20, 50, 100, 200, 500)},
)
class ItemKNN(ClosedForm):
    """Score = cosine-weighted share of the item's nearest neighbours in the history, minus its mean over all users.

    score(u, j) = m_j + Σ_{i ∈ N(j)} s_ij (r_ui − m_i) / Σ_{i ∈ N(j)} s_ij

    N(j) are the k items nearest to j by the cosine s of their users, r_ui is 1 where u took i, and m_i is the share of
    users who took i: Sarwar's weighted sum over the neighbours of the item to be scored, of deviations from the items'
    means.
    """

    neighbours: int = Field(default=50, ge=1, description="most similar items kept per item")

    weight: Tensor = fitted("items", "neighbours")
    """`s_ij / Σ s_ij`"""
    neighbour: Tensor = fitted("items", "neighbours")
    """The items i that the weights belong to, −1 where there are fewer."""
    offset: Tensor = fitted("items")
    """`m_j − Σ weight · m_i`"""

    def learn(self) -> None:
        """Cosines of the matrix's columns, block by block; a repeated pair counts once."""
        graph = self.graph
        users = users_of_items(graph)
        length = users.lengths.clamp(min=1).sqrt()
        best = []
        for block in row_blocks(torch.arange(graph.n_items, device=users.starts.device), users, users):
            cosine = in_common(users, block, users) / (length[block][:, None] * length)
            cosine[torch.arange(len(block), device=block.device), block] = 0.0
            best.append(top_k(torch.where(cosine > 0, cosine, -torch.inf), self.neighbours))
        similarity, neighbour = (torch.cat(parts) for parts in zip(*best, strict=True))
        similarity, known = torch.where(neighbour >= 0, similarity, 0.0), neighbour.clamp(min=0)
        active = (torch.bincount(graph.edge_user) > 0).sum().clamp(min=1)
        mean = torch.bincount(graph.edge_item, minlength=len(known)) / active
        self.neighbour, self.weight = neighbour, similarity / similarity.sum(dim=1, keepdim=True).clamp(min=1e-12)
        self.offset = mean - (self.weight * mean[known]).sum(dim=1)

    @cached_property
    def _scored_by(self) -> tuple[Lists, Tensor]:
        """The items whose neighbour each item is, and with what weight: a user's items are few, all items many."""
        target, column = (self.neighbour >= 0).nonzero(as_tuple=True)
        neighbour, order = self.neighbour[target, column].long().sort(stable=True)
        target, column = target[order], column[order]
        return Lists.of(neighbour, target, self.graph.n_items, self.graph.n_items), self.weight[target, column]

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """The weighted sum over the neighbours that the user took."""
        taken, n_items = items_of(self.graph, histories), self.graph.n_items
        targets, weight = self._scored_by

        def score(index: Tensor) -> Tensor:
            owner, item = taken.entries(index)
            cells = self.offset.repeat(len(index))
            # A popular item is a neighbour of many: a few of the users' items at a time.
            reach = targets.lengths[item].cumsum(0) // cooccurrence.BLOCK_CELLS
            sizes: list[int] = torch.bincount(reach).tolist()
            for user, part in zip(torch.split(owner, sizes), torch.split(item, sizes), strict=True):
                number, position = targets.positions(part)
                cells.index_add_(0, user[number] * n_items + targets.columns[position], weight[position])
            whole = cells.view(len(index), n_items)
            return whole if items is None else whole[:, items]

        return score
