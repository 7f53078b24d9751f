"""DPAA: LightGCN whose messages are weighted by how little their ends already agree (Islam et al., 2026).

The weights are in `weighted_messages.py`, since they belong to messages and not to LightGCN.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dpaa.methods.base import method
from dpaa.methods.weighted_messages import Scaling, WeightedMessages


@method(
    "dpaa",
    title="messages weighted by inverse interaction strength and by layer",
    default_candidate=True,
    paper="Islam et al., Debiasing Popularity Amplification in Aggregation, 2026",
    grid={
        "half_trust_shift": (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
        "layer_emphasis": (0.0, 1.0, 2.0, 3.0),
        "initial_residual": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    },
    wide={
        "weighted_layers": ("first", "all"),
        "interaction_strength_from": ("layer", "readout"),
    },
)
class DPAA(WeightedMessages):
    """LightGCN with weighted messages."""


@method(
    "dpaa-as-printed",
    title="DPAA as its equations are printed: no neighbour scaling, λ summing to 1",
    default_candidate=False,
)
class DpaaAsPrinted(DPAA):
    """The same with the defaults that come nearest to the paper's tables: no neighbour scaling, λ summing to 1."""

    neighbour_scaling: Scaling = Field(
        default="none",
        description=(
            "whether messages keep LightGCN's `1/√(d_u d_i)`; `none` is the equation as printed, others "
            "divide by the degree of who hears or who speaks, or by the root of the hearer's"
        ),
    )
    layer_weight_norm: Literal["mean", "sum", "none"] = Field(
        default="sum", description="how λ is normalised over the layers: mean 1, sum 1, or not"
    )
