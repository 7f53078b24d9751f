"""What has changed between an older log and a newer one: which items are taken, and how unequally."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.auditing.interactions import Interactions
from dpaa.data.ids import is_text
from dpaa.errors import InputError
from dpaa.evaluation.concentration import gini, head, share_of

Counts = NDArray[np.float64]


@dataclass(frozen=True)
class Drift:
    """Newer minus older; what the numbers mean is in `auditing.names.DRIFT_NUMBERS`."""

    older: str
    """What is older, in words."""
    newer: str
    older_interactions: int
    newer_interactions: int
    drift_distance: float
    drift_new_items_share: float
    drift_gone_items_share: float
    drift_head_turnover: float
    drift_head_share: float
    drift_gini: float


def drift_between(older: Interactions, newer: Interactions) -> Drift:
    """From one log to another; items are told apart by their ids."""
    if is_text(older.item_ids) != is_text(newer.item_ids):
        raise InputError(
            f"the items of {older.source} are {_kind(older)}, those of {newer.source} are {_kind(newer)}; cast them"
        )
    ids = pl.concat([older.item_ids, newer.item_ids]).unique()
    counts = [_counts(log, ids) for log in (older, newer)]
    return _drift(older.source, newer.source, *counts)


def drift_at(log: Interactions, moment: str) -> Drift:
    """Within a log: interactions from that moment on against those before it."""
    if log.times is None:
        raise InputError(f"{log.source} has no times, so it cannot be cut at {moment!r}; name an older log instead")
    stamps = log.times.time
    early = (stamps < _moment(moment, stamps)).to_numpy()
    if early.all() or not early.any():
        side = "after" if early.all() else "before"
        raise InputError(f"there is nothing in {log.source} {side} {moment}; choose a time between its first and last")
    weight = np.ones(len(early)) if log.times.count is None else log.times.count.astype(np.float64)
    parts = [
        np.bincount(log.times.item[rows], weight[rows], minlength=log.n_items).astype(np.float64)
        for rows in (early, ~early)
    ]
    return _drift(f"{log.source} before {moment}", f"{log.source} from {moment} on", *parts)


def _drift(older: str, newer: str, before: Counts, after: Counts) -> Drift:
    heads = head(before), head(after)
    return Drift(
        older=older,
        newer=newer,
        older_interactions=int(before.sum()),
        newer_interactions=int(after.sum()),
        drift_distance=jensen_shannon(before, after),
        drift_new_items_share=share_of(before == 0, after),
        drift_gone_items_share=share_of(after == 0, before),
        drift_head_turnover=float((heads[1] & ~heads[0]).sum() / max(heads[1].sum(), 1)),
        drift_head_share=share_of(heads[1], after) - share_of(heads[0], before),
        drift_gini=gini(after[after > 0]) - gini(before[before > 0]),
    )


def jensen_shannon(one: Counts, other: Counts) -> float:
    """`√JS(p, q)` of two distributions given by counts, base 2: 0 = the same, 1 = nothing in common."""
    p, q = one / one.sum(), other / other.sum()
    middle = (p + q) / 2

    def divergence(part: Counts) -> float:
        there = part > 0
        return float((part[there] * np.log2(part[there] / middle[there])).sum())

    return float(np.sqrt(max(0.0, (divergence(p) + divergence(q)) / 2)))


def _counts(log: Interactions, ids: pl.Series) -> Counts:
    table = pl.DataFrame({"id": log.item_ids, "count": log.counts.astype(np.float64)})
    found = pl.DataFrame({"id": ids}).join(table, on="id", how="left", maintain_order="left")
    return found["count"].fill_null(0.0).to_numpy()


def is_moment(text: str | Path) -> bool:
    """Whether this is a time, and no file of that name."""
    if Path(text).exists():
        return False
    try:
        float(str(text))
    except ValueError:
        try:
            datetime.fromisoformat(str(text))
        except ValueError:
            return False
    return True


def _moment(text: str, stamps: pl.Series) -> Any:
    """A time in the log's own terms: a number, or an ISO date."""
    if stamps.dtype.is_numeric():
        try:
            return float(text)
        except ValueError:
            raise InputError(
                f"the times of the log are numbers, and {text!r} is none; give one such as {stamps[0]}"
            ) from None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is neither a file nor a date; write for example 2026-11-01") from None
    return pl.Series([found]).cast(pl.Datetime("us")).dt.replace_time_zone(getattr(stamps.dtype, "time_zone", None))[0]


def _kind(log: Interactions) -> str:
    return "text" if is_text(log.item_ids) else "integers"
