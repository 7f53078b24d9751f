"""The only list of the re-rankers' names; plug-ins add to it (`dpaa.plugins`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpaa.plugins import Registry

if TYPE_CHECKING:  # it brings torch, which the list of names does without
    from dpaa.reranking.base import Reranker

RERANKERS: Registry[Reranker] = Registry(
    "re-ranker",
    "dpaa.rerankers",
    "dpaa.reranking.base:Reranker",
    {
        "dial": "dpaa.reranking.base:Dial",
        "xquad": "dpaa.reranking.xquad:XQuAD",
        "calibrated-popularity": "dpaa.reranking.calibrated_popularity:CalibratedPopularity",
        "steck": "dpaa.reranking.steck:Steck",
        "pc": "dpaa.reranking.pc:PC",
        "scale": "dpaa.reranking.scale:Scale",
        "fa-ir": "dpaa.reranking.fa_ir:FAIR",
    },
)
