"""Lists against the log they came from: whether a recommender passes popularity on or adds to it.

A user's list is measured against the user's own history, an item's share of the recommendations against its share of
the interactions.  The formulas are those of `bias`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.auditing.interactions import Interactions
from dpaa.auditing.names import full_name
from dpaa.auditing.skew import QUANTILES
from dpaa.data.columns import Column
from dpaa.data.popularity import popularity_deciles
from dpaa.errors import InputError
from dpaa.evaluation import bias
from dpaa.evaluation.concentration import TASTES, gini, head, lorenz, most_moved, share_of
from dpaa.evaluation.context import GroundTruth
from dpaa.evaluation.metrics import aplt, arp, popularity_lift, upd
from dpaa.evaluation.recommendations import Recommendations
from dpaa.words import counted

MOVED = 10
"""Winners and losers that are listed."""


@dataclass(frozen=True)
class ItemShift:
    """An item whose share of the recommendations is not its share of the interactions."""

    item_id: str | int
    group: str
    """`popular` or `niche`."""
    interactions: int
    recommendations: int
    interaction_share: float
    recommendation_share: float
    title: str | None = None
    """What people call it, where somebody said."""


@dataclass(frozen=True)
class TasteShift:
    """List against history of the users of one taste, means over users; NaN where there are none."""

    taste: str
    users: int
    arp_history: float
    arp: float
    popularity_lift: float
    aplt_history: float
    aplt: float
    upd: float


@dataclass(frozen=True)
class Amplification:
    """Recommendations against the log.  Where `evaluate` has the metric, the field has its name and its meaning.

    Averages are over users with a list; what is held against histories, and theirs, over those with a history too.
    """

    name: str
    k: int
    """Places of a list: where they were cut, else the longest list's length, unknown items included."""
    users: int
    """Users with a list of at least one known item."""
    users_without: int
    """Users with a history but without such a list."""
    recommendations: int
    """Places in lists that hold a known item."""
    longest_list: int
    coverage: float
    gini: float
    head_share: float
    arp: float
    arp_history: float
    popularity_lift: float
    amplified_users: float
    aplt: float
    aplt_history: float
    upd: float
    lift_quantiles: dict[str, float]
    deciles: list[float]
    """Share of the recommendations on each tenth of the log's items, rarest first."""
    outside_deciles: float
    """Share of the recommendations on items without an interaction."""
    lorenz: list[list[float]]
    """Points (p, L): the least recommended share p of the candidates has the share L of the recommendations."""
    winners: list[ItemShift]
    losers: list[ItemShift]
    tastes: list[TasteShift]
    per_user: pl.DataFrame
    """A row per user with a list, columns `arp@k`, … as `evaluate` has them; null where there is no history."""
    notes: list[str]


def amplification(log: Interactions, recs: Recommendations) -> Amplification:
    """The lists of `recs` against the log."""
    counts, lists = log.counts, recs.items
    lengths = (lists >= 0).sum(axis=1)
    shown = bias.exposure(lists, log.n_items)
    if not shown.any():
        raise InputError(
            f"no list of {recs.name} has an item that the log knows; audit it against the log it came from"
        )
    of_candidates = shown if log.candidates is None else shown[log.candidates]
    by_decile = bias.decile_shares(lists, popularity_deciles(counts)).tolist()
    users = _per_user(log, recs)
    both = users.drop_nulls("popularity_lift")
    lift = both["popularity_lift"].to_numpy()
    winners, losers = most_moved(shown / shown.sum() - counts / counts.sum(), MOVED)
    return Amplification(
        name=recs.name,
        k=lists.shape[1],
        users=len(users),
        users_without=int((log.history_lengths > 0).sum()) - len(both),
        recommendations=int(lengths.sum()),
        longest_list=int(lengths.max(initial=0)),
        coverage=float((of_candidates > 0).sum() / log.n_candidates),
        gini=gini(of_candidates),
        head_share=share_of(head(counts), shown),
        arp=_mean(users["arp"]),
        arp_history=_mean(both["arp_history"]),
        popularity_lift=_mean(both["popularity_lift"]),
        amplified_users=_mean(both["popularity_lift"] > 0),
        aplt=_mean(users["aplt"]),
        aplt_history=_mean(both["aplt_history"]),
        upd=_mean(both["upd"]),
        lift_quantiles={name: float(np.quantile(lift, q)) for name, q in QUANTILES.items()} if len(lift) else {},
        deciles=by_decile[:10],
        outside_deciles=by_decile[10],
        lorenz=lorenz(of_candidates).round(6).tolist() if of_candidates.any() else [],
        winners=_shifts(log, shown, winners),
        losers=_shifts(log, shown, losers),
        tastes=[_of_taste(both, taste) for taste in TASTES],
        per_user=users.rename({name: full_name(name, lists.shape[1]) for name in users.columns}),
        notes=[*recs.notes, *_notes(log, recs, shown, users, len(both))],
    )


def _per_user(log: Interactions, recs: Recommendations) -> pl.DataFrame:
    """List against history of each user whose list has a known item; null where there is no history."""
    listed = (recs.items >= 0).any(axis=1)
    users, lists = recs.users[listed], recs.items[listed]
    nothing = np.zeros(0, dtype=np.int64)
    at = GroundTruth(users, len(log.user_ids), log.counts, nothing, history=(log.user, log.item)).context(lists)
    names = pl.Series([*TASTES, None], dtype=pl.String)
    columns = {
        "taste": names.gather(np.where(log.taste[users] < 0, len(TASTES), log.taste[users])),
        "history_length": log.history_lengths[users],
        "list_length": (lists >= 0).sum(axis=1),
        "arp_history": at.truth.history_count,
        "arp": arp(at),
        "popularity_lift": popularity_lift(at),
        "aplt_history": 1.0 - log.popular_share[users],
        "aplt": aplt(at),
        "upd": upd(at),
    }
    ids = log.user_ids.gather(users).alias(Column.USER)
    return pl.DataFrame([ids, *(pl.Series(name, values, nan_to_null=True) for name, values in columns.items())])


def _mean(values: pl.Series) -> float:
    return float(values.mean()) if len(values) else float("nan")  # type: ignore[arg-type]


def _of_taste(users: pl.DataFrame, taste: str) -> TasteShift:
    group = users.filter(pl.col("taste") == taste)
    means = ("arp_history", "arp", "popularity_lift", "aplt_history", "aplt", "upd")
    return TasteShift(taste, len(group), *(_mean(group[name]) for name in means))


def _shifts(log: Interactions, shown: NDArray[np.int64], items: NDArray[Any]) -> list[ItemShift]:
    return [
        ItemShift(
            item_id=log.item_ids[int(item)],
            group="popular" if log.popular[item] else "niche",
            interactions=int(log.counts[item]),
            recommendations=int(shown[item]),
            interaction_share=float(log.counts[item] / log.counts.sum()),
            recommendation_share=float(shown[item] / shown.sum()),
            title=None if log.titles is None else log.titles[int(item)],
        )
        for item in items
    ]


def _notes(
    log: Interactions, recs: Recommendations, shown: NDArray[np.int64], users: pl.DataFrame, compared: int
) -> list[str]:
    """Whom and what the comparison leaves out."""
    notes = []
    newcomers, without = len(users) - compared, int((log.history_lengths > 0).sum()) - compared
    if newcomers:
        who = counted(newcomers, "user with a list has", "users with a list have")
        notes.append(f"{recs.name}: {who} no history to hold their lists against")
    if without:
        notes.append(f"{recs.name}: {counted(without, 'user of the log has', 'users of the log have')} no list")
    if log.candidates is not None:
        outside = int(shown.sum() - shown[log.candidates].sum())
        if outside:
            what = counted(outside, "recommendation is of an item that is", "recommendations are of items that are")
            notes.append(f"{recs.name}: {what} no candidate; coverage and gini leave it out")
    return notes
