"""Names of the re-rankers; plug-ins add to them (`dpaa.plugins`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpaa.plugins import Registry

if TYPE_CHECKING:  # it brings torch, which the list of names does without
    from dpaa.ranking.reranker import Reranker

RERANKERS: Registry[Reranker] = Registry(
    "re-ranker",
    "dpaa.rerankers",
    "dpaa.ranking.reranker:Reranker",
    {
        "dial": "dpaa.ranking.reranker:Dial",
        "xquad": "dpaa.ranking.rerankers.xquad:XQuAD",
        "calibrated-popularity": "dpaa.ranking.rerankers.calibrated_popularity:CalibratedPopularity",
        "steck": "dpaa.ranking.rerankers.calibrated_popularity:Steck",
        "pc": "dpaa.ranking.rerankers.pc:PC",
        "scale": "dpaa.ranking.rerankers.scale:Scale",
        "fairrec": "dpaa.ranking.rerankers.fairrec:FairRec",
        "fa-ir": "dpaa.ranking.rerankers.fa_ir:FAIR",
    },
)
