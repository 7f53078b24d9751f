"""SimGCL: contrast of two noisy views of every node, BPR on a noise-free pass (Yu et al., SIGIR 2022)."""

from pydantic import Field
from torch import Tensor

from dpaa.methods.contrast import NoisyViews, info_nce
from dpaa.methods.graph_method import Batch, Rows, method


@method(
    "simgcl",
    title="contrast of two noisy views of every node",
    paper="Yu et al., Are Graph Augmentations Necessary?, SIGIR 2022",
    grid={"contrast_weight": (0.01, 0.05, 0.1, 0.5, 1.0), "noise": (0.05, 0.1, 0.2)},
)
class SimGCL(NoisyViews):
    """LightGCN with a contrast of two noisy views.

    view: E^l = A E^(l−1) + ε sign(·) v / ‖v‖,     read-out = mean of E^1 … E^L
    loss = BPR + L2 + λ (InfoNCE of users + of items, one view against the other)
    """

    contrast_weight: float = Field(default=0.1, ge=0, description="λ: weight of the contrast")

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and InfoNCE over the batch's distinct users and positive items."""
        fit = super().loss(batch, rows)
        if not self.contrast_weight:
            return fit
        _, views = self.views(batch, rows)
        contrast = sum(info_nce(one, two, self.temperature) for one, two in zip(*views, strict=True))
        return fit + self.contrast_weight * contrast
