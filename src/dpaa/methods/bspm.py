"""BSPM: GF-CF whose scores are sharpened again (Choi et al., SIGIR 2023)."""

from typing import Literal

from pydantic import Field
from torch import Tensor

from dpaa.methods.base import method
from dpaa.methods.gf_cf import GFCF, Filter


@method(
    "bspm",
    title="GF-CF with a sharpening filter after its low-pass filters, in closed form",
    paper="Choi et al., Blurring-Sharpening Process Models for Collaborative Filtering, SIGIR 2023",
    seeded=False,
    grid={"rank": (256, 384, 448), "ideal_weight": (0.2, 0.3), "sharpening": (1.5, 2.0, 2.5, 3.0)},
)
class BSPM(GFCF):
    """Both filters of GF-CF blur; then dy/dt = −y R̃ᵀ R̃ is followed from the blurred scores for some time.

    scores = Σ_n (−T)^n / n! · y (R̃ᵀ R̃)^n,   n up to the order,   y the scores of GF-CF

    That is one step of the solver: Euler's (order 1) or Runge and Kutta's (order 4).  The paper's early merge (EM).
    """

    # An Euler step of T = 1 removes what the low-pass filters let pass most, so that is no default.
    sharpening: float = Field(default=2.5, ge=0, description="T: integration time of the sharpening; 0 is GF-CF")
    order: Literal[1, 4] = Field(default=4, description="of the solver: 1 Euler, 4 Runge-Kutta")
    with_blurred: bool = Field(default=False, description="mean of the sharpened scores and of the first filter alone")

    def filtered(self, rows: Tensor, blur: Filter, ideal: Filter) -> Tensor:
        """Blur, then sharpen; `order` + 1 times the work of GF-CF."""
        blurred = blur(rows)
        sharpened = term = blurred + ideal(rows)
        for n in range(1, self.order + 1):
            term = blur(term) * (-self.sharpening / n)
            sharpened = sharpened + term
        return (blurred + sharpened) / 2 if self.with_blurred else sharpened
