"""IPS-CN: positive interactions weighted by inverse popularity, capped and normalised (Gruson et al., WSDM 2019)."""

from functools import cached_property

from pydantic import Field
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.methods._shared import capped_inverse
from dpaa.methods.graph_method import Batch, GraphMethod, Rows, method


@method(
    "ips",
    title="positive items weighted by inverse popularity, capped and normalised",
    paper="Gruson et al., Offline Evaluation to Make Decisions About Playlist Recommendation, WSDM 2019",
    grid={"cap_quantile": (0.25, 0.5, 0.75, 1.0)},
)
class IPS(GraphMethod):
    """LightGCN with weighted triples.

    loss = mean ω_i softplus(s_uj − s_ui) + L2

    Gruson et al. propose capped, normalised importance sampling for evaluation; as a training loss it comes from the
    comparisons of MACR and BC loss.
    """

    cap_quantile: float = Field(
        default=0.5, ge=0, le=1, description="quantile at which weights are capped; 0 is LightGCN"
    )

    @cached_property
    def item_weight(self) -> Tensor:
        """Weight ω of a positive item, (n_items,)."""
        return capped_inverse(self.graph.item_degree, self.cap_quantile)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Weighted BPR and LightGCN's L2."""
        margin = rows.margins(len(batch))
        return (self.item_weight[batch.positive] * softplus(-margin)).mean() + self.l2_term(batch, rows)
