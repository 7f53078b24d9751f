"""The popularity-bias audit of a log and of anybody's recommendations: numbers, what they mean, and checks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpaa
from dpaa.data.tables import open_table
from dpaa.errors import InputError
from dpaa.evaluation.amplification import Amplification, amplification
from dpaa.evaluation.audit_words import lists_in_words, log_in_words
from dpaa.evaluation.checks import Check, CheckResult
from dpaa.evaluation.interactions import interactions
from dpaa.evaluation.recommendations import read_recommendations
from dpaa.evaluation.skew import PERIODS, Skew, skew

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpaa.data.log import ColumnNames

LOG_NUMBERS = {
    "users": "users with an interaction",
    "items": "items with an interaction",
    "interactions": "distinct user-item pairs (with --keep-duplicates: rows)",
    "gini": "Gini coefficient of the items' interactions; 0 = all alike, near 1 = a few have all",
    "head_share": "share of the interactions on the fifth of the items that has the most; 0.2 = all alike",
    "top_item_share": "share of the interactions on the most popular item",
    "items_for_80": "fewest items that have 80 % of the interactions: the popular items",
    "items_for_80_share": "the same as a share of the items; 0.8 = all alike",
    "items_once": "items with a single interaction",
    "items_once_share": "the same as a share of the items",
    "history_median": "items in the history of the middle user",
    "popular_in_history": "share of popular items in a user's history, mean over users",
    "head_share_trend": "head share of the last period minus that of the first; needs times",
    "niche_share_trend": "share of interactions on niche items, last period minus first; needs times",
}
"""What `--fail-if` can ask of a log, and what it means."""

LIST_NUMBERS = {
    "coverage": "share of the candidates that anybody is recommended",
    "exposure_gini": "Gini coefficient of the recommendations over all candidates",
    "exposure_head_share": "share of the recommendations on the log's head, the items of head_share",
    "arp": "mean number of interactions of the recommended items, mean over users",
    "arp_history": "the same of the users' histories",
    "popularity_lift": "(arp of the list − arp of the history) / arp of the history, mean over users; 0 = alike",
    "amplified_users": "share of the users whose list is more popular than their history",
    "niche_share": "share of niche items in a list, mean over users",
    "niche_share_history": "the same of the users' histories",
    "upd": "Jensen-Shannon distance between the shares of head, middle and tail items, mean over users; 0 = alike",
}
"""What `--fail-if` can ask of recommendations besides."""


@dataclass(frozen=True)
class Audit:
    """What was found, in numbers and in words."""

    source: str
    """What was audited, in words."""
    log: Skew
    recommendations: Amplification | None
    checks: list[CheckResult]
    notes: list[str]

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers that checks can ask for, by name; NaN where one has no value here."""
        log = self.log
        first, last = (log.periods[0], log.periods[-1]) if log.periods else (None, None)
        derived: dict[str, float] = {
            "items_for_80_share": log.items_for_80 / log.items,
            "items_once_share": log.items_once / log.items,
            "history_median": log.history["median"],
            "head_share_trend": last.head_share - first.head_share if first and last else float("nan"),
            "niche_share_trend": last.niche_share - first.niche_share if first and last else float("nan"),
        }
        found = {name: derived[name] if name in derived else getattr(log, name) for name in LOG_NUMBERS}
        if self.recommendations is not None:
            found |= {name: getattr(self.recommendations, name) for name in LIST_NUMBERS}
        return found

    @property
    def failed(self) -> list[CheckResult]:
        """The checks that said no."""
        return [check for check in self.checks if check.failed]

    def in_words(self) -> list[str]:
        """The same in plain sentences, the most telling first."""
        recs = self.recommendations
        return [*log_in_words(self.log), *([] if recs is None else lists_in_words(self.log, recs))]

    def as_json(self) -> dict[str, Any]:
        """As `audit --json` prints it; the table per user is not in it."""
        recs = self.recommendations
        meanings = LOG_NUMBERS | (LIST_NUMBERS if recs else {})
        return {
            "kind": "audit",
            "version": dpaa.__version__,
            "source": self.source,
            "numbers": self.numbers,
            "meanings": meanings,
            "in_words": self.in_words(),
            "log": asdict(self.log),
            "recommendations": None if recs is None else _without_frame(recs),
            "checks": [check.as_json() for check in self.checks],
            "notes": self.notes,
        }


def audit(
    data: Any,
    recs: Any = None,
    *,
    k: int | None = None,
    fail_if: Sequence[str] = (),
    fmt: str | None = None,
    names: ColumnNames | None = None,
    positive: str | None = None,
    keep_duplicates: bool = False,
    periods: int = PERIODS,
) -> Audit:
    """The audit of `data`, and of recommendations made from it.

    `data` is a prepared dataset or its folder (its training split is the log), a log file or a dataframe; `recs` a
    recommendation file or a dataframe `user_id, item_id[, score][, rank]`, whose lists are cut after `k` places.
    `fail_if` are checks such as "head_share>0.8" (see `Audit.failed`).  `fmt`, `names`, `positive` and
    `keep_duplicates` say how a log is read, as `dpaa data log` does; `periods` into how many parts times are cut.
    """
    checks = parse_checks(fail_if, recs is not None)
    if periods < 1:
        raise InputError(f"periods must be at least 1, got {periods!r}")
    if k is not None and recs is None:
        raise InputError("k cuts recommended lists; name their file with --recs, or leave it out")
    if isinstance(recs, str | Path):
        open_table(recs)  # a file that is not there need not wait for the log
    log = interactions(data, fmt=fmt, names=names, positive=positive, keep_duplicates=keep_duplicates)
    notes = list(log.notes)
    lists = None
    if recs is not None:
        read = read_recommendations(recs, log.user_ids, log.item_ids, k)
        lists = amplification(log, read)
        notes += lists.notes
    shape = skew(log, periods)
    if log.times is not None and periods > 1 and not shape.periods:
        notes.append(f"{log.source} has one time only, so nothing can be said about change over time")
    if log.times is not None and log.times.repeated and shape.periods:
        notes.append(
            f"{log.source} has pairs that come again later; over time each stands at its first time, which by itself "
            "makes later periods look less concentrated"
        )
    found = Audit(log.source, shape, lists, [], notes)
    return replace(found, checks=[check.apply(found.numbers) for check in checks])


def parse_checks(texts: Sequence[str], with_recs: bool) -> list[Check]:
    """The checks; a number of recommendations where there are none is an error of its own."""
    checks = [Check.parse(text, [*LOG_NUMBERS, *LIST_NUMBERS]) for text in texts]
    for check in checks:
        if check.name in LIST_NUMBERS and not with_recs:
            raise InputError(f"--fail-if {str(check)!r} is about recommendations; name their file with --recs")
    return checks


def _without_frame(recs: Amplification) -> dict[str, Any]:
    shown = {field.name: getattr(recs, field.name) for field in fields(recs) if field.name not in ("per_user", "notes")}
    return shown | {name: [asdict(item) for item in shown[name]] for name in ("winners", "losers", "tastes")}
