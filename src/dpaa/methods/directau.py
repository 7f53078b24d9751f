"""DirectAU: alignment of users with their items, uniformity of all vectors (Wang et al., KDD 2022)."""

from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.methods.contrast import uniformity
from dpaa.methods.graph_method import Batch, GraphMethod, Rows, method


@method(
    "directau",
    title="alignment of users with their items, uniformity of all vectors",
    paper="Wang et al., Towards Representation Alignment and Uniformity, KDD 2022",
    grid={"uniformity_weight": (0.2, 0.5, 1.0, 2.0, 5.0)},
)
class DirectAU(GraphMethod):
    """LightGCN with alignment and uniformity on the unit sphere, which need no negative items.

    loss = mean ‖u' − i'‖² + γ/2 (uniformity of users + of items) + L2,     vectors at length 1
    """

    uniformity_weight: float = Field(default=1.0, ge=0, description="γ: weight of uniformity beside alignment")

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Alignment, uniformity of the batch's rows (repeats included), and L2 of the rows they are made of."""
        user, item, _ = (normalize(part) for part in batch.split(rows.readout))
        alignment, l2 = (user - item).square().sum(dim=1).mean(), self.l2_term(batch, rows, parts=2)
        return alignment + self.uniformity_weight / 2 * (uniformity(user) + uniformity(item)) + l2
