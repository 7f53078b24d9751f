"""DNA: items all get vectors of one length, since length is where propagation puts popularity (Choi et al., ASOC 2026).

    s_ui = e_u · (c e_i / ‖e_i‖) + b_i,     loss = BPR + L2

b is trained beside the layers and never passes through them: what popularity is worth is learned there.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize, softplus

from dpaa.methods.base import Histories, Scorer, Vectors, fitted, method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows, margins


@method(
    "dna",
    title="items' vectors at one length, and a bias that does not pass through the layers",
    paper="Choi et al., GCNs Meet Long-Tail: Embedding Norm Bias, Applied Soft Computing 2026",
    grid={"length": (0.5, 1.0, 2.5, 5.0)},
    wide={"item_bias": (True, False)},
)
class DNA(GraphMethod):
    """LightGCN with items of one length."""

    item_length: Literal["one", "free"] = Field(
        default="one",
        description="whether all items' read-out vectors are brought to one length; `free`, without bias, is LightGCN",
    )
    length: float = Field(default=2.5, gt=0, description="c: that length")
    item_bias: bool = Field(default=True, description="whether each item has a bias b_i of its own")

    saved: ClassVar[dict[str, tuple[str | int, ...]]] = {"bias": ("items",)}

    bias: Tensor = fitted()
    """b, (n_items,)."""

    def parameters(self) -> dict[str, Tensor]:
        """b, from 0."""
        return {"bias": torch.zeros(self.graph.n_items)}

    def at_length(self, items: Tensor) -> Tensor:
        """Rows of items as they are scored, (n, d)."""
        return self.length * normalize(items) if self.item_length == "one" else items

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """BPR of those scores, LightGCN's L2 and that of the biases."""
        if self.item_length == "free" and not self.item_bias:
            return super().loss(batch, rows)
        user, positive, negative = batch.split(rows.readout)
        found, l2 = margins(user, self.at_length(positive), self.at_length(negative)), self.l2_term(batch, rows)
        if self.item_bias:
            liked, other = self.bias[batch.positive], self.bias[batch.negative]
            found = found + liked - other
            l2 = l2 + (self.l2 / len(batch)) * 0.5 * (liked.square().sum() + other.square().sum())
        return softplus(-found).mean() + l2

    @torch.no_grad()
    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """The read-out, items at their length, and one column more: 1 for users, b for items."""
        found = self.readout_vectors(items, histories)
        bias = self.bias.detach() if items is None else self.bias.detach()[items]

        def queries(index: Tensor) -> Tensor:
            users = found.queries(index)
            return torch.cat([users, users.new_ones(len(users), 1)], dim=1)

        return Vectors(queries, torch.cat([self.at_length(found.items), bias[:, None]], dim=1))

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """The inner product of those."""
        vectors = self.vectors(items, histories)
        return lambda index: vectors.queries(index) @ vectors.items.T
