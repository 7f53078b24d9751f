"""IPS-CN: weight each positive interaction by its item's inverse popularity, capped and normalised.

Gruson et al. propose capped, normalised importance sampling for evaluation; as a training loss it comes from the
comparisons of MACR and BC-Loss.

    loss = mean ω_i softplus(s_uj − s_ui) + L2
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from pydantic import Field
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.methods.backbone import GraphMethod
from dpaa.methods.popularity import capped_inverse
from dpaa.methods.rows import Batch, Rows
from dpaa.methods.settings import Settings, TrainedSettings


class IpsSettings(TrainedSettings):
    """LightGCN's settings and the cap."""

    cap_quantile: float = Field(default=0.5, ge=0, le=1)
    """Quantile of the items' inverse popularity at which weights are capped: 0.5 = median, 1 = no cap, 0 = LightGCN."""


class IPS(GraphMethod):
    """LightGCN with weighted triples.  Changes: `loss`."""

    name: ClassVar[str] = "ips"
    title: ClassVar[str] = "positive items weighted by inverse popularity, capped and normalised"
    paper: ClassVar[str] = (
        "Gruson et al., Offline Evaluation to Make Decisions About Playlist Recommendation, WSDM 2019"
    )
    settings_type: ClassVar[type[Settings]] = IpsSettings
    default_candidate: ClassVar[bool] = True
    grid: ClassVar[dict[str, tuple[object, ...]]] = {"cap_quantile": (0.25, 0.5, 0.75, 1.0)}

    settings: IpsSettings

    @cached_property
    def item_weight(self) -> Tensor:
        """ω, (n_items,)."""
        return capped_inverse(self.graph.item_degree, self.settings.cap_quantile)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Weighted BPR and LightGCN's L2."""
        margin = rows.margins(len(batch))
        return (self.item_weight[batch.positive] * softplus(-margin)).mean() + self.l2_term(batch, rows)
