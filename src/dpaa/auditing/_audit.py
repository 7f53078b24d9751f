"""The popularity-bias audit of a log and of any system's recommendations: numbers, what they mean, and checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

import dpaa
from dpaa._text import printable
from dpaa.auditing._checks import DRIFT_NUMBERS, LIST_NUMBERS, LOG_NUMBERS, Check, CheckResult, check_name
from dpaa.auditing._interactions import interactions
from dpaa.auditing._measures import Amplification, Drift, Skew, amplification, drift_at, drift_between, is_moment, skew
from dpaa.data.dataset import Dataset
from dpaa.data.inputs import TextForm
from dpaa.data.log import ColumnNames
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.recommendations import read_recommendations

PERIODS = 10


@dataclass(frozen=True)
class Audit:
    """The result of an audit, in numbers and in words."""

    source: str
    """What was audited, in words."""
    log: Skew
    recommendations: Amplification | None
    drift: Drift | None
    """What has changed since an older log, or since a time."""
    notes: list[str]
    checks: list[CheckResult] = field(default_factory=list)
    invalid: pl.DataFrame | None = field(default=None, repr=False)
    """Rows of the log that were left out as invalid: `source, row, fault, content`."""

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers that checks can name; NaN where one has no value here."""
        recs = self.recommendations
        of_lists = {f"{name}@{recs.k}": recs.numbers[name] for name in LIST_NUMBERS} if recs else {}
        return self.log.numbers | of_lists | (self.drift.numbers if self.drift else {})

    @property
    def meanings(self) -> dict[str, str]:
        """What each of `numbers` means."""
        known = LOG_NUMBERS | LIST_NUMBERS | DRIFT_NUMBERS
        return {name: known[name.partition("@")[0]] for name in self.numbers}

    def to_frame(self) -> pl.DataFrame:
        """Make a table of the numbers.

        Returns
        -------
        `number, value, meaning`
        """
        rows = [(name, float(value), self.meanings[name]) for name, value in self.numbers.items()]
        return pl.DataFrame(rows, schema=["number", "value", "meaning"], orient="row")

    def openmetrics(self) -> str:
        """Write the numbers as OpenMetrics gauges.

        Returns
        -------
        text, where `head_share@20` is `dpaa_audit_head_share{k="20"}`
        """
        source = printable(self.source).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        lines = []
        for name, value in self.numbers.items():
            if math.isfinite(value):
                base, _, k = name.partition("@")
                labels = f'source="{source}"' + (f',k="{k}"' if k else "")
                lines += [f"# TYPE dpaa_audit_{base} gauge", f"dpaa_audit_{base}{{{labels}}} {float(value)!r}"]
        return "\n".join([*lines, "# EOF", ""])

    @property
    def failed(self) -> list[CheckResult]:
        """The checks that failed."""
        return [check for check in self.checks if check.failed]

    def in_words(self) -> list[str]:
        """Describe the audit in plain sentences.

        Returns
        -------
        sentences about the log, the lists and the drift
        """
        lists = self.recommendations.sentences(self.log) if self.recommendations else []
        return [*self.log.sentences(), *lists, *(self.drift.sentences() if self.drift else [])]

    def as_json(self) -> dict[str, Any]:
        """Describe the audit as `audit --json` prints it.

        Returns
        -------
        everything but the table per user
        """
        log = asdict(self.log)
        return {
            "kind": "audit",
            "version": dpaa.__version__,
            "source": self.source,
            "numbers": self.numbers,
            "meanings": self.meanings,
            "in_words": self.in_words(),
            "log": log.pop("numbers") | log,
            "recommendations": None if self.recommendations is None else asdict(self.recommendations),
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
    checks = [Check.parse(text) for text in ([fail_if] if isinstance(fail_if, str) else fail_if)]
    for check in checks:
        check_name(check.name, recs is not None, k, against is not None)
    if k is not None and recs is None:
        raise InputError("k cuts recommended lists; name their file with --recs, or leave it out")
    reading: dict[str, Any] = {"fmt": fmt, "names": names, "positive": positive, "keep_duplicates": keep_duplicates}
    reading |= {"form": form, "drop_invalid": drop_invalid}
    log = interactions(data, items=items, **reading)
    notes, lists, drift = list(log.notes), None, None
    if recs is not None:
        lists = amplification(log, read_recommendations(recs, log.user_ids, log.item_ids, k))
        for check in checks:
            check_name(check.name, with_recs=True, k=lists.k, with_older=against is not None)
        notes += lists.notes
    if isinstance(against, str | Path) and is_moment(against):
        drift = drift_at(log, str(against))
    elif against is not None:
        prepared = isinstance(against, Dataset) or (isinstance(against, str | Path) and Path(against).is_dir())
        drift = drift_between(interactions(against, **({} if prepared else reading)), log)
    result = Audit(log.source, skew(log, need_whole(periods, "periods")), lists, drift, notes, invalid=log.invalid)
    return replace(result, checks=[check.apply(result.numbers) for check in checks])
