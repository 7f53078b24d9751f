"""Tables become the parts of a dataset: positives, each pair once, rare users and items out, split.

The steps are SQL statements (`log.define_pairs`, `splits.drop_rare`, `splits.define_labels`) that DuckDB runs whatever
the size of the log, and Spark where it outgrows one machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._io import LARGE_JSON, as_json, digest, read_json, settled, whole_folder, write_into
from dpaa.data._engine import Engine, SqlEngine, in_words
from dpaa.data._values import Values
from dpaa.data.append import RULES, Rules
from dpaa.data.attributes import ATTRIBUTES_FILE, attributes_of
from dpaa.data.columns import ABOUT_FILE, SPLITS, Column, SplitName
from dpaa.data.fingerprint import Blocks, fingerprint
from dpaa.data.ids import distinct_ids, encode
from dpaa.data.lint import empty_splits, untrained
from dpaa.data.log import (
    ColumnNames,
    Reading,
    as_one_type,
    define_log,
    define_pairs,
    duplicates_note,
    read_candidates,
    read_log,
)
from dpaa.data.positive import PositiveRule
from dpaa.data.spark import SparkEngine, define_spark_log
from dpaa.data.splits import LABELS, SplitRule, define_labels, drop_rare
from dpaa.data.tables import Table
from dpaa.errors import InputError

VALIDATION_EXPOSURE = "validation_exposure"
"""Key of `about`: whether the validation pairs come from the log's own exposure, `biased`, or not, `unbiased`."""
ROWS_AT_ONCE = 4_000_000
IDS = (Column.USER, Column.ITEM)


class Prepared(NamedTuple):
    """What `Dataset.of` takes, but for the name."""

    frames: dict[SplitName, pl.DataFrame]
    about: dict[str, object]
    notes: list[str]
    candidates: pl.Series | None = None
    invalid: pl.DataFrame | None = None
    """Rows with faults that were left out: `source, row, fault, content`."""


@dataclass(frozen=True)
class Recipe:
    """By what a log becomes pairs.

    Parameters
    ----------
    names : what the columns are called
    positive : rule such as "rating>=3"; None = every row counts
    min_user_interactions, min_item_interactions : fewest pairs of a user and of an item
    keep_duplicates : count how often a pair occurs
    drop_invalid : leave out rows with faults
    seed : of random splits
    """

    names: ColumnNames | None = None
    positive: str | None = None
    min_user_interactions: int = 1
    min_item_interactions: int = 1
    keep_duplicates: bool = False
    drop_invalid: bool = False
    seed: int = 0

    @property
    def rule(self) -> PositiveRule | None:
        """The rule for positives."""
        return None if self.positive is None else PositiveRule.parse(self.positive)

    def about(self, source: str, split: SplitRule | None) -> dict[str, object]:
        """What a dataset says of the log that it was made of, and by which rules."""
        rules = Rules.of(
            self.names or ColumnNames(),
            split,
            positive=None if self.rule is None else str(self.rule),
            min_user_interactions=self.min_user_interactions,
            min_item_interactions=self.min_item_interactions,
            keep_duplicates=self.keep_duplicates,
            seed=self.seed,
        )
        return {
            "source": source,
            "positive": "every row" if self.rule is None else str(self.rule),
            "split": "all for training" if split is None else str(split),
            "seed": self.seed,
            VALIDATION_EXPOSURE: "biased",
            RULES: rules.model_dump(),
        }

    def pairs(self, engine: SqlEngine, values: Values, source: str) -> list[str]:
        """Make the table `pairs` from the view `log`.  Returns its columns."""
        n = define_pairs(engine, list(values.columns), self.keep_duplicates)
        if repeated := values.rows - n:
            values.notes.append(duplicates_note(source, repeated, self.keep_duplicates))
        columns = [*values.columns, *([Column.COUNT] if self.keep_duplicates else [])]
        least = {Column.USER: self.min_user_interactions, Column.ITEM: self.min_item_interactions}
        values.notes += drop_rare(engine, least, columns)
        return columns

    def labels(
        self, engine: SqlEngine, columns: Sequence[str], split: SplitRule | None, source: str
    ) -> tuple[dict[SplitName, str], list[str]]:
        """Split the table `pairs`.  Returns a query for each split, and notes."""
        if split is None:
            return {"train": f"SELECT {', '.join(columns)} FROM pairs ORDER BY user_id, item_id"}, []
        notes = define_labels(engine, split, self.seed, columns, source)
        once = [column for column in columns if column != Column.COUNT]
        queries: dict[SplitName, str] = {}
        for name in SPLITS:
            own = ", ".join(columns if name == "train" else once)
            queries[name] = f"SELECT {own} FROM labelled WHERE label = {LABELS[name]} ORDER BY user_id, item_id"
        return queries, notes


def one_table(table: Table, split: SplitRule | None = None, **recipe: Any) -> Prepared:
    """Prepare one table in memory.

    Parameters
    ----------
    table : the log
    split : how it is split; None = all pairs are for training
    recipe : as in `Recipe`

    Returns
    -------
    the parts of a dataset
    """
    how = Recipe(**recipe)
    reading = Reading(how.drop_invalid, times_needed=split is not None and split.needs_times)
    with Engine() as engine, in_words(table.name):
        values = define_log(engine, table, how.names, how.rule, reading)
        columns = how.pairs(engine, values, table.name)
        queries, notes = how.labels(engine, columns, split, table.name)
        frames = {name: engine.frame(query) for name, query in queries.items()}
    return Prepared(frames, how.about(table.name, split), [*values.notes, *notes], invalid=values.invalid)


@dataclass(frozen=True)
class Written:
    """What is known of a dataset that was written without being held in memory."""

    name: str
    counts: dict[str, Any]
    notes: tuple[str, ...]
    invalid: pl.DataFrame | None
    fingerprint: str

    def __str__(self) -> str:
        sizes = [f"{self.counts[what]:,} {what}" for what in ("users", "items", "interactions")]
        return f"Dataset({self.name}: {sizes[0]} × {sizes[1]}, {sizes[2]})"


def write_log(
    table: Table,
    folders: Mapping[Path, SplitRule | None],
    name: str,
    *,
    memory: int | None = None,
    engine: str = "duckdb",
    items: Table | None = None,
    overwrite: bool = False,
    **recipe: Any,
) -> dict[Path, Written]:
    """Prepare a log of any size and write a dataset for each split rule: all of them, or none.

    Parameters
    ----------
    table : the log
    folders : where each dataset goes → how the log is split for it
    name : of the datasets
    memory : bytes that DuckDB may take; what needs more goes to disk, beside the first folder
    engine : `duckdb`, or `spark`
    items : what is known of the items
    overwrite : replace datasets that are there
    recipe : as in `Recipe`

    Returns
    -------
    what was written, by folder
    """
    how, written = Recipe(**recipe), {}
    needed = any(rule is not None and rule.needs_times for rule in folders.values())
    reading = Reading(how.drop_invalid, times_needed=needed)
    with ExitStack() as stack:
        fresh = {
            folder: stack.enter_context(whole_folder(settled(folder), "make room or choose another folder with --out"))
            for folder in folders
        }
        stack.enter_context(in_words(table.name))
        work: SqlEngine
        if engine == "spark":
            work = stack.enter_context(SparkEngine(next(iter(fresh.values())).parent))
            values = define_spark_log(work, table, how.names, how.rule, reading)
        else:
            work = stack.enter_context(Engine(next(iter(fresh.values())).parent, memory))
            values = define_log(work, table, how.names, how.rule, reading)
            work.run("SET preserve_insertion_order = false")  # all that follows is sorted where it is written
        columns = how.pairs(work, values, table.name)
        for folder, split in folders.items():
            queries, notes = how.labels(work, columns, split, table.name)
            for part in SPLITS:
                query = queries.get(part, f"SELECT {', '.join(columns)} FROM pairs WHERE false")
                write_into(fresh[folder], f"{part}.parquet", partial(work.write, query))
            about = how.about(table.name, split)
            written[folder] = _describe(fresh[folder], name, about, [*values.notes, *notes], items, how, values)
            _check_same(folder, written[folder], overwrite)
    return written


def _check_same(folder: Path, written: Written, overwrite: bool) -> None:
    """A dataset that a call which was cut short has written may be replaced by itself; any other is refused."""
    if overwrite or not (folder / ABOUT_FILE).exists():
        return
    if read_json(folder / ABOUT_FILE, LARGE_JSON, "make it again").get("fingerprint") != written.fingerprint:
        raise InputError(f"{folder} already exists; choose another folder with --out or pass --overwrite")


def _describe(
    fresh: Path,
    name: str,
    about: dict[str, object],
    notes: list[str],
    items: Table | None,
    how: Recipe,
    values: Values,
) -> Written:
    """Write `dataset.json` beside the splits, and what is known of the items."""
    splits = _Splits(fresh, name)
    ids = splits.ids
    found = fingerprint(ids[Column.USER], ids[Column.ITEM], splits.numbers())
    notes += splits.odd()
    counts = splits.counts()
    written = {"name": name, **about, "counts": counts, "fingerprint": found, "notes": notes}
    if items is not None:
        known, odd = attributes_of(items, ids[Column.ITEM], (how.names or ColumnNames()).item)
        notes += odd
        known.write_into(fresh, ids[Column.ITEM])
        written["attributes"] = {"columns": known.columns, "digest": digest(fresh / ATTRIBUTES_FILE)}
    write_into(fresh, ABOUT_FILE, as_json(written))
    return Written(name, counts, tuple(notes), values.invalid, found)


class _Splits:
    """The three files of a dataset, read some rows at a time."""

    def __init__(self, folder: Path, name: str) -> None:
        self._scans = {split: pl.scan_parquet(folder / f"{split}.parquet", glob=False) for split in SPLITS}
        self.sizes = {split: int(scan.select(pl.len()).collect().item()) for split, scan in self._scans.items()}
        if not self.sizes["train"]:
            raise InputError(f"the training split of {name} is empty; there is nothing to learn from")
        self.ids = {
            column: distinct_ids(
                [
                    scan.select(pl.col(column).unique()).collect(engine="streaming")[column]
                    for scan in self._scans.values()
                ]
            )
            for column in IDS
        }
        self._present: dict[tuple[str, str], NDArray[np.bool_]] = {}

    def numbers(self) -> Iterator[Blocks]:
        """What a fingerprint is made of: users and items of every split, training counts, no candidates."""
        for split in SPLITS:
            for column in IDS:
                yield self.sizes[split], self._indices(split, column)
        counted = Column.COUNT in self._scans["train"].collect_schema()
        yield (
            (self.sizes["train"], (one.to_numpy() for one in self._blocks("train", Column.COUNT))) if counted else None
        )
        yield None

    def _indices(self, split: SplitName, column: str) -> Iterator[NDArray[np.int32]]:
        present = self._present[split, column] = np.zeros(len(self.ids[column]), dtype=np.bool_)
        for block in self._blocks(split, column):
            index = encode(block, self.ids[column])
            present[index] = True
            yield index

    def _blocks(self, split: SplitName, column: str) -> Iterator[pl.Series]:
        for first in range(0, self.sizes[split], ROWS_AT_ONCE):
            yield self._scans[split].select(column).slice(first, ROWS_AT_ONCE).collect()[column]

    def counts(self) -> dict[str, Any]:
        """As `Dataset.counts`; the fingerprint was made."""
        present = {key: int(one.sum()) for key, one in self._present.items()}
        splits = {
            split: {"pairs": self.sizes[split], "users": present[split, IDS[0]], "items": present[split, IDS[1]]}
            for split in SPLITS
        }
        n_users, n_items = (len(self.ids[column]) for column in IDS)
        total = sum(self.sizes.values())
        return {"users": n_users, "items": n_items, "candidates": n_items, "interactions": total, "splits": splits}

    def odd(self) -> list[str]:
        """As the linter says it; pairs are in one split each."""
        users, items = (
            tuple(np.flatnonzero(self._present[split, column]) for split in ("train", "test")) for column in IDS
        )
        return empty_splits(self.sizes) + untrained(self.ids[Column.USER], self.ids[Column.ITEM], users, items, None)  # type: ignore[arg-type]


def table_per_split(
    tables: Mapping[SplitName, Table],
    candidates: Table | None = None,
    names: ColumnNames | None = None,
    positive: str | None = None,
    keep_duplicates: bool = False,
    drop_invalid: bool = False,
) -> Prepared:
    """One table per split; pairs are counted in the training split only."""
    names = names or ColumnNames()
    rule = None if positive is None else PositiveRule.parse(positive)
    count = {"train": keep_duplicates}
    reading = Reading(drop_invalid)
    logs = [
        read_log(table, names, rule, reading, once=True, keep_duplicates=count.get(split, False))
        for split, table in tables.items()
    ]
    invalid = [log.invalid for log in logs if log.invalid is not None]
    if candidates is not None:
        logs.append(read_candidates(candidates, names.item))
    logs = as_one_type(logs)
    allowed = None if candidates is None else logs.pop().frame[Column.ITEM]
    about: dict[str, object] = {
        "source": {split: table.name for split, table in tables.items()},
        "positive": "every row" if rule is None else str(rule),
        "split": "ready-made",
    }
    frames = {split: log.frame for split, log in zip(tables, logs, strict=True)}
    notes = [note for log in logs for note in log.notes]
    return Prepared(frames, about, notes, allowed, pl.concat(invalid) if invalid else None)
