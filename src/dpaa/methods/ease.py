"""EASE: one linear map from the user's items to scores, in closed form (Steck, WWW 2019)."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from dpaa._machine import memory_at_hand
from dpaa.errors import InputError
from dpaa.graph.cooccurrence import in_common, row_blocks
from dpaa.graph.kernels import bag
from dpaa.methods._shared import items_of, users_of_items
from dpaa.methods.base import ClosedForm, Histories, Scorer, fitted, method


class ItemMap(ClosedForm):
    """Base of closed forms that score by one items × items map, `scores = R B`."""

    """B"""

    item_map: Tensor = fitted("items", "items")

    def common_users(self, dtype: torch.dtype, weight: Tensor | None = None, matrices: float = 1.0) -> Tensor:
        """Compute `Rᵀ W R`, a repeated pair counted once; refused where what is made of it does not fit memory.

        Parameters
        ----------
        dtype : of the result
        weight : (n_users,) the diagonal W; 1 by default
        matrices : of this size that there will be at once

        Returns
        -------
        (n_items, n_items)
        """
        graph, n = self.graph, self.graph.n_items
        needed, at_hand = matrices * dtype.itemsize * n * n, memory_at_hand()
        if needed > at_hand:
            raise InputError(
                f"method {self.name} needs {needed / 1e9:,.1f} GB for {n:,} items and {at_hand / 1e9:,.1f} GB are at "
                "hand; take item-knn, or a dataset with fewer items"
            )
        users = users_of_items(graph)
        common = torch.empty(n, n, dtype=dtype, device=graph.device)
        for block in row_blocks(torch.arange(n, device=graph.device), users, users):
            common[block] = in_common(users, block, users, weight).to(dtype)
        return common

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """Scores are the sum of the rows of B of the user's items."""
        taken = items_of(self.graph, histories)
        columns = self.item_map if items is None else self.item_map[:, items].contiguous()

        def score(index: Tensor) -> Tensor:
            _, item = taken.entries(index)
            starts = torch.nn.functional.pad(taken.lengths[index].cumsum(0), (1, 0))
            return bag(starts, item, torch.ones(len(item), device=item.device), columns)

        return score


@method(
    "ease",
    title="a linear map between items, in closed form; for up to some 40,000 items",
    default_candidate=True,
    paper="Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019",
    seeded=False,
    grid={"ridge": (10.0, 30.0, 100.0, 300.0, 1000.0)},
)
class EASE(ItemMap):
    """Linear regression of every item on all others; needs items × items in memory.

    P = (RᵀR + λI)⁻¹,   B = I − P / diag(P),   scores = R B

    The diagonal of B is 0: no item explains itself.
    """

    ridge: float = Field(default=100.0, gt=0, description="λ: strength of the L2 regularisation")

    def learn(self) -> None:
        """In float64 and in place; 12 bytes for each pair of items, and items³ operations."""
        # Counts of popular items exceed λ by orders of magnitude: float32 would lose the digits of rare ones.
        gram = self.common_users(torch.float64, matrices=1.5)  # beside it, in the end, the map in float32
        gram.diagonal().add_(self.ridge)
        by_columns = gram.mT  # the same numbers, symmetric, in the order in which LAPACK works without a copy
        torch.cholesky_inverse(torch.linalg.cholesky(by_columns, out=by_columns), out=by_columns)
        gram /= -gram.diagonal().clone()
        gram.fill_diagonal_(0.0)
        self.item_map = gram.float()
