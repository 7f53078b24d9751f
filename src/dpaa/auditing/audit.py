"""The popularity-bias audit of a log and of anybody's recommendations: numbers, what they mean, and checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import polars as pl

import dpaa
from dpaa.auditing.amplification import Amplification, amplification
from dpaa.auditing.checks import Check, CheckResult
from dpaa.auditing.drift import Drift, drift_at, drift_between, is_moment
from dpaa.auditing.interactions import Interactions, interactions
from dpaa.auditing.names import DRIFT_NUMBERS, LIST_NUMBERS, LOG_NUMBERS, check_name, full_name
from dpaa.auditing.openmetrics import exposition
from dpaa.auditing.schema import SCHEMA_VERSION
from dpaa.auditing.sentences import drift_in_words, lists_in_words, log_in_words
from dpaa.auditing.skew import PERIODS, Skew, skew
from dpaa.data.dataset import Dataset
from dpaa.data.inputs import TextForm
from dpaa.data.log import ColumnNames
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.recommendations import open_recommendations, read_recommendations


@dataclass(frozen=True)
class Audit:
    """What was found, in numbers and in words."""

    source: str
    """What was audited, in words."""
    log: Skew
    recommendations: Amplification | None
    checks: list[CheckResult]
    notes: list[str]
    drift: Drift | None = None
    """What has changed since an older log, or since a time."""
    invalid: pl.DataFrame | None = field(default=None, repr=False)
    """Rows of the log that were left out as invalid: `source, row, fault, content`."""

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers that checks can ask for, by name; NaN where one has no value here."""
        log, recs = self.log, self.recommendations
        first, last = (log.periods[0], log.periods[-1]) if log.periods else (None, None)
        found: dict[str, float] = {
            "log_users": log.users,
            "log_items": log.items,
            "log_interactions": log.interactions,
            "log_gini": log.log_gini,
            "log_head_share": log.log_head_share,
            "log_top_item_share": log.top_item_share,
            "log_items_for_80": log.items_for_80,
            "log_items_for_80_share": log.items_for_80 / log.items,
            "log_items_once": log.items_once,
            "log_items_once_share": log.items_once / log.items,
            "log_history_median": log.history["median"],
            "log_popular_in_history": log.popular_in_history,
            "log_head_share_trend": last.log_head_share - first.log_head_share if first and last else float("nan"),
            "log_niche_share_trend": last.log_niche_share - first.log_niche_share if first and last else float("nan"),
        }
        if recs is not None:
            found |= {full_name(name, recs.k): getattr(recs, name) for name in LIST_NUMBERS}
        if self.drift is not None:
            found |= {name: getattr(self.drift, name) for name in DRIFT_NUMBERS}
        return found

    @property
    def meanings(self) -> dict[str, str]:
        """What each of `numbers` means."""
        recs = self.recommendations
        of_lists = {full_name(name, recs.k): says for name, says in LIST_NUMBERS.items()} if recs else {}
        return LOG_NUMBERS | of_lists | (DRIFT_NUMBERS if self.drift else {})

    def to_frame(self) -> pl.DataFrame:
        """`number, value, meaning`."""
        numbers, meanings = self.numbers, self.meanings
        return pl.DataFrame(
            {
                "number": list(numbers),
                "value": [float(value) for value in numbers.values()],
                "meaning": [meanings[name] for name in numbers],
            }
        )

    def openmetrics(self) -> str:
        """The numbers for a monitoring system (`dpaa.auditing.openmetrics`)."""
        return exposition(self.numbers, self.meanings, {"source": self.source})

    @property
    def failed(self) -> list[CheckResult]:
        """The checks that said no."""
        return [check for check in self.checks if check.failed]

    def in_words(self) -> list[str]:
        """The same in plain sentences, the most telling first."""
        recs = self.recommendations
        lists = [] if recs is None else lists_in_words(self.log, recs)
        return [*log_in_words(self.log), *lists, *([] if self.drift is None else drift_in_words(self.drift))]

    def as_json(self) -> dict[str, Any]:
        """As `audit --json` prints it; the table per user is not in it."""
        recs = self.recommendations
        return {
            "kind": "audit",
            "schema": SCHEMA_VERSION,
            "version": dpaa.__version__,
            "source": self.source,
            "numbers": self.numbers,
            "meanings": self.meanings,
            "in_words": self.in_words(),
            "log": asdict(self.log),
            "recommendations": None if recs is None else _as_json(recs),
            "drift": None if self.drift is None else asdict(self.drift),
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
    against: Any = None,
    form: TextForm | None = None,
    drop_invalid: bool = False,
    items: Any = None,
) -> Audit:
    """The audit of `data`, and of recommendations made from it.

    `data` is a prepared dataset or its folder (its training split is the log), a log (a file or several, folders,
    patterns, URLs, "-" for standard input) or a dataframe; `recs` a
    recommendation file or a dataframe `user_id, item_id[, score][, rank]`, whose lists are cut after `k` places.
    `fail_if` are checks such as "log_head_share>0.8" or "head_share@20>0.8" (see `Audit.failed`).  `fmt`, `names`,
    `positive`, `keep_duplicates`, `form` and `drop_invalid` say how a log is read, as `dpaa data log` does; `items`, a
    file or dataframe, has the titles of a log's items; `periods` says into how many parts times are cut.  `against` is
    an older log, read the same way, or a time at which this one is cut: what has changed since.
    """
    if isinstance(fail_if, str) or not isinstance(fail_if, Sequence):
        raise InputError(f'fail_if must be a list of checks, got {fail_if!r}; write for example ["log_gini>0.9"]')
    checks = [Check.parse(text) for text in fail_if]
    for check in checks:
        check_name(check.name, recs is not None, k, against is not None)
    periods = need_whole(periods, "periods")
    if k is not None and recs is None:
        raise InputError("k cuts recommended lists; name their file with --recs, or leave it out")
    if isinstance(recs, str | Path):
        open_recommendations(recs)  # a file that is not there need not wait for the log
    log = interactions(
        data,
        fmt=fmt,
        names=names,
        positive=positive,
        keep_duplicates=keep_duplicates,
        form=form,
        drop_invalid=drop_invalid,
        items=items,
    )
    notes = list(log.notes)
    lists = None
    if recs is not None:
        read = read_recommendations(recs, log.user_ids, log.item_ids, k)
        lists = amplification(log, read)
        for check in checks:
            check_name(check.name, with_recs=True, k=lists.k, with_older=against is not None)
        notes += lists.notes
    shape = skew(log, periods)
    if log.times is not None and periods > 1 and not shape.periods:
        notes.append(f"{log.source} has one time only, so nothing can be said about change over time")
    if log.times is not None and log.times.repeated and shape.periods:
        notes.append(
            f"{log.source} has pairs that come again later; over time each stands at its first time, which by itself "
            "makes later periods look less concentrated"
        )
    how: dict[str, Any] = {"fmt": fmt, "names": names, "positive": positive, "keep_duplicates": keep_duplicates}
    how |= {"form": form, "drop_invalid": drop_invalid}
    changed = None if against is None else _drift(log, against, how)
    found = Audit(log.source, shape, lists, [], notes, changed, log.invalid)
    return replace(found, checks=[check.apply(found.numbers) for check in checks])


def _drift(log: Interactions, against: Any, how: dict[str, Any]) -> Drift:
    """Since a time, or since an older log that is read like this one."""
    if isinstance(against, str | Path) and is_moment(against):
        return drift_at(log, str(against))
    prepared = isinstance(against, Dataset) or (isinstance(against, str | Path) and Path(against).is_dir())
    return drift_between(interactions(against, **({} if prepared else how)), log)


def _as_json(recs: Amplification) -> dict[str, Any]:
    """Without the table per user; what has a name in `LIST_NUMBERS` has it here too, in the tables by taste as well."""
    shown = {field.name: getattr(recs, field.name) for field in fields(recs) if field.name not in ("per_user", "notes")}
    shown |= {name: [asdict(item) for item in shown[name]] for name in ("winners", "losers")}
    return _named(shown, recs.k) | {"tastes": [_named(asdict(taste), recs.k) for taste in recs.tastes]}


def _named(content: dict[str, Any], k: int) -> dict[str, Any]:
    return {full_name(name, k): value for name, value in content.items()}
