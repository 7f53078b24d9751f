"""Reg: penalise the correlation of positive items' scores with popularity (Zhu et al., WSDM 2021)."""

from pydantic import Field
from torch import Tensor

from dpaa.methods._shared import squared_correlation
from dpaa.methods.graph_method import Batch, GraphMethod, Rows, method


@method(
    "reg",
    title="penalises the correlation between positive items' scores and popularity",
    paper="Zhu et al., Popularity-Opportunity Bias in Collaborative Filtering, WSDM 2021",
    grid={"correlation_weight": (0.01, 0.1, 0.5, 1.0)},
)
class Reg(GraphMethod):
    """LightGCN with a correlation term over the batch's positive pairs.

    loss = BPR + L2 + w corr(s_ui, d_i)²
    """

    correlation_weight: float = Field(default=0.1, ge=0, description="w: weight of the correlation; 0 is LightGCN")

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and the squared correlation of score and popularity."""
        fit = super().loss(batch, rows)
        if not self.correlation_weight:
            return fit
        user, positive, _ = batch.split(rows.index)
        popularity = self.graph.item_degree / self.graph.item_degree.max()  # correlation knows no scale
        follows = squared_correlation(popularity[batch.positive], rows.dots(user, positive))
        return fit + self.correlation_weight * follows
