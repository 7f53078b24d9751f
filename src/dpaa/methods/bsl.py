"""BSL: a softmax loss with one temperature for positive and one for negative items (Wu et al., ICDE 2024)."""

from typing import Literal

from pydantic import Field
from torch import Tensor

from dpaa.methods._drawn import DrawnSoftmax, Negatives
from dpaa.methods.graph_method import Batch, method


@method(
    "bsl",
    title="a softmax with two temperatures, which tolerates noisy positive items",
    paper="Wu et al., BSL: Understanding and Improving Softmax Loss for Recommendation, ICDE 2024",
    grid={"temperature": (0.1, 0.15, 0.2, 0.3), "temperature_ratio": (0.8, 1.0, 1.1, 1.2)},
    wide={"ranking": ("cosine", "inner-product")},
)
class BSL(DrawnSoftmax):
    """LightGCN with a bilateral softmax loss.

    loss = mean (τ₁/τ₂) [log Σ_j exp(c_uj / τ₂) − c_ui / τ₁] + L2

    c is the cosine.  With τ₁ = τ₂ it is the softmax loss; a larger τ₁ gives positive items less to say.
    """

    temperature: float = Field(default=0.15, gt=0, description="τ₂, of negative items")
    temperature_ratio: float = Field(default=1.1, gt=0, description="τ₁/τ₂: positive items' temperature as a multiple")
    ranking: Literal["cosine", "inner-product"] = "inner-product"

    def pair_losses(self, batch: Batch, positive: Tensor, negatives: Negatives) -> Tensor:
        """`(τ₁/τ₂) log Σ_j exp(c_uj / τ₂) − c_ui / τ₂`."""
        return self.temperature_ratio * negatives.log_sum_exp(self.temperature) - positive / self.temperature
