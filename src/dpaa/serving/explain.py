"""Why an item is in a list: how popular it is, what the dial added, and what of the history it is like."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from dpaa.serving.engine import Answer, Ask
from dpaa.serving.snapshot import Snapshot

BECAUSE = 3
"""Items of the history that are named."""


def explained(ask: Ask, found: Answer) -> list[dict[str, Any]]:
    """One explanation per listed item."""
    snapshot, items = ask.snapshot, found.items
    reasons: list[dict[str, Any]] = [
        {"interactions": int(count), "group": "popular" if popular else "niche"}
        for count, popular in zip(snapshot.counts[items], snapshot.popular[items], strict=True)
    ]
    if ask.kind == "popular" or not len(items):
        return reasons
    history = ask.history if ask.kind == "history" else snapshot.taken(ask.number)
    for reason, near in zip(reasons, _like(snapshot, np.asarray(history), np.asarray(items)), strict=True):
        reason["because"] = near
    part = _dial_part(ask, np.asarray(items))
    if part is not None:
        for reason, value in zip(reasons, part.tolist(), strict=True):
            reason["dial_part"] = value
    return reasons


def _like(snapshot: Snapshot, history: Any, items: Any) -> list[list[Any]]:
    """Ids of the items of the history that are most like each of these."""
    if snapshot.unit is None or not len(history):
        return [[] for _ in items]
    rows = snapshot.unit.rows
    cosines = rows[torch.from_numpy(items.astype(np.int64))] @ rows[torch.from_numpy(history.astype(np.int64))].T
    near = torch.topk(cosines, min(BECAUSE, len(history)), dim=1).indices.numpy()
    return [[snapshot.items.id(int(history[place])) for place in places] for places in near]


def _dial_part(ask: Ask, items: Any) -> Any:
    """`κ · sd_u · p_i`, what the dial added to each score; None where scores are not made so."""
    snapshot, dial = ask.snapshot, ask.snapshot.model.prepared_dial
    if dial is None or ask.reranker is not None or ask.kind != "user":
        return None
    vectors = snapshot.model.method.vectors()
    if vectors is None:
        return None
    deviation = float(dial.deviation(vectors.queries(torch.tensor([ask.number])))[0])
    return ask.kappa * deviation * dial.items[torch.from_numpy(items.astype(np.int64)), -1].numpy()
