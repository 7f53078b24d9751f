"""How a log's interactions are spread: over items, over time, over users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.auditing.interactions import Interactions, Times
from dpaa.data.popularity import popular_items, popularity_deciles
from dpaa.evaluation.concentration import TASTES, gini, head, lorenz, share_of

PERIODS = 10
QUANTILES = {"min": 0.0, "10%": 0.1, "25%": 0.25, "median": 0.5, "75%": 0.75, "90%": 0.9, "max": 1.0}


@dataclass(frozen=True)
class Period:
    """One of the slices of equally many interactions that the log is cut into, in the order of time."""

    start: str | float
    """Of its first and of its last interaction; ISO where the log has dates, else the log's own numbers."""
    end: str | float
    interactions: int
    items: int
    """Items with an interaction in this period; `log_gini` and `log_head_share` are over these."""
    new_items: int
    """Items whose first interaction falls into this period."""
    log_gini: float
    log_head_share: float
    log_niche_share: float
    """Share of the interactions on items that are niche in the whole log."""
    new_share: float
    """Share of the interactions on new items."""


@dataclass(frozen=True)
class TasteGroup:
    """Users whose histories are about as popular: niche, diverse or blockbuster tastes (`evaluation.concentration`)."""

    taste: str
    users: int
    lowest: float
    """Smallest share of popular items in a history of the group, its mean and the largest; NaN of an empty group."""
    mean: float
    highest: float
    history_median: float
    """Median number of items in a history of the group."""


@dataclass(frozen=True)
class Skew:
    """The log alone.  Items are those with at least one interaction.

    What lists have too (a Gini coefficient, a share of the head) is called `log_…`, so that no name means two numbers.
    """

    users: int
    items: int
    interactions: int
    items_without: int
    """Items that are known (candidates, items of other splits) but have no interaction."""
    log_gini: float
    head_items: int
    """The fifth of the items, rounded up, with the most interactions."""
    log_head_share: float
    """Its share of the interactions; .2 if all items were alike."""
    top_item_share: float
    items_for_half: int
    """The fewest items that together have half of the interactions."""
    items_for_80: int
    """The same for 80 %: the popular items; all others are niche."""
    items_once: int
    """Items with a single interaction."""
    deciles: list[float]
    """Share of the interactions on each tenth of the items, rarest first."""
    lorenz: list[list[float]]
    """Points (p, L): the least popular share p of the items has the share L of the interactions."""
    history: dict[str, float]
    """Items per user: quantiles and mean."""
    popular_in_history: float
    """Mean over users of the share of popular items in their history."""
    tastes: list[TasteGroup]
    periods: list[Period]
    """Empty where there are no times, or one time only."""


def skew(log: Interactions, periods: int = PERIODS) -> Skew:
    """How skewed the log is."""
    counts, popular = log.counts, log.popular
    taken = counts[counts > 0]
    in_head, decile = head(counts), popularity_deciles(counts)
    lengths = log.history_lengths[log.history_lengths > 0]
    history = {name: float(np.quantile(lengths, q)) for name, q in QUANTILES.items()} | {"mean": float(lengths.mean())}
    return Skew(
        users=len(lengths),
        items=len(taken),
        interactions=int(taken.sum()),
        items_without=len(counts) - len(taken),
        log_gini=gini(taken),
        head_items=int(in_head.sum()),
        log_head_share=share_of(in_head, counts),
        top_item_share=float(taken.max() / taken.sum()),
        items_for_half=int(popular_items(counts, 0.5).sum()),
        items_for_80=int(popular.sum()),
        items_once=int((taken == 1).sum()),
        deciles=(np.bincount(decile[counts > 0], taken, minlength=10) / taken.sum()).tolist(),
        lorenz=lorenz(taken).round(6).tolist(),
        history=history,
        popular_in_history=float(np.nanmean(log.popular_share)),
        tastes=[_taste_group(log, number, name) for number, name in enumerate(TASTES)],
        periods=[] if log.times is None else list(_periods(log.times, popular, periods)),
    )


def _taste_group(log: Interactions, number: int, name: str) -> TasteGroup:
    group = log.taste == number
    shares, lengths = log.popular_share[group], log.history_lengths[group]
    if not len(shares):
        return TasteGroup(name, 0, *[float("nan")] * 4)
    lowest, mean, highest = (float(value) for value in (shares.min(), shares.mean(), shares.max()))
    return TasteGroup(name, len(shares), lowest, mean, highest, float(np.median(lengths)))


def _periods(times: Times, popular: NDArray[np.bool_], wanted: int) -> Iterator[Period]:
    """Slices with about as many interactions each, so that their Gini can be compared; equal times stay together."""
    stamps = times.time.to_physical().to_numpy()
    places = np.unique(len(stamps) * np.arange(1, wanted) // wanted)
    edges = np.unique(np.partition(stamps, places)[places]) if len(places) else stamps[:0]
    edges = edges[edges > stamps.min()]
    if not len(edges):
        return
    slices = np.searchsorted(edges, stamps, side="right")
    seen = np.zeros(len(popular), dtype=bool)
    for number in range(len(edges) + 1):
        rows = np.flatnonzero(slices == number)
        weight = None if times.count is None else times.count[rows]
        counts = np.bincount(times.item[rows], weight, minlength=len(popular)).astype(np.int64)
        new = (counts > 0) & ~seen
        seen |= new
        first, last = int(rows[stamps[rows].argmin()]), int(rows[stamps[rows].argmax()])
        yield Period(
            start=_moment(times.time, first),
            end=_moment(times.time, last),
            interactions=int(counts.sum()),
            items=int((counts > 0).sum()),
            new_items=int(new.sum()),
            log_gini=gini(counts[counts > 0]),
            log_head_share=share_of(head(counts), counts),
            log_niche_share=share_of(~popular, counts),
            new_share=share_of(new, counts),
        )


def _moment(time: pl.Series, row: int) -> str | float:
    """ISO 8601 in UTC, or the number as it is."""
    value = time[row]
    return value if isinstance(value, int | float) else value.isoformat()
