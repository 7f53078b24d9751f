"""PSL: the softmax loss with a gentler function than exp of score differences (Yang et al., NeurIPS 2024)."""

import math
from collections.abc import Callable
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import logsigmoid

from dpaa.methods._drawn import DrawnSoftmax, Negatives
from dpaa.methods.graph_method import Batch, method

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": lambda twice: logsigmoid(twice) + math.log(2.0),  # log(1 + tanh d)
    "atan": lambda twice: torch.log1p(torch.atan(0.5 * twice)),
    "relu": lambda twice: torch.log1p((0.5 * twice).clamp(min=-1.0 + 1e-6)),  # log 0 has no gradient
}
"""log σ(d) as a function of 2d."""


@method(
    "psl",
    title="a softmax in which no single hard negative dominates",
    paper="Yang et al., PSL: Rethinking and Improving Softmax Loss from Pairwise Perspective, NeurIPS 2024",
    grid={"temperature": (0.005, 0.025, 0.05, 0.1, 0.25), "activation": ("tanh", "atan", "relu")},
)
class PSL(DrawnSoftmax):
    """LightGCN with a pairwise softmax loss.

    d_uij = (c_uj − c_ui) / 2,     loss = mean log Σ_j σ(d_uij)^(1/τ) + L2

    c is the cosine; σ is 1 + tanh, 1 + atan or ReLU(1 + d) where the softmax loss has exp, all of them 1 at d = 0.
    """

    temperature: float = Field(
        default=0.1, gt=0, description="τ of half cosines: as sharp as twice this of the softmax loss"
    )
    activation: Literal["tanh", "atan", "relu"] = Field(
        default="tanh", description="σ: what a pair's difference of scores counts"
    )

    def pair_losses(self, batch: Batch, positive: Tensor, negatives: Negatives) -> Tensor:
        """`log Σ_j σ(d_uij)^(1/τ)`."""
        twice = torch.addmm(-positive[:, None], negatives.user, negatives.item.T)  # 2d, (b, n)
        return negatives.sum_of(ACTIVATIONS[self.activation](twice), self.temperature)
