"""`dpaa backtest`: check at many past times of a log whether the choice of `dpaa debias` kept its promise.

An origin is the start of a period.  Earlier pairs are for training, the latest of them for validation; `dpaa debias`
selects on these; the following period is the test, used only after the selection.

    FOLDER/ORIGIN/debias       of a date such as 2011-03-01, the frontier and the chosen run; other models are removed
    FOLDER/ORIGIN/result.json  what was measured; written last, so that a finished origin is not done again
    FOLDER/backtest.json       all of it

For comparison, the same period is used to evaluate what earlier origins chose, fitted on this origin's data, and the
first run, never updated.  Everything is compared with this origin's baseline.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpaa import _io
from dpaa._text import finite
from dpaa.comparison.statistics import crossed_t
from dpaa.data._engine import Engine
from dpaa.data._values import Values
from dpaa.data.dataset import Dataset
from dpaa.data.ids import IDS, Column
from dpaa.data.inputs import open_table
from dpaa.data.log import Reading, define_pairs, read_log
from dpaa.data.prepare import Recipe
from dpaa.data.splits import LABELS, SplitRule, define_labels, drop_rare
from dpaa.data.tables import Table, as_table
from dpaa.debiasing._debias import debias
from dpaa.debiasing._models import MODELS, REMEDY
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluation, Evaluator
from dpaa.ranking.reranker import stored_reranker
from dpaa.runs.folder import CHOSEN, RunFolder, hold_folder
from dpaa.runs.measure import measured
from dpaa.runs.model import load

RESULT, RESULTS, DEBIASED = "result.json", "backtest.json", "debias"
DEFAULTS = {"keep_accuracy": 0.98, "confidence": 0.95, "k": 20}
LENGTHS = {"month": "1mo", "week": "1w"}
LEAST = 2
"""Periods before the first origin, unless the call names one."""
MOST_SECONDS = 100_000_000_000
"""Times that are numbers count seconds from 1970, above it milliseconds."""
VERDICTS = ("kept, confirmed", "kept", "missed", "missed, confirmed")
"""Of a promise in a period, by the estimate; confirmed where the one-sided bound says the same."""
RIVALS = {
    "chosen": "the promise, at least {:.4g} of the baseline's NDCG@{}, by the choice of each origin",
    "previous": "the same for the previous origin's choice, refitted",
    "never_updated": "the same for the first choice, never updated",
}
METRICS = ("ndcg@{}", "recall@{}/niche", "recall@{}/popular", "coverage@{}", "ndcg@{}/warm-users", "ndcg@{}/cold-users")
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Backtest:
    """What was measured at each origin.

    Parameters
    ----------
    source : the log
    call : options, `keep_accuracy`, `confidence` (one-sided) and `k` among them
    periods : a record per origin, as `backtest.json` has them
    notes : what was left out
    invalid : rows of the log with faults that were left out
    """

    source: str
    call: Row
    periods: Sequence[Row]
    notes: list[str]
    invalid: pl.DataFrame | None = None

    def verdicts(self, who: str = "chosen") -> list[str]:
        """Whether the promise was kept, period by period.

        Parameters
        ----------
        who : `chosen`, `previous` (the previous origin's choice, refitted) or `never_updated`

        Returns
        -------
        one of `VERDICTS` for each period in which it was measured and the baseline found anything
        """
        return [point["verdict"] for period in self.periods if (point := period[who]) and point["verdict"]]

    def sentences(self) -> list[str]:
        """Describe the result.

        Returns
        -------
        plain sentences
        """
        k, periods, lines, means = self.call["k"], self.periods, [], []
        for who, words in RIVALS.items():
            if verdicts := self.verdicts(who):
                kept, lost = sum(verdict.startswith("kept") for verdict in verdicts), verdicts.count(VERDICTS[-1])
                ends = f"significantly missed in {lost} (one-sided {self.call['confidence']:.0%})"
                lines.append(
                    f"{words.format(self.call['keep_accuracy'], k)}: kept in {kept} of {len(verdicts)} periods, {ends}"
                )
        stayed = sum(period["chosen"]["name"] == period["base"]["name"] for period in periods)
        for name in (metric.format(k) for metric in METRICS[:4]):
            values = [[period[who]["metrics"][name] or 0.0 for period in periods] for who in ("base", "chosen")]
            means.append("{} {:.4f} → {:.4f}".format(name, *np.mean(values, axis=1)))
        users, items = ([period["following"][f"new_{what}_share"] for period in periods] for what in ("user", "item"))
        return [
            *lines,
            f"the baseline itself was chosen at {stayed} of {len(periods)} origins",
            f"baseline → choice, mean of the periods: {', '.join(means)}",
            f"new users, {min(users):.0%} to {max(users):.0%} of a period's, get the most popular items whatever is "
            f"chosen; new items, {min(items):.0%} to {max(items):.0%} of its pairs, cannot be recommended yet",
        ]

    def as_json(self) -> Row:
        """Describe the result for `backtest.json`, the page and the command.

        Returns
        -------
        plain data
        """
        about = {name: value for name, value in vars(self).items() if name != "invalid"}
        return dict(finite({"kind": "backtest", "format": 1} | about | {"sentences": self.sentences()}))


def backtest(
    folder: str | Path,
    log: Any,
    *,
    every: str = "month",
    start: datetime | None = None,
    valid: float = 0.1,
    drop_invalid: bool = False,
    items: str | Path | None = None,
    overwrite: bool = False,
    say: Callable[[str], None] = lambda _line: None,
    **how: Any,
) -> Backtest:
    """Choose with `dpaa.debias` at the start of every period of a log, and measure each choice on the period.

    Parameters
    ----------
    folder : where origins are written; those that are finished are not done again
    log : a dataframe, or files opened by `dpaa.data.inputs.open_log`; needs times
    every : length of a period: `month`, `week`, or a number of days
    start : before which there is no origin; default: two periods after the log begins
    valid : share of the pairs before an origin, the latest, that are for validation
    drop_invalid, items : how the log is read, as in `dpaa.audit`
    overwrite : recompute existing results of another log or other options
    say : who gets lines of progress
    how : options of `dpaa.debias` (`keep_accuracy`, default 0.98, `methods`, `goals` …) and by which rules datasets are
        made, as in `dpaa.data.prepare.Recipe` (`columns`, `positive`, `min_user_interactions` …)

    Returns
    -------
    Backtest
    """
    own = {name: how.pop(name) for name in Recipe.model_fields.keys() - {"seed"} if name in how}
    recipe, how = Recipe(**own, split=SplitRule("temporal", valid, 0.0)), DEFAULTS | how
    call: Row = json.loads(_io.as_json({"every": every, "start": start and start.isoformat(), "valid": valid} | how))
    table = log if isinstance(log, Table) else as_table(log, "the frame")
    described = None if items is None else open_table(items)
    read = read_log(table, recipe.columns, recipe.rule, Reading(drop_invalid, times_needed=True))
    starts, period, origins = _periods(read.frame, str(every), start, table.name)
    periods, notes, stale, home = list[Row](), list(read.notes), False, _io.check_folder_name(folder)
    with hold_folder(folder):
        for number, index in enumerate(origins, start=1):
            origin, end = (f"{edge:%Y-%m-%d}" for edge in starts[index : index + 2])
            past, following = (read.frame.filter(mask) for mask in (period < index, period == index))
            data, counts = _dataset(past, following, origin, table.name, recipe)
            if not np.isin(data.test.item, data.train.item).any():
                notes.append(f"the period from {origin} is left out: it has no new pair with a known item")
                continue
            data = data if described is None else data.with_items(described, recipe.columns.item)
            identity = {"origin": origin, "end": end, "call": call, "fingerprint": data.fingerprint}
            target = _io.check_within(home / origin, home)
            known = _io.read_json(target / RESULT, _io.LARGE_JSON, "remove it") if (target / RESULT).exists() else {}
            if not stale and identity.items() <= known.items():
                periods.append(known)
                continue
            if known and not overwrite:
                other = f"{Path(folder) / origin} was measured on another log or with other options"
                raise InputError(f"{other}; pass --overwrite or choose another folder with --out")
            stale = stale or bool(known)  # later origins were compared with what was chosen here
            say(f"origin {number} of {len(origins)}: {origin}")
            debiased = debias(target / DEBIASED, data, overwrite=overwrite, say=say, **how).as_json()
            periods.append(_measured(target, data, identity | {"following": counts}, debiased, periods))
        if not periods:
            raise InputError(f"no period of {table.name} can be measured; choose a longer --every")
        result = Backtest(table.name, call, periods, notes, read.invalid)
        _io.write_files(home, {RESULTS: _io.as_json(result.as_json())}, REMEDY)
    return result


def _periods(
    frame: pl.DataFrame, every: str, start: datetime | None, source: str
) -> tuple[list[datetime], pl.Series, list[int]]:
    """Starts of the periods, from the log's first to the one after its last; the period of each row; the origins."""
    if every not in LENGTHS and not re.fullmatch("[1-9][0-9]{0,4}", every):
        raise InputError(f"--every is month, week or a number of days, got {every!r}")
    if Column.TIMESTAMP not in frame.columns:
        raise InputError(f"{source} has no column of times; name it with --columns timestamp=…")
    times = frame[Column.TIMESTAMP]
    if not times.dtype.is_temporal():
        latest: Any = times.max()
        times = (times.cast(pl.Int64) * (1000 if latest < MOST_SECONDS else 1)).cast(pl.Datetime("ms", "UTC"))
    length = LENGTHS.get(every, f"{every}d")
    first: Any = times.dt.truncate(length if every in LENGTHS else "1d").min()
    last: Any = times.dt.offset_by(length).max()
    edges: pl.Series = pl.datetime_range(first, last, length, eager=True)
    period = np.searchsorted(edges.dt.epoch("us").to_numpy(), times.dt.epoch("us").to_numpy(), side="right") - 1
    starts = edges.to_list()
    earliest = starts[min(LEAST, len(starts) - 1)] if start is None else start.replace(tzinfo=UTC)
    origins = [index for index in np.unique(period[period > 0]).tolist() if starts[index] >= earliest]
    if not origins:
        span = f"{source} has {len(starts) - 1} periods, from {starts[0]:%Y-%m-%d} to {starts[-1]:%Y-%m-%d}"
        needs = f"{LEAST} before the first origin" if start is None else f"one that begins at {start:%Y-%m-%d}"
        raise InputError(f"{span}; a backtest needs {needs}: choose another --every")
    return starts, pl.Series(period), origins


def _dataset(
    past: pl.DataFrame, following: pl.DataFrame, origin: str, source: str, recipe: Recipe
) -> tuple[Dataset, Row]:
    """The dataset of an origin, and how much of its period is new.

    Pairs that occurred before are not counted as new; items without training pairs are not candidates.
    """
    assert recipe.split is not None
    with Engine() as engine:
        engine.put("log", past)
        columns = define_pairs(engine, Values(past.columns, past.height), source, recipe.keep_duplicates)
        notes = drop_rare(engine, recipe.least, columns)
        define_labels(engine, recipe.split, 0, columns, source)
        labelled = engine.frame("SELECT * FROM labelled")
    train, valid = (labelled.filter(label=LABELS[name]).drop("label") for name in ("train", "valid"))
    new = following.sort(*IDS, Column.TIMESTAMP).unique(IDS, keep="first").join(past, on=IDS, how="anti")
    unknown = {column: new.join(train, on=column, how="anti") for column in IDS}
    users, strangers = (frame[Column.USER].n_unique() for frame in (new, unknown[Column.USER]))
    counts = {"pairs": new.height, "users": users, "new_user_share": strangers / max(users, 1)}
    counts["new_item_share"] = unknown[Column.ITEM].height / max(new.height, 1)
    frames: Any = {"train": train, "valid": valid.drop(Column.COUNT, strict=False), "test": new}
    allowed, about = train[Column.ITEM].unique(), recipe.about(source) | {"origin": origin}
    return Dataset.of(frames, name=origin, candidates=allowed, about=about, notes=notes), counts


def _measured(folder: Path, data: Dataset, record: Row, debiased: Row, earlier: Sequence[Row]) -> Row:
    """Open the test of an origin: for the baseline, the choice, and what earlier origins chose."""
    evaluator, done = Evaluator(data, record["call"]["k"], "test", mask_valid=True), dict[str, Evaluation]()
    points = [debiased["base"], debiased["chosen"], *(point["chosen"] for point in earlier)]
    for point in points:
        run = RunFolder(folder / DEBIASED / MODELS / point["model"])
        if point["name"] not in done and run.finished:  # not where a budget left it out
            lists = point["popularity_dial"], stored_reranker(point["rerank"], run.path)
            done[point["name"]] = measured(load(run.path), evaluator, *lists)
    base = done[debiased["base"]["name"]]
    rows = [_against(point, done.get(point["name"]), base, record["call"]) for point in points]
    record |= dict(zip(("base", "chosen", "earlier"), (*rows[:2], rows[2:]), strict=True))
    record |= {"previous": rows[-1] if earlier else None, "never_updated": None}
    if earlier:
        first = measured(load(folder.parent / earlier[0]["origin"] / DEBIASED / CHOSEN), evaluator)
        record["never_updated"] = _against(points[2], first, base, record["call"])
    record = dict(finite(record))
    _io.write_files(folder, {RESULT: _io.as_json(record)}, REMEDY)
    _io.remove_folder(folder / DEBIASED / MODELS)
    return record


def _against(point: Row, evaluation: Evaluation | None, base: Evaluation, call: Row) -> Row | None:
    """A candidate compared with the baseline: the change of NDCG over users with one-sided bounds, and whether kept."""
    if evaluation is None:
        return None
    k, least = call["k"], call["keep_accuracy"] - 1
    values, before = (each.per_user[f"ndcg@{k}"].to_numpy()[:, None] for each in (evaluation, base))
    level, change, verdict = float(before.mean()), dict.fromkeys(("low", "estimate", "high")), None
    if level > 0 and len(before) > 1:
        ratio = float(values.mean()) / level
        low, high = crossed_t(values / level, before / level, ratio, 2 * call["confidence"] - 1)[1:3]
        change = {"low": ratio - 1 + float(low), "estimate": ratio - 1, "high": ratio - 1 + float(high)}
        verdict = VERDICTS[3 - sum(value >= least for value in change.values())]
    about = {key: point[key] for key in ("name", "model", "popularity_dial", "rerank")}
    metrics = {name: evaluation.metrics.get(name) for name in (each.format(k) for each in METRICS)}
    return about | {"verdict": verdict, "change": change, "metrics": metrics}
