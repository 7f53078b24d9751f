"""The popularity-bias audit of a log and of any system's recommendations: numbers, what they mean, and checks."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import polars as pl

import dpaa
from dpaa._text import printable
from dpaa.auditing._measures import Amplification, Drift, Skew, amplification, drift_since, interactions, skew
from dpaa.data.inputs import TextForm
from dpaa.data.log import ColumnNames
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.metrics import METRICS, at_k, of_kind
from dpaa.evaluation.recommendations import read_recommendations

LOG_NUMBERS = {
    "log_users": "users with an interaction",
    "log_items": "items with an interaction",
    "log_interactions": "distinct user-item pairs (with `keep_duplicates`: rows)",
    "log_gini": "Gini coefficient of the items' interactions; 0 = even, near 1 = concentrated on a few items",
    "log_head_share": "share of the interactions on the most popular fifth of the items; 0.2 = even",
    "log_top_item_share": "share of the interactions on the most popular item",
    "log_items_for_80": "fewest items that have 80% of the interactions: the popular items",
    "log_items_for_80_share": "the same as a share of the items; 0.8 = even",
    "log_items_once": "items with a single interaction",
    "log_items_once_share": "the same as a share of the items",
    "log_history_median": "median number of items in a user's history",
    "log_popular_in_history": "share of popular items in a user's history, mean over users",
    "log_head_share_trend": "log_head_share of the last period minus that of the first; needs times",
    "log_niche_share_trend": "share of interactions on niche items, last period minus first; needs times",
}
"""Numbers of a log, and what they mean."""

DRIFT_NUMBERS = {
    "drift_distance": "Jensen-Shannon distance between the items' shares of the interactions, older and newer; 0 = the "
    "same, 1 = nothing in common",
    "drift_new_items_share": "share of the newer interactions on items without older ones",
    "drift_gone_items_share": "share of the older interactions on items without newer ones",
    "drift_head_turnover": "share of the newer head (most popular fifth of the items) that was not in the older head",
    "drift_head_share": "share of the interactions on the head, newer minus older",
    "drift_gini": "Gini coefficient of the items' interactions, newer minus older",
}
"""Numbers of the change since an older log."""

LIST_NUMBERS = {name: METRICS[name].words for name in ("coverage", "gini", "head_share", "arp")} | {
    "arp_history": "the same of the histories of the users with a list",
    "popularity_lift": METRICS["popularity_lift"].words,
    "amplified_users": "share of the users whose list is more popular than their history",
    "aplt": METRICS["aplt"].words,
    "aplt_history": "the same of the histories of the users with a list",
    "upd": METRICS["upd"].words,
}
"""Numbers of recommendations; their names end in `@k`."""

_CHECK = re.compile(
    r"\s*(?P<name>[^\s<>=!]+(=[^\s<>=!]+)?)\s*(?P<sign>>=|<=|==|!=|>|<)"
    r"\s*(?P<limit>[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)"
    r"\s*(?P<percent>%?)\s*(of merit\s*)?(\*\s*(?P<reference>\S+)\s*)?"  # exposure is a ratio to merit already
)
_SIGNS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    ">": (operator.gt, "above"),
    ">=": (operator.ge, "at least"),
    "<": (operator.lt, "below"),
    "<=": (operator.le, "at most"),
    "==": (operator.eq, "equal to"),
    "!=": (operator.ne, "other than"),
}
"""The comparison, and its word."""


@dataclass(frozen=True)
class Check:
    """A failure condition: a comparison of a number with a limit."""

    name: str
    sign: str
    limit: float
    reference: str | None = None
    """A run or file: the limit is then that many times its number."""

    @classmethod
    def parse(cls, text: str, references: bool = False) -> Check:
        """Read a check.

        Parameters
        ----------
        text : `NAME OP NUMBER`; `80%` is 0.8; `of merit` may stand behind the number of an exposure
        references : whether `NAME OP NUMBER * RUN` is allowed too

        Returns
        -------
        the check; InputError where the text is none
        """
        match = _CHECK.fullmatch(text) if isinstance(text, str) else None
        if match is None or (match["reference"] and not references):
            form = "NAME OP NUMBER" + (" or NAME OP NUMBER * RUN" if references else "")
            raise InputError(f"--fail-if {text!r} is not {form}, such as log_head_share>0.8")
        limit = float(match["limit"]) / (100 if match["percent"] else 1)
        return cls(match["name"], match["sign"], limit, match["reference"])

    def resolved(self, number: float) -> Check:
        """Multiply the limit by the reference's number.

        Parameters
        ----------
        number : of the reference

        Returns
        -------
        a check without a reference
        """
        return replace(self, limit=self.limit * number, reference=None)

    def apply(self, numbers: Mapping[str, float]) -> CheckResult:
        """Compare the number with the limit; a number without a value fails the check.

        Parameters
        ----------
        numbers : name → value

        Returns
        -------
        the number and whether the check failed
        """
        if self.name not in numbers:  # the exposure of a group that is not there
            raise InputError(f"--fail-if: there is no number {self.name!r}; its column has no such value, or k differs")
        value = float(numbers[self.name])
        return CheckResult(self, value, not math.isfinite(value) or _SIGNS[self.sign][0](value, self.limit))

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.limit:g}"


@dataclass(frozen=True)
class CheckResult:
    """A check, the number that it was applied to, and whether it failed."""

    check: Check
    value: float
    failed: bool

    @property
    def sentence(self) -> str:
        """The result in plain words."""
        if not math.isfinite(self.value):
            return f"{self.check.name} has no value here, so {str(self.check)!r} cannot be ruled out"
        word = ("" if self.failed else "not ") + _SIGNS[self.check.sign][1]
        return f"{self.check.name} is {self.value:.6g}, which is {word} {self.check.limit:.6g}"

    def as_json(self) -> dict[str, object]:
        """Describe the result for `--json`.

        Returns
        -------
        check, value, whether it failed, and a sentence
        """
        return {"check": str(self.check), "value": self.value, "failed": self.failed, "sentence": self.sentence}


def check_name(
    name: str, with_recs: bool, k: int | None = None, with_older: bool = False, group_by: str | None = None
) -> None:
    """Check that a name is that of exactly one number of an audit.

    Parameters
    ----------
    name : as `--fail-if` has it
    with_recs : whether recommendations are audited
    k : length of the lists, where it is known yet
    with_older : whether there is an older log, or a time, to compare with
    group_by : column of the items; names of its groups' exposure, such as `exposure@20/publisher`, are known then
    """
    whole, slash, group = name.partition("/")
    of_group = slash and METRICS.get(whole.partition("@")[0]) in of_kind("exposure")
    if of_group and group_by is not None and group.partition("=")[0] == group_by:
        return  # whether the column has the value is known when it is measured
    base, _, cut = name.partition("@")
    length = (cut if cut.isdigit() else "K") if k is None else str(k)
    of_lists = [f"{number}@{length}" for number in LIST_NUMBERS]
    known = [*LOG_NUMBERS, *of_lists, *DRIFT_NUMBERS]
    if name not in known or (name in of_lists and length == "K"):
        close = [number for number in (f"log_{base}", f"{base}@{length}") if number in known] or get_close_matches(
            name, known, 2
        )
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(known)}"
        raise InputError(f"--fail-if: there is no number {name!r}; {hint}")
    if (name in DRIFT_NUMBERS and not with_older) or (name in of_lists and not with_recs):
        option = "--against OLDER" if name in DRIFT_NUMBERS else "--recs FILE"
        raise InputError(f"--fail-if {name!r} is measured only with {option}; add it")


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
        names = [*LIST_NUMBERS, *(name for name in recs.numbers if "/" in name)] if recs else []
        of_lists = {at_k(name, recs.k): recs.numbers[name] for name in names} if recs else {}
        return self.log.numbers | of_lists | (self.drift.numbers if self.drift else {})

    @property
    def meanings(self) -> dict[str, str]:
        """What each of `numbers` means."""
        known = LOG_NUMBERS | LIST_NUMBERS | DRIFT_NUMBERS | {m.name: m.words for m in of_kind("exposure")}
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

        def escaped(text: str) -> str:
            return printable(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

        source = escaped(self.source)
        lines = []
        for name, value in self.numbers.items():
            if math.isfinite(value):
                base, _, rest = name.partition("@")
                k, _, group = rest.partition("/")
                labels = (
                    f'source="{source}"' + (f',k="{k}"' if k else "") + (f',group="{escaped(group)}"' if group else "")
                )
                kind = f"# TYPE dpaa_audit_{base} gauge"
                lines += [] if kind in lines else [kind]
                lines.append(f"dpaa_audit_{base}{{{labels}}} {float(value)!r}")
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
    group_by: str | None = None,
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
    items : a file or dataframe with the titles of a log's items, and other columns
    group_by : column of the items; with `recs`, exposure of its groups against what users took, as
        `exposure@20/publisher` (the worst-off group) and `exposure@20/publisher=X`

    Returns
    -------
    Audit
    """
    checks = [Check.parse(text) for text in ([fail_if] if isinstance(fail_if, str) else fail_if)]
    for check in checks:
        check_name(check.name, recs is not None, k, against is not None, group_by)
    if k is not None and recs is None:
        raise InputError("k applies to recommended lists; name their file with --recs, or omit it")
    if group_by is not None and recs is None:
        raise InputError("--group-by applies to recommended lists; name their file with --recs, or omit it")
    reading: dict[str, Any] = {"fmt": fmt, "names": names, "positive": positive, "keep_duplicates": keep_duplicates}
    reading |= {"form": form, "drop_invalid": drop_invalid}
    log = interactions(data, items=items, **reading)
    notes, lists = list(log.notes), None
    if recs is not None:
        lists = amplification(log, read_recommendations(recs, log.data.user_ids, log.data.item_ids, k), group_by)
        # Once more, now that the length of the lists is known: a check of @20 says nothing about lists of 10.
        for check in checks:
            check_name(check.name, True, lists.k, against is not None, group_by)
        notes += lists.notes
    drift = None if against is None else drift_since(against, log, reading)
    result = Audit(log.source, skew(log, need_whole(periods, "periods")), lists, drift, notes, invalid=log.data.invalid)
    return replace(result, checks=[check.apply(result.numbers) for check in checks])
