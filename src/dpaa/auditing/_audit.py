"""The popularity-bias audit of a log and of any system's recommendations: numbers, what they mean, and checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

import dpaa
from dpaa._text import parse_json, printable
from dpaa.auditing._interactions import Interactions, interactions
from dpaa.auditing._measures import (
    Amplification,
    Drift,
    Skew,
    amplification,
    drift_at,
    drift_between,
    is_moment,
    skew,
)
from dpaa.auditing.checks import (
    DRIFT_NUMBERS,
    LIST_NUMBERS,
    LOG_NUMBERS,
    Check,
    CheckResult,
    check_name,
    full_name,
)
from dpaa.data.dataset import Dataset
from dpaa.data.inputs import TextForm
from dpaa.data.log import ColumnNames
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.recommendations import open_recommendations, read_recommendations

SCHEMA_VERSION = 1
"""Of `dpaa audit --json`.  Within a version keys are only added; it is raised where one goes or changes its meaning."""
PERIODS = 10


def audit_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of `dpaa audit --json`."""
    text = files(__package__).joinpath(f"audit-{SCHEMA_VERSION}.schema.json").read_bytes()
    return dict(parse_json(text))


@dataclass(frozen=True)
class Audit:
    """The result of an audit, in numbers and in words."""

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
        """The numbers that checks can name; NaN where one has no value here."""
        recs, drift = self.recommendations, self.drift
        of_lists = {full_name(name, recs.k): getattr(recs, name) for name in LIST_NUMBERS} if recs else {}
        of_drift = {name: getattr(drift, name) for name in DRIFT_NUMBERS} if drift else {}
        return self.log.numbers() | of_lists | of_drift

    @property
    def meanings(self) -> dict[str, str]:
        """What each of `numbers` means."""
        recs = self.recommendations
        of_lists = {full_name(name, recs.k): words for name, words in LIST_NUMBERS.items()} if recs else {}
        return LOG_NUMBERS | of_lists | (DRIFT_NUMBERS if self.drift else {})

    def to_frame(self) -> pl.DataFrame:
        """`number, value, meaning`."""
        rows = [(name, float(value), self.meanings[name]) for name, value in self.numbers.items()]
        return pl.DataFrame(rows, schema=["number", "value", "meaning"], orient="row")

    def openmetrics(self) -> str:
        """The numbers as OpenMetrics text, a gauge each: `head_share@20` is `dpaa_audit_head_share{k="20"}`."""
        lines = []
        for name, value in self.numbers.items():
            if not math.isfinite(value):
                continue
            base, _, k = name.partition("@")
            labels = f'source="{_escaped(self.source)}"' + (f',k="{k}"' if k else "")
            metric = f"dpaa_audit_{base}"
            lines += [f"# TYPE {metric} gauge", f"# HELP {metric} {_escaped(self.meanings[name])}"]
            lines.append(f"{metric}{{{labels}}} {float(value)!r}")
        return "\n".join([*lines, "# EOF", ""])

    @property
    def failed(self) -> list[CheckResult]:
        """The checks that failed."""
        return [check for check in self.checks if check.failed]

    def in_words(self) -> list[str]:
        """The same in plain sentences, the most telling first."""
        lists = self.recommendations.sentences(self.log) if self.recommendations else []
        return [*self.log.sentences(), *lists, *(self.drift.sentences() if self.drift else [])]

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
    """Audit a log for popularity bias, and recommendations made from it.

    Parameters
    ----------
    data : a prepared dataset or its folder (its training split is the log), a log (a file or several, folders,
        patterns, URLs, "-" for standard input) or a dataframe
    recs : a recommendation file or a dataframe `user_id, item_id[, score][, rank]`
    k : where lists are cut; default: nowhere
    fail_if : checks such as "log_head_share>0.8" or "head_share@20>0.8" (see `Audit.failed`)
    fmt, names, positive, keep_duplicates, form, drop_invalid : how a log is read, as by `dpaa data log`
    periods : number of parts that times are cut into
    against : an older log, read the same way, or a time at which this one is cut
    items : a file or dataframe with the titles of a log's items

    Returns
    -------
    Audit
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
    reading: dict[str, Any] = {"fmt": fmt, "names": names, "positive": positive, "keep_duplicates": keep_duplicates}
    reading |= {"form": form, "drop_invalid": drop_invalid}
    log = interactions(data, items=items, **reading)
    notes = list(log.notes)
    lists = None
    if recs is not None:
        lists = amplification(log, read_recommendations(recs, log.user_ids, log.item_ids, k))
        for check in checks:
            check_name(check.name, with_recs=True, k=lists.k, with_older=against is not None)
        notes += lists.notes
    shape = skew(log, periods)
    if log.times is not None and periods > 1 and not shape.periods:
        notes.append(f"{log.source} has one time only, so nothing can be said about change over time")
    if log.times is not None and log.repeated and shape.periods:
        notes.append(
            f"{log.source} has pairs that come again later; over time each stands at its first time, which by itself "
            "makes later periods look less concentrated"
        )
    drift = None if against is None else _drift(log, against, reading)
    result = Audit(log.source, shape, lists, [], notes, drift, log.invalid)
    return replace(result, checks=[check.apply(result.numbers) for check in checks])


def _drift(log: Interactions, against: Any, reading: dict[str, Any]) -> Drift:
    """Since a time, or since an older log that is read like this one."""
    if isinstance(against, str | Path) and is_moment(against):
        return drift_at(log, str(against))
    prepared = isinstance(against, Dataset) or (isinstance(against, str | Path) and Path(against).is_dir())
    return drift_between(interactions(against, **({} if prepared else reading)), log)


def _as_json(recs: Amplification) -> dict[str, Any]:
    """Without the table per user; what has a name in `LIST_NUMBERS` has it here too, in the tables by taste as well."""
    kept = {one.name: getattr(recs, one.name) for one in fields(recs) if one.name not in ("per_user", "notes")}
    tables = {name: [_named(asdict(row), recs.k) for row in kept[name]] for name in ("winners", "losers", "tastes")}
    return _named(kept | tables, recs.k)


def _named(content: dict[str, Any], k: int) -> dict[str, Any]:
    return {full_name(name, k): value for name, value in content.items()}


def _escaped(text: str) -> str:
    return printable(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
