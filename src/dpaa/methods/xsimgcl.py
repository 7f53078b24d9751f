"""XSimGCL: one noisy pass, contrast of its read-out with one of its layers (Yu et al., TKDE 2024)."""

from pydantic import Field
from torch import Tensor

from dpaa.methods.contrast import NOISE, NoisyViews, distinct, info_nce, mean_of_layers, same_sign_noise
from dpaa.methods.graph_method import Batch, Rows, method


@method(
    "xsimgcl",
    title="one noisy pass: contrast of the read-out with an early layer",
    paper="Yu et al., XSimGCL: Towards Extremely Simple Graph Contrastive Learning, TKDE 2024",
    grid={"contrast_weight": (0.01, 0.05, 0.1, 0.2, 0.5), "noise": (0.05, 0.1, 0.2)},
    wide={"temperature": (0.1, 0.15, 0.2)},
)
class XSimGCL(NoisyViews):
    """LightGCN with noise, and a contrast of read-out and layer l*.

    E^l = A E^(l−1) + ε sign(·) v / ‖v‖,     read-out = mean of E^1 … E^L, without noise after training
    loss = BPR + L2 + λ (InfoNCE of users + of items, read-out against layer l*)
    """

    contrast_weight: float = Field(default=0.2, ge=0, description="λ: weight of the contrast")
    noise: float = Field(default=0.2, ge=0, description="ε: length of the noise added to every layer in training")
    temperature: float = 0.15
    contrast_layer: int = Field(default=1, ge=1, description="l*: layer compared with the read-out (or the last)")

    _compared: Tensor | None = None
    """Layer l* of the current pass."""

    def table_readout(self, table: Tensor, batch: Batch | None) -> Tensor:
        """The mean of the layers, with the noise that belongs to the batch, or without."""
        if batch is None or not self.noise:
            layers = list(self.tables.propagation.differentiable_layers(table))
        else:
            noise = same_sign_noise(self.noise, self.generator(NOISE, batch.epoch, batch.number))
            layers = list(self.tables.propagation.differentiable_layers(table, noise))
        self._compared = None if batch is None else layers[min(self.contrast_layer, self.layers)]
        return mean_of_layers(layers, self.include_ego)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and InfoNCE over the batch's distinct users and positive items."""
        fit, compared, self._compared = super().loss(batch, rows), self._compared, None
        if not self.contrast_weight or compared is None:
            return fit
        user, item, _ = batch.split(rows.readout)
        contrast = fit.new_zeros(())
        for nodes, side in ((batch.users, user), (batch.positive + self.graph.n_users, item)):
            which, one = distinct(nodes, side)
            contrast = contrast + info_nce(one, compared.index_select(0, which), self.temperature)
        return fit + self.contrast_weight * contrast
