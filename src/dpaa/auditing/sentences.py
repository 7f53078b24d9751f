"""An audit in plain sentences: what the numbers are, and what they would be if all items were alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from dpaa._text import counted
from dpaa.auditing.amplification import Amplification
from dpaa.auditing.drift import Drift
from dpaa.auditing.skew import Skew

HARDLY = 0.05
"""A relative change below this is called none."""
MIDNIGHT = "T00:00:00+00:00"
CLOCKS = (1, 1_000, 1_000_000, 1_000_000_000)
"""Ticks of a second: times since 1970 are kept in seconds, milli-, micro- or nanoseconds."""
FIRST, LAST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1990, 2100))
"""Numbers that all fall between are taken for times since 1970; 20240131 or 202401311259 do not."""


def log_in_words(log: Skew) -> list[str]:
    """How skewed the log is."""
    said = [
        f"{counted(log.users, 'user', 'users')}, {counted(log.items, 'item', 'items')}, "
        f"{counted(log.interactions, 'interaction', 'interactions')}.",
        f"The most popular fifth of the items ({log.head_items:,}) has {_share(log.log_head_share)} of the "
        "interactions; if all items were alike it would have 20 %.",
        f"Half of the interactions are on {counted(log.items_for_half, 'item', 'items')} "
        f"({_share(log.items_for_half / log.items)} of them), 80 % on {log.items_for_80:,} "
        f"({_share(log.items_for_80 / log.items)}); these are called popular below, all others niche.",
        f"Gini coefficient {log.log_gini:.3f}: 0 is all items alike, near 1 is a few items with everything.",
    ]
    if log.items_once:
        said.append(
            f"{counted(log.items_once, 'item has', 'items have')} a single interaction "
            f"({_share(log.items_once / log.items)}): next to nothing can be learned about them."
        )
    if log.items_without:
        more = "more item is known but has no interaction here and is"
        said.append(
            f"{counted(log.items_without, more, 'more items are known but have no interaction here and are')} "
            "not counted above."
        )
    said.append(
        f"The median user has {log.history['median']:,.0f} items in the history (a tenth of the users at most "
        f"{log.history['10%']:,.0f}, a tenth at least {log.history['90%']:,.0f}); on average "
        f"{_share(log.popular_in_history)} of a history are popular items."
    )
    if log.periods:
        said.append(_over_time(log))
    return said


def drift_in_words(drift: Drift) -> list[str]:
    """What has changed since."""
    moved = "higher" if drift.drift_head_share > 0 else "lower"
    return [
        f"Against {drift.older} ({drift.older_interactions:,} interactions): the items' shares have moved by "
        f"{drift.drift_distance:.3f} (0 is the same, 1 nothing in common); {_share(drift.drift_head_turnover)} of the "
        f"most popular fifth were not in it before, and its share of the interactions is "
        f"{100 * abs(drift.drift_head_share):.1f} points {moved}.",
        f"{_share(drift.drift_new_items_share)} of the interactions are on items that had none before; "
        f"{_share(drift.drift_gone_items_share)} of those before were on items that have none now.",
    ]


def _over_time(log: Skew) -> str:
    first, last = log.periods[0], log.periods[-1]
    change = (last.log_head_share - first.log_head_share) / first.log_head_share
    verdict = "hardly changes" if abs(change) < HARDLY else "grows" if change > 0 else "shrinks"
    return (
        f"Over time the concentration {verdict}: from the first to the last of {len(log.periods)} periods the most "
        f"popular fifth goes from {_share(first.log_head_share)} to {_share(last.log_head_share)} of the interactions, "
        f"niche items from {_share(first.log_niche_share)} to {_share(last.log_niche_share)} (each pair at its first "
        "time)."
    )


def lists_in_words(log: Skew, recs: Amplification) -> list[str]:
    """What the lists do with it."""
    said = [
        f"{recs.name}: {counted(recs.recommendations, 'recommendation', 'recommendations')} to "
        f"{counted(recs.users, 'user', 'users')}, lists of up to {recs.longest_list:,}."
    ]
    if math.isfinite(recs.popularity_lift):
        lift = recs.popularity_lift
        verdict = (
            "For the average user the list is about as popular as the history"
            if abs(lift) < HARDLY
            else f"For the average user the list is {100 * abs(lift):,.0f} % {'more' if lift > 0 else 'less'} popular "
            "than the history"
        )
        said.append(
            f"{verdict}: a recommended item has {recs.arp:,.1f} interactions on average, one of the "
            f"history {recs.arp_history:,.1f}; {_share(recs.amplified_users)} of the users get a list that is more "
            "popular than their history."
        )
        said.append(
            f"Niche items are {_share(recs.aplt_history)} of a history and {_share(recs.aplt)} of a "
            f"list; the mix of head, middle and tail items shifts by {recs.upd:.3f} (0 = not at all, 1 = entirely)."
        )
    said += [
        f"The most popular fifth of the items has {_share(log.log_head_share)} of the interactions and "
        f"{_share(recs.head_share)} of the recommendations.",
        f"{_share(recs.coverage)} of the candidates are recommended to anybody; Gini coefficient of the "
        f"recommendations over all candidates {recs.gini:.3f}.",
    ]
    return said


def moments(times: Sequence[str | float]) -> list[str]:
    """Times of one log for people: dates (UTC) where they are ISO or count from 1970, else the log's own numbers."""
    numbers = [time for time in times if not isinstance(time, str)]
    clock = next((c for c in CLOCKS if all(FIRST <= time / c < LAST for time in numbers)), None)
    if numbers and clock is None:
        return [str(time) for time in times]
    iso = [
        time if isinstance(time, str) else datetime.fromtimestamp(int(time / (clock or 1)), UTC).isoformat()
        for time in times
    ]
    whole_days = all(MIDNIGHT in time for time in iso)
    return [time.replace(MIDNIGHT if whole_days else "+00:00", "").replace("T", " ") for time in iso]


def _share(value: float) -> str:
    """`7.3 %`, `0.04 %`."""
    percent = 100 * value
    return f"{percent:.1f} %" if percent >= 0.1 or percent == 0 else f"{percent:.2g} %"
