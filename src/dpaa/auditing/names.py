"""The names of an audit's numbers: `log_…` of the log, `…@k` of recommended lists; no name is both.

Where `evaluate` measures the same of lists, the name is that of its metric.
"""

from __future__ import annotations

import difflib

from dpaa.errors import InputError
from dpaa.evaluation.metrics import METRICS

LOG_NUMBERS = {
    "log_users": "users with an interaction",
    "log_items": "items with an interaction",
    "log_interactions": "distinct user-item pairs (with --keep-duplicates: rows)",
    "log_gini": "Gini coefficient of the items' interactions; 0 = all alike, near 1 = a few have all",
    "log_head_share": "share of the interactions on the fifth of the items that has the most; 0.2 = all alike",
    "log_top_item_share": "share of the interactions on the most popular item",
    "log_items_for_80": "fewest items that have 80 % of the interactions: the popular items",
    "log_items_for_80_share": "the same as a share of the items; 0.8 = all alike",
    "log_items_once": "items with a single interaction",
    "log_items_once_share": "the same as a share of the items",
    "log_history_median": "median number of items in a user's history",
    "log_popular_in_history": "share of popular items in a user's history, mean over users",
    "log_head_share_trend": "log_head_share of the last period minus that of the first; needs times",
    "log_niche_share_trend": "share of interactions on niche items, last period minus first; needs times",
}
"""What `--fail-if` can ask of a log, and what it means."""

DRIFT_NUMBERS = {
    "drift_distance": "Jensen-Shannon distance between the items' shares of the interactions, older and newer; 0 = the "
    "same, 1 = nothing in common",
    "drift_new_items_share": "share of the newer interactions on items that the older ones lack",
    "drift_gone_items_share": "share of the older interactions on items that the newer ones lack",
    "drift_head_turnover": "share of the newer head (the fifth of the items with the most) that was not in it before",
    "drift_head_share": "share of the interactions on the head, newer minus older",
    "drift_gini": "Gini coefficient of the items' interactions, newer minus older",
}
"""What `--fail-if` can ask where there is something older to hold a log against."""

LIST_NUMBERS = {name: METRICS[name].words for name in ("coverage", "gini", "head_share", "arp")} | {
    "arp_history": "the same of the histories of the users with a list",
    "popularity_lift": METRICS["popularity_lift"].words,
    "amplified_users": "share of the users whose list is more popular than their history",
    "aplt": METRICS["aplt"].words,
    "aplt_history": "the same of the histories of the users with a list",
    "upd": METRICS["upd"].words,
}
"""What `--fail-if` can ask of recommendations besides, as `name@k`."""

FORMER = {
    "exposure_gini": "gini",
    "exposure_head_share": "head_share",
    "niche_share": "aplt",
    "niche_share_history": "aplt_history",
}
"""Names that lists' numbers had before, and have now."""


def full_name(name: str, k: int) -> str:
    """`arp` as `arp@20`; what is no number of lists stays as it is."""
    return f"{name}@{k}" if name in LIST_NUMBERS else name


def check_name(name: str, with_recs: bool, k: int | None = None, with_older: bool = False) -> None:
    """Refuse what is not the name of one number here; `k` is the length of the lists, where it is known yet."""
    if name in LOG_NUMBERS:
        return
    if name in DRIFT_NUMBERS:
        if not with_older:
            raise InputError(f"--fail-if {name!r} is about change; name an older log or a time with --against")
        return
    base, at, cut = name.partition("@")
    if base in LIST_NUMBERS and at:
        if not with_recs:
            raise InputError(f"--fail-if {name!r} is about recommendations; name their file with --recs")
        if k is not None and cut != str(k):
            raise InputError(f"--fail-if {name!r}: the lists have {k:,} places; write {base}@{k}")
        return
    length = "K" if k is None else str(k)
    now = FORMER.get(base, base)
    told = " (K is the length of the lists)" if k is None and now in LIST_NUMBERS else ""
    could_be = [f"log_{base}"] if f"log_{base}" in LOG_NUMBERS else []
    could_be += [f"{now}@{length}"] if now in LIST_NUMBERS else []
    if len(could_be) == 2:
        raise InputError(
            f"--fail-if {name!r} could be two numbers: write {could_be[0]} for that of the log or {could_be[1]} for "
            f"that of the recommended lists{told}"
        )
    if could_be:
        raise InputError(f"--fail-if {name!r}: this number is called {could_be[0]}; write that{told}")
    known = [*LOG_NUMBERS, *(f"{one}@{length}" for one in LIST_NUMBERS), *DRIFT_NUMBERS]
    near = difflib.get_close_matches(name, known, 2)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    raise InputError(f"--fail-if: there is no number {name!r}; {meant}there are {', '.join(known)}")
