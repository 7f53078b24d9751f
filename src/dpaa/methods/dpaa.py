"""DPAA: LightGCN whose messages are weighted by how little their ends already agree (Islam et al., 2026).

The weights are in `weighted_messages.py`, since they belong to messages and not to LightGCN.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from dpaa.methods.settings import Settings
from dpaa.methods.weighted_messages import Scaling, WeightedMessages, WeightedMessagesSettings


class DpaaSettings(WeightedMessagesSettings):
    """LightGCN's settings and DPAA's."""


class DPAA(WeightedMessages):
    """LightGCN with weighted messages.  Changes: what `WeightedMessages` does."""

    name: ClassVar[str] = "dpaa"
    title: ClassVar[str] = "messages weighted by inverse interaction strength and by layer"
    default_candidate: ClassVar[bool] = True
    paper: ClassVar[str] = "Islam et al., Debiasing Popularity Amplification in Aggregation, 2026"
    settings_type: ClassVar[type[Settings]] = DpaaSettings
    grid: ClassVar[dict[str, tuple[object, ...]]] = {
        "half_trust_shift": (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
        "layer_emphasis": (0.0, 1.0, 2.0, 3.0),
        "initial_residual": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    }
    wide: ClassVar[dict[str, tuple[object, ...]]] = {
        "weighted_layers": ("first", "all"),
        "interaction_strength_from": ("layer", "readout"),
    }

    settings: DpaaSettings


class DpaaAsPrintedSettings(DpaaSettings):
    """DPAA's settings with the equation's own scaling as default."""

    neighbour_scaling: Scaling = "none"
    """Whether messages keep LightGCN's `1/√(d_u d_i)`; `none` is the equation as printed, others divide by the degree
    of who hears or who speaks, or by the root of the hearer's."""
    layer_weight_norm: Literal["mean", "sum", "none"] = "sum"
    """How λ is normalised over the layers: mean 1, sum 1, or not."""


class DpaaAsPrinted(DPAA):
    """The same with the defaults that come nearest to the paper's tables: no neighbour scaling, λ summing to 1.

    Changes: nothing.
    """

    name: ClassVar[str] = "dpaa-as-printed"
    title: ClassVar[str] = "DPAA as its equations are printed: no neighbour scaling, λ summing to 1"
    default_candidate: ClassVar[bool] = False
    settings_type: ClassVar[type[Settings]] = DpaaAsPrintedSettings
