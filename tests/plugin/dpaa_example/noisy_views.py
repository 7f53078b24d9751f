"""Noisy views, as in SimGCL: two noisy views of the layers should agree about each node (Yu et al., SIGIR 2022)."""

import torch
from torch.nn.functional import cross_entropy, normalize

from dpaa.methods import GraphMethod
from dpaa.methods.settings import TrainedSettings


class NoisyViewsSettings(TrainedSettings):
    """LightGCN's settings and the contrast's."""

    noise: float = 0.1
    """Length of the noise added to every layer."""
    contrast_weight: float = 0.1
    """λ: how much the agreement of the two views counts."""
    temperature: float = 0.2
    """τ of the contrast."""


class NoisyViews(GraphMethod):
    """LightGCN with a contrast of two noisy views.  Changes: `loss`."""

    name = "noisy-views"
    title = "two noisy views of every node made to agree"
    paper = "Yu et al., Are Graph Augmentations Necessary?, SIGIR 2022"
    settings_type = NoisyViewsSettings
    uses_whole_table = True

    def view(self, table, batch, number):
        """Mean of layers 1 … L, each with noise of its own.  (n_nodes, d)."""
        draw = self.generator(1, batch.epoch, batch.number, number)

        def noisy(layer):
            drawn = normalize(torch.rand(layer.shape, generator=draw))
            return layer + layer.sign() * drawn * self.settings.noise

        return torch.stack(list(self.propagation.differentiable_layers(table, noisy))[1:]).mean(dim=0)

    def loss(self, batch, rows):
        """LightGCN's, and InfoNCE between the views of the batch's users and items."""
        views = [normalize(self.view(rows.table, batch, number)) for number in (0, 1)]
        contrast = 0.0
        for nodes in (batch.users.unique(), batch.positive.unique() + self.graph.n_users):
            one, two = (view[nodes] for view in views)
            contrast = contrast + cross_entropy(one @ two.T / self.settings.temperature, torch.arange(len(nodes)))
        return super().loss(batch, rows) + self.settings.contrast_weight * contrast
