"""LightGCN: weighted sums over neighbours, mean of the layers, BPR + L2 on layer 0 (He et al., SIGIR 2020).

The backbone: every hook as it is.
"""

from __future__ import annotations

from typing import ClassVar

from dpaa.methods.backbone import GraphMethod
from dpaa.methods.settings import Settings, TrainedSettings


class LightGCNSettings(TrainedSettings):
    """Those of every trained method."""


class LightGCN(GraphMethod):
    """The backbone itself.  Changes: nothing."""

    name: ClassVar[str] = "lightgcn"
    title: ClassVar[str] = "the plain backbone: mean of propagated embeddings, BPR loss"
    default_candidate: ClassVar[bool] = True
    paper: ClassVar[str] = "He et al., LightGCN, SIGIR 2020"
    settings_type: ClassVar[type[Settings]] = LightGCNSettings
