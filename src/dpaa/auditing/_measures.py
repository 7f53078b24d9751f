"""What an audit measures: how skewed a log is, whether lists amplify it, and what has changed since an older log."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._text import counted
from dpaa.auditing._interactions import Interactions
from dpaa.auditing.checks import full_name
from dpaa.data.columns import Column
from dpaa.data.ids import is_text
from dpaa.data.popularity import popular_items, popularity_deciles
from dpaa.errors import InputError
from dpaa.evaluation import bias
from dpaa.evaluation.concentration import TASTES, gini, head, lorenz, most_moved, share_of
from dpaa.evaluation.context import GroundTruth
from dpaa.evaluation.metrics import METRICS
from dpaa.evaluation.recommendations import Recommendations

QUANTILES = {"min": 0.0, "10%": 0.1, "25%": 0.25, "median": 0.5, "75%": 0.75, "90%": 0.9, "max": 1.0}
MOVED = 10
"""Winners and losers that are listed."""
HARDLY = 0.05
"""A relative change below this is called none."""
_TICKS = (1, 1_000, 1_000_000, 1_000_000_000)
"""Per second: times since 1970 are kept in seconds, milli-, micro- or nanoseconds."""
_EPOCH_RANGE = datetime(1990, 1, 1, tzinfo=UTC).timestamp(), datetime(2100, 1, 1, tzinfo=UTC).timestamp()
"""Numbers that all fall between are taken for times since 1970; 20240131 or 202401311259 do not."""
_MIDNIGHT = "T00:00:00+00:00"


# ---------------------------------------------------------------------- the log alone


@dataclass(frozen=True)
class Period:
    """One of the slices of equally many interactions that the log is cut into, in the order of time."""

    start: str | float
    """Of its first interaction, `end` of its last; ISO where the log has dates, else the log's own numbers."""
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
    """Its share of the interactions; 0.2 if all items were alike."""
    top_item_share: float
    items_for_half: int
    """The fewest items that together have half of the interactions."""
    items_for_80: int
    """The same for 80%: the popular items; all others are niche."""
    items_once: int
    """Items with a single interaction."""
    deciles: list[float]
    """Share of the interactions on each decile of the items, rarest first."""
    lorenz: list[list[float]]
    """Points (p, L): the least popular share p of the items has the share L of the interactions."""
    history: dict[str, float]
    """Items per user: quantiles and mean."""
    popular_in_history: float
    """Mean over users of the share of popular items in their history."""
    tastes: list[TasteGroup]
    periods: list[Period]
    """Empty where there are no times, or one time only."""

    def numbers(self) -> dict[str, float]:
        """By the names of `LOG_NUMBERS`; NaN where one has no value."""
        first, last = (self.periods[0], self.periods[-1]) if self.periods else (None, None)
        return {
            "log_users": self.users,
            "log_items": self.items,
            "log_interactions": self.interactions,
            "log_gini": self.log_gini,
            "log_head_share": self.log_head_share,
            "log_top_item_share": self.top_item_share,
            "log_items_for_80": self.items_for_80,
            "log_items_for_80_share": self.items_for_80 / self.items,
            "log_items_once": self.items_once,
            "log_items_once_share": self.items_once / self.items,
            "log_history_median": self.history["median"],
            "log_popular_in_history": self.popular_in_history,
            "log_head_share_trend": last.log_head_share - first.log_head_share if first and last else math.nan,
            "log_niche_share_trend": last.log_niche_share - first.log_niche_share if first and last else math.nan,
        }

    def sentences(self) -> list[str]:
        """How skewed the log is, and what the numbers would be if all items were alike."""
        said = [
            f"{counted(self.users, 'user', 'users')}, {counted(self.items, 'item', 'items')}, "
            f"{counted(self.interactions, 'interaction', 'interactions')}.",
            f"The most popular fifth of the items ({self.head_items:,}) has {_share(self.log_head_share)} of the "
            "interactions; if all items were alike it would have 20 %.",
            f"Half of the interactions are on {counted(self.items_for_half, 'item', 'items')} "
            f"({_share(self.items_for_half / self.items)} of them), 80 % on {self.items_for_80:,} "
            f"({_share(self.items_for_80 / self.items)}); these are called popular below, all others niche.",
            f"Gini coefficient {self.log_gini:.3f}: 0 is all items alike, near 1 is a few items with everything.",
        ]
        if self.items_once:
            said.append(
                f"{counted(self.items_once, 'item has', 'items have')} a single interaction "
                f"({_share(self.items_once / self.items)}): next to nothing can be learned about them."
            )
        if self.items_without:
            more = "more item is known but has no interaction here and is"
            many = "more items are known but have no interaction here and are"
            said.append(f"{counted(self.items_without, more, many)} not counted above.")
        said.append(
            f"The median user has {self.history['median']:,.0f} items in the history (a tenth of the users at most "
            f"{self.history['10%']:,.0f}, a tenth at least {self.history['90%']:,.0f}); on average "
            f"{_share(self.popular_in_history)} of a history are popular items."
        )
        if self.periods:
            first, last = self.periods[0], self.periods[-1]
            change = (last.log_head_share - first.log_head_share) / first.log_head_share
            verdict = "hardly changes" if abs(change) < HARDLY else "grows" if change > 0 else "shrinks"
            said.append(
                f"Over time the concentration {verdict}: from the first to the last of {len(self.periods)} periods the "
                f"most popular fifth goes from {_share(first.log_head_share)} to {_share(last.log_head_share)} of the "
                f"interactions, niche items from {_share(first.log_niche_share)} to {_share(last.log_niche_share)} "
                "(each pair at its first time)."
            )
        return said


def skew(log: Interactions, periods: int) -> Skew:
    """How skewed the log is; times are cut into so many periods."""
    counts, popular = log.counts, log.popular
    taken = counts[counts > 0]
    in_head, decile = head(counts), popularity_deciles(counts)
    lengths = log.history_lengths[log.history_lengths > 0]
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
        history=_quantiles(lengths) | {"mean": float(lengths.mean())},
        popular_in_history=float(np.nanmean(log.popular_share)),
        tastes=[_taste_group(log, number, name) for number, name in enumerate(TASTES)],
        periods=[] if log.times is None else list(_periods(log.times, popular, periods)),
    )


def _quantiles(values: NDArray[Any]) -> dict[str, float]:
    return {name: float(np.quantile(values, q)) for name, q in QUANTILES.items()} if len(values) else {}


def _taste_group(log: Interactions, number: int, name: str) -> TasteGroup:
    group = log.taste == number
    shares, lengths = log.popular_share[group], log.history_lengths[group]
    if not len(shares):
        return TasteGroup(name, 0, *[math.nan] * 4)
    lowest, mean, highest = float(shares.min()), float(shares.mean()), float(shares.max())
    return TasteGroup(name, len(shares), lowest, mean, highest, float(np.median(lengths)))


def _periods(times: pl.DataFrame, popular: NDArray[np.bool_], wanted: int) -> Iterator[Period]:
    """Slices with about as many interactions each, so that their Gini can be compared; equal times stay together."""
    time, item, count = times["time"], times["item"].to_numpy(), times["count"].to_numpy()
    stamps = time.to_physical().to_numpy()
    cuts = np.unique(len(stamps) * np.arange(1, wanted) // wanted)
    edges = np.unique(np.partition(stamps, cuts)[cuts]) if len(cuts) else stamps[:0]
    edges = edges[edges > stamps.min()]
    if not len(edges):
        return
    slices = np.searchsorted(edges, stamps, side="right")
    seen = np.zeros(len(popular), dtype=bool)
    for number in range(len(edges) + 1):
        rows = np.flatnonzero(slices == number)
        counts = np.bincount(item[rows], count[rows], minlength=len(popular)).astype(np.int64)
        new = (counts > 0) & ~seen
        seen |= new
        first, last = (time[int(rows[at])] for at in (stamps[rows].argmin(), stamps[rows].argmax()))
        yield Period(
            start=first if isinstance(first, int | float) else first.isoformat(),
            end=last if isinstance(last, int | float) else last.isoformat(),
            interactions=int(counts.sum()),
            items=int((counts > 0).sum()),
            new_items=int(new.sum()),
            log_gini=gini(counts[counts > 0]),
            log_head_share=share_of(head(counts), counts),
            log_niche_share=share_of(~popular, counts),
            new_share=share_of(new, counts),
        )


def readable_times(times: Sequence[str | float]) -> list[str]:
    """Times of one log for people.

    Parameters
    ----------
    times : ISO text in UTC, or the log's own numbers

    Returns
    -------
    dates (UTC) where they are ISO or count from 1970, else the numbers as they are
    """
    numbers = [time for time in times if not isinstance(time, str)]
    low, high = _EPOCH_RANGE
    ticks = next((one for one in _TICKS if all(low <= time / one < high for time in numbers)), None)
    if ticks is None:
        return [str(time) for time in times]
    iso = [
        time if isinstance(time, str) else datetime.fromtimestamp(int(time / ticks), UTC).isoformat() for time in times
    ]
    cut = _MIDNIGHT if all(_MIDNIGHT in time for time in iso) else "+00:00"
    return [time.replace(cut, "").replace("T", " ") for time in iso]


def _share(value: float) -> str:
    """`7.3 %`, `0.04 %`."""
    percent = 100 * value
    return f"{percent:.1f} %" if percent >= 0.1 or percent == 0 else f"{percent:.2g} %"


# ---------------------------------------------------------------------- lists against the log


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
    """Its name for people, where it is known."""


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
    """Length of the lists: where they were cut, else of the longest one, unknown items included."""
    users: int
    """Users with a list of at least one known item."""
    users_without: int
    """Users with a history but without such a list."""
    recommendations: int
    """Entries of lists that are a known item."""
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
    """Share of the recommendations on each decile of the log's items, rarest first."""
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

    def sentences(self, log: Skew) -> list[str]:
        """What the lists do with the skew of the log."""
        said = [
            f"{self.name}: {counted(self.recommendations, 'recommendation', 'recommendations')} to "
            f"{counted(self.users, 'user', 'users')}, lists of up to {self.longest_list:,}."
        ]
        if math.isfinite(lift := self.popularity_lift):
            verdict = f"{100 * abs(lift):,.0f} % {'more' if lift > 0 else 'less'} popular than the history"
            verdict = "about as popular as the history" if abs(lift) < HARDLY else verdict
            said += [
                f"For the average user the list is {verdict}: a recommended item has {self.arp:,.1f} interactions on "
                f"average, one of the history {self.arp_history:,.1f}; {_share(self.amplified_users)} of the users get "
                "a list that is more popular than their history.",
                f"Niche items are {_share(self.aplt_history)} of a history and {_share(self.aplt)} of a list; the mix "
                f"of head, middle and tail items shifts by {self.upd:.3f} (0 = not at all, 1 = entirely).",
            ]
        return [
            *said,
            f"The most popular fifth of the items has {_share(log.log_head_share)} of the interactions and "
            f"{_share(self.head_share)} of the recommendations.",
            f"{_share(self.coverage)} of the candidates are recommended to anybody; Gini coefficient of the "
            f"recommendations over all candidates {self.gini:.3f}.",
        ]


def amplification(log: Interactions, recs: Recommendations) -> Amplification:
    """The lists of `recs` against the log."""
    counts, lists, k = log.counts, recs.items, recs.items.shape[1]
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
    winners, losers = most_moved(shown / shown.sum() - counts / counts.sum(), MOVED)
    without = int((log.history_lengths > 0).sum()) - len(both)
    notes = _notes(recs.name, len(users) - len(both), without, int(shown.sum() - of_candidates.sum()))
    return Amplification(
        name=recs.name,
        k=k,
        users=len(users),
        users_without=without,
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
        lift_quantiles=_quantiles(both["popularity_lift"].to_numpy()),
        deciles=by_decile[:10],
        outside_deciles=by_decile[10],
        lorenz=lorenz(of_candidates).round(6).tolist() if of_candidates.any() else [],
        winners=[_shift(log, shown, int(item)) for item in winners],
        losers=[_shift(log, shown, int(item)) for item in losers],
        tastes=[_taste_shift(both, taste) for taste in TASTES],
        per_user=users.rename({name: full_name(name, k) for name in users.columns}),
        notes=[*recs.notes, *notes],
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
        "arp": METRICS["arp"].formula(at),
        "popularity_lift": METRICS["popularity_lift"].formula(at),
        "aplt_history": 1.0 - log.popular_share[users],
        "aplt": METRICS["aplt"].formula(at),
        "upd": METRICS["upd"].formula(at),
    }
    ids = log.user_ids.gather(users).alias(Column.USER)
    return pl.DataFrame([ids, *(pl.Series(name, values, nan_to_null=True) for name, values in columns.items())])


def _mean(values: pl.Series) -> float:
    return float(values.mean()) if len(values) else math.nan  # type: ignore[arg-type]


def _taste_shift(users: pl.DataFrame, taste: str) -> TasteShift:
    group = users.filter(pl.col("taste") == taste)
    means = ("arp_history", "arp", "popularity_lift", "aplt_history", "aplt", "upd")
    return TasteShift(taste, len(group), *(_mean(group[name]) for name in means))


def _shift(log: Interactions, shown: NDArray[np.int64], item: int) -> ItemShift:
    return ItemShift(
        item_id=log.item_ids[item],
        group="popular" if log.popular[item] else "niche",
        interactions=int(log.counts[item]),
        recommendations=int(shown[item]),
        interaction_share=float(log.counts[item] / log.counts.sum()),
        recommendation_share=float(shown[item] / shown.sum()),
        title=None if log.titles is None else log.titles[item],
    )


def _notes(name: str, newcomers: int, without: int, no_candidates: int) -> Iterator[str]:
    """Which users and items the comparison leaves out."""
    if newcomers:
        who = counted(newcomers, "user with a list has", "users with a list have")
        yield f"{name}: {who} no history to hold their lists against"
    if without:
        yield f"{name}: {counted(without, 'user of the log has', 'users of the log have')} no list"
    if no_candidates:
        what = counted(no_candidates, "recommendation is of an item that is", "recommendations are of items that are")
        yield f"{name}: {what} no candidate; coverage and gini leave it out"


# ---------------------------------------------------------------------- change since an older log


@dataclass(frozen=True)
class Drift:
    """Newer minus older; what the numbers mean is in `checks.DRIFT_NUMBERS`."""

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

    def sentences(self) -> list[str]:
        """What has changed since."""
        moved = "higher" if self.drift_head_share > 0 else "lower"
        return [
            f"Against {self.older} ({self.older_interactions:,} interactions): the items' shares have moved by "
            f"{self.drift_distance:.3f} (0 is the same, 1 nothing in common); {_share(self.drift_head_turnover)} of "
            f"the most popular fifth were not in it before, and its share of the interactions is "
            f"{100 * abs(self.drift_head_share):.1f} points {moved}.",
            f"{_share(self.drift_new_items_share)} of the interactions are on items that had none before; "
            f"{_share(self.drift_gone_items_share)} of those before were on items that have none now.",
        ]


def drift_between(older: Interactions, newer: Interactions) -> Drift:
    """From one log to another; items are told apart by their ids."""
    kinds = ["text" if is_text(log.item_ids) else "integers" for log in (older, newer)]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"the items of {older.source} are {kinds[0]}, those of {newer.source} are {kinds[1]}; cast them"
        )
    ids = pl.DataFrame({"id": pl.concat([older.item_ids, newer.item_ids]).unique()})
    counts = []
    for log in (older, newer):
        table = pl.DataFrame({"id": log.item_ids, "count": log.counts.astype(np.float64)})
        counts.append(ids.join(table, on="id", how="left", maintain_order="left")["count"].fill_null(0.0).to_numpy())
    return _drift(older.source, newer.source, *counts)


def drift_at(log: Interactions, moment: str) -> Drift:
    """Within a log: interactions from that moment on against those before it."""
    if log.times is None:
        raise InputError(f"{log.source} has no times, so it cannot be cut at {moment!r}; name an older log instead")
    item, count = log.times["item"].to_numpy(), log.times["count"].to_numpy()
    early = (log.times["time"] < _comparable(moment, log.times["time"])).to_numpy()
    if early.all() or not early.any():
        side = "after" if early.all() else "before"
        raise InputError(f"there is nothing in {log.source} {side} {moment}; choose a time between its first and last")
    parts = [np.bincount(item[rows], count[rows], minlength=log.n_items).astype(np.float64) for rows in (early, ~early)]
    return _drift(f"{log.source} before {moment}", f"{log.source} from {moment} on", *parts)


def is_moment(text: str | Path) -> bool:
    """Whether this is a number or an ISO date, and no file of that name."""
    for parse in (float, datetime.fromisoformat):
        try:
            parse(str(text))
        except ValueError:
            continue
        return not Path(text).exists()
    return False


def _comparable(moment: str, stamps: pl.Series) -> Any:
    """A moment in the log's own terms: a number, or an ISO date."""
    try:
        if stamps.dtype.is_numeric():
            return float(moment)
        found = pl.Series([datetime.fromisoformat(moment)]).cast(pl.Datetime("us"))
    except ValueError:
        raise InputError(
            f"the times of the log are numbers, and {moment!r} is none; give one such as {stamps[0]}"
            if stamps.dtype.is_numeric()
            else f"{moment!r} is neither a file nor a date; write for example 2026-11-01"
        ) from None
    return found.dt.replace_time_zone(getattr(stamps.dtype, "time_zone", None))[0]


def _drift(older: str, newer: str, before: NDArray[np.float64], after: NDArray[np.float64]) -> Drift:
    heads = head(before), head(after)
    return Drift(
        older=older,
        newer=newer,
        older_interactions=int(before.sum()),
        newer_interactions=int(after.sum()),
        drift_distance=float(bias.upd((before / before.sum())[None], (after / after.sum())[None])[0]),
        drift_new_items_share=share_of(before == 0, after),
        drift_gone_items_share=share_of(after == 0, before),
        drift_head_turnover=float((heads[1] & ~heads[0]).sum() / max(heads[1].sum(), 1)),
        drift_head_share=share_of(heads[1], after) - share_of(heads[0], before),
        drift_gini=gini(after[after > 0]) - gini(before[before > 0]),
    )
