"""Noisy views, as in SimGCL: two noisy views of the layers should agree about each node (Yu et al., SIGIR 2022)."""

import torch
from pydantic import Field
from torch.nn.functional import cross_entropy, normalize

from dpaa.methods.base import method
from dpaa.methods.graph_method import WholeTable


@method(
    "noisy-views",
    title="two noisy views of every node made to agree",
    paper="Yu et al., Are Graph Augmentations Necessary?, SIGIR 2022",
)
class NoisyViews(WholeTable):
    """LightGCN with a contrast of two noisy views."""

    noise: float = Field(default=0.1, ge=0, description="length of the noise added to every layer")
    contrast_weight: float = Field(default=0.1, ge=0, description="weight of the agreement of the two views (lambda)")
    temperature: float = Field(default=0.2, gt=0, description="temperature of the contrast (tau)")

    def view(self, table, batch, number):
        """Mean of layers 1 … L, each with noise of its own.  (n_nodes, d)."""
        draw = self.generator(1, batch.epoch, batch.number, number)

        def noisy(layer):
            drawn = normalize(torch.rand(layer.shape, generator=draw))
            return layer + layer.sign() * drawn * self.noise

        return torch.stack(list(self.tables.propagation.differentiable_layers(table, noisy))[1:]).mean(dim=0)

    def loss(self, batch, rows):
        """LightGCN's, and InfoNCE between the views of the batch's users and items."""
        views = [normalize(self.view(rows.table, batch, number)) for number in (0, 1)]
        contrast = 0.0
        for nodes in (batch.users.unique(), batch.positive.unique() + self.graph.n_users):
            one, two = (view[nodes] for view in views)
            contrast = contrast + cross_entropy(one @ two.T / self.temperature, torch.arange(len(nodes)))
        return super().loss(batch, rows) + self.contrast_weight * contrast
