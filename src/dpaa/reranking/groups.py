"""Items by popularity, and what part of a history each group is: what re-rankers balance."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dpaa.data.popularity import popular_items
from dpaa.reranking.base import Candidates


def popularity_groups(candidates: Candidates, *shares: float) -> Tensor:
    """Group of each item: 0 for the most popular that cover the first share of all training interactions, and so on.

    One group more than there are shares, which ascend; the last holds the rarest items, and those never taken.
    (n_items,) int64, made once for all blocks of users.
    """

    def made() -> Tensor:
        counts = candidates.graph.item_degree.cpu().numpy()
        group = np.full(len(counts), len(shares), dtype=np.int64)
        for share in shares:
            group -= popular_items(counts, share)
        return torch.from_numpy(group).to(candidates.graph.item_degree.device)

    return candidates.once(("popularity groups", *shares), made)


def history_shares(candidates: Candidates, users: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """What part of each user's history is of each group, (users, n_groups) float64; 0 for all without a history."""
    owner, item = candidates.taken(users)
    found = torch.bincount(owner * n_groups + group[item], minlength=len(users) * n_groups).view(-1, n_groups).double()
    return found / found.sum(dim=1, keepdim=True).clamp(min=1.0)


def shares_with_one_more(counts: Tensor) -> Tensor:
    """Shares of the groups in the list if one item of group g is added: entry [u, g, c] is group c's.  (u, g, g)."""
    longer = counts[:, None, :] + torch.eye(counts.shape[1], dtype=counts.dtype, device=counts.device)
    return longer / longer.sum(dim=2, keepdim=True)
