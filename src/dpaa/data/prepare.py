"""Tables become the parts of a dataset: positives, each pair once, rare users and items out, split.

The steps are SQL statements (`log.define_pairs`, `splits.drop_rare`, `splits.define_labels`) that DuckDB runs whatever
the size of the log, and Spark where it outgrows one machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from dpaa._io import as_json, settled, whole_folder, write_into
from dpaa._text import counted
from dpaa.data._engine import Engine, SqlEngine, in_words
from dpaa.data._values import Values
from dpaa.data.attributes import attributes_of
from dpaa.data.columns import ABOUT_FILE, SPLITS, Column, SplitName
from dpaa.data.ids import distinct_ids, encode, one_type
from dpaa.data.log import ColumnNames, Reading, define_log, define_pairs, read_candidates, read_log
from dpaa.data.pairs import fingerprint, lint
from dpaa.data.positive import PositiveRule
from dpaa.data.spark import SparkEngine, define_spark_log
from dpaa.data.splits import BY_TIME, LABELS, SplitRule, define_labels, drop_rare
from dpaa.data.tables import Table
from dpaa.errors import InputError

VALIDATION_EXPOSURE = "validation_exposure"
"""Key of `about`: whether the validation pairs come from the log's own exposure, `biased`, or not, `unbiased`."""
RULES, APPENDED = "rules", "appended"
"""Keys of `about`: the recipe of the dataset, and what has been appended since."""
SPLIT = "split"
ROWS_AT_ONCE = 4_000_000
IDS = (Column.USER, Column.ITEM)
ROOM = "free some space or choose another folder with --out"


class Prepared(NamedTuple):
    """What `Dataset.of` takes, but for the name."""

    frames: dict[SplitName, pl.DataFrame]
    about: dict[str, Any]
    notes: list[str]
    candidates: pl.Series | None = None
    invalid: pl.DataFrame | None = None
    """Rows with faults that were left out: `source, row, fault, content`."""


class Recipe(BaseModel):
    """By which rules a log becomes a dataset; kept in `dataset.json`.

    Parameters
    ----------
    columns : names of the columns
    positive : rule such as "rating>=3"; None = every row counts
    split : how pairs are split; None = all are for training
    min_user_interactions, min_item_interactions : fewest pairs of a user and of an item
    keep_duplicates : count how often a pair occurs
    seed : of random splits
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    columns: ColumnNames = ColumnNames()
    positive: str | None = None
    split: SplitRule | None = None
    min_user_interactions: int = 1
    min_item_interactions: int = 1
    keep_duplicates: bool = False
    seed: int = 0

    @property
    def rule(self) -> PositiveRule | None:
        """The rule for positives."""
        return None if self.positive is None else PositiveRule.parse(self.positive)

    @property
    def least(self) -> dict[str, int]:
        """Fewest pairs of a user and of an item."""
        return {Column.USER: self.min_user_interactions, Column.ITEM: self.min_item_interactions}

    def about(self, source: str) -> dict[str, Any]:
        """What a dataset says of the log that it was made of."""
        positive = None if self.rule is None else str(self.rule)
        return {
            "source": source,
            "positive": positive or "every row",
            "split": "all for training" if self.split is None else str(self.split),
            "seed": self.seed,
            VALIDATION_EXPOSURE: "biased",
            RULES: self.model_dump() | {"positive": positive},
        }

    def pairs(
        self, engine: SqlEngine, table: Table, drop_invalid: bool, times_needed: bool
    ) -> tuple[Values, list[str]]:
        """Make the table `pairs` of an engine.  Returns a description of the log, and the columns of the table."""
        reading = Reading(drop_invalid, times_needed)
        define: Any = define_spark_log if isinstance(engine, SparkEngine) else define_log
        values: Values = define(engine, table, self.columns, self.rule, reading)
        columns = define_pairs(engine, values, table.name, self.keep_duplicates)
        values.notes += drop_rare(engine, self.least, columns)
        if self.rule is None and Column.RATING in columns:
            low, high = engine.row("SELECT min(rating), max(rating) FROM pairs")
            if low is not None and low < high:
                keep = f"--positive 'rating>={low + 0.75 * (high - low):.3g}' keeps the high ones"
                values.notes.append(f"ratings go from {low:g} to {high:g} and every row counts as liked; {keep}")
        return values, columns

    def queries(self, engine: SqlEngine, columns: list[str], source: str) -> dict[SplitName, str]:
        """Split the table `pairs`.  Returns a query for each split."""
        if self.split is None:
            engine.define("labelled", "SELECT *, 0 AS label FROM pairs")
        else:
            define_labels(engine, self.split, self.seed, columns, source)
        once = [column for column in columns if column != Column.COUNT]
        return {
            name: f"SELECT {', '.join(columns if name == 'train' else once)} FROM labelled "
            f"WHERE label = {LABELS[name]} ORDER BY user_id, item_id"
            for name in SPLITS
        }


def one_table(table: Table, split: SplitRule | None = None, *, drop_invalid: bool = False, **recipe: Any) -> Prepared:
    """Prepare one table in memory.

    Parameters
    ----------
    table : the log
    split : how it is split; None = all pairs are for training
    drop_invalid : leave out rows with faults
    recipe : as in `Recipe`

    Returns
    -------
    the parts of a dataset
    """
    how = Recipe(split=split, **recipe)
    with Engine() as engine, in_words(table.name):
        values, columns = how.pairs(engine, table, drop_invalid, split is not None and split.needs_times)
        frames = {name: engine.frame(query) for name, query in how.queries(engine, columns, table.name).items()}
    return Prepared(frames, how.about(table.name), values.notes, invalid=values.invalid)


class Written(NamedTuple):
    """A dataset that was written without being held in memory."""

    name: str
    counts: dict[str, Any]
    notes: tuple[str, ...]
    invalid: pl.DataFrame | None
    fingerprint: str


def write_log(
    table: Table,
    folders: Mapping[Path, SplitRule | None],
    name: str,
    *,
    memory: int | None = None,
    engine: str = "duckdb",
    items: Table | None = None,
    drop_invalid: bool = False,
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
    drop_invalid : leave out rows with faults
    recipe : as in `Recipe`

    Returns
    -------
    what was written, by folder
    """
    how, written = Recipe(**recipe), {}
    times_needed = any(rule is not None and rule.needs_times for rule in folders.values())
    with ExitStack() as stack:
        fresh = {folder: stack.enter_context(whole_folder(settled(folder), ROOM)) for folder in folders}
        stack.enter_context(in_words(table.name))
        beside = next(iter(fresh.values())).parent
        work: Any = stack.enter_context(SparkEngine(beside) if engine == "spark" else Engine(beside, memory))
        values, columns = how.pairs(work, table, drop_invalid, times_needed)
        if engine != "spark":
            work.run("SET preserve_insertion_order = false")  # all that follows is sorted where it is written
        for folder, split in folders.items():
            own = how.model_copy(update={"split": split})
            for part, query in own.queries(work, columns, table.name).items():
                write_into(fresh[folder], f"{part}.parquet", partial(work.write, query))
            written[folder] = _describe(fresh[folder], name, own, table, values, items)
    return written


def _describe(fresh: Path, name: str, how: Recipe, table: Table, values: Values, items: Table | None) -> Written:
    """Write `dataset.json` beside the splits, which are read some rows at a time, and what is known of the items."""
    scans = {split: pl.scan_parquet(fresh / f"{split}.parquet", glob=False) for split in SPLITS}
    sizes: dict[SplitName, int] = {split: scan.select(pl.len()).collect().item() for split, scan in scans.items()}
    if not sizes["train"]:
        raise InputError(f"the training split of {name} is empty; there is nothing to learn from")
    ids = {
        column: distinct_ids(
            [scan.select(pl.col(column).unique()).collect(engine="streaming")[column] for scan in scans.values()]
        )
        for column in IDS
    }
    present = {(split, one): np.zeros(len(ids[one]), dtype=np.bool_) for split in SPLITS for one in IDS}

    def blocks(split: SplitName, column: str) -> Iterator[NDArray[np.int32]]:
        for first in range(0, sizes[split], ROWS_AT_ONCE):
            block = scans[split].select(column).slice(first, ROWS_AT_ONCE).collect()[column]
            if column == Column.COUNT:
                yield block.to_numpy()
                continue
            index = encode(block, ids[column])
            present[split, column][index] = True
            yield index

    counts = (sizes["train"], blocks("train", Column.COUNT)) if how.keep_duplicates else None
    arrays = [*((sizes[split], blocks(split, column)) for split in SPLITS for column in IDS), counts, None]
    user_ids, item_ids = (ids[column] for column in IDS)
    found = fingerprint(user_ids, item_ids, arrays)
    users, seen = ([np.flatnonzero(present[split, one]).astype(np.int32) for split in SPLITS] for one in IDS)
    notes = [*values.notes, *lint(users, seen, user_ids, item_ids)]
    about = {"name": name, **how.about(table.name)}
    about["counts"] = {
        "users": len(user_ids),
        "items": len(item_ids),
        "candidates": len(item_ids),
        "interactions": sum(sizes.values()),
        "splits": {
            split: {"pairs": sizes[split], "users": len(user), "items": len(item)}
            for split, user, item in zip(SPLITS, users, seen, strict=True)
        },
    }
    if items is not None:
        known, odd = attributes_of(items, item_ids, how.columns.item)
        notes += odd
        about["attributes"] = known.write_into(fresh, item_ids)
    write_into(fresh, ABOUT_FILE, as_json(about | {"fingerprint": found, "notes": notes}))
    return Written(name, about["counts"], tuple(notes), values.invalid, found)


def table_per_split(
    tables: Mapping[SplitName, Table],
    candidates: Table | None = None,
    columns: ColumnNames | None = None,
    positive: str | None = None,
    keep_duplicates: bool = False,
    drop_invalid: bool = False,
) -> Prepared:
    """Prepare one table per split in memory; pairs are counted in the training split only.

    Parameters
    ----------
    tables : split → its pairs
    candidates : items that may be recommended; None = all
    columns, positive, keep_duplicates : as in `Recipe`
    drop_invalid : leave out rows with faults

    Returns
    -------
    the parts of a dataset
    """
    rule, reading = None if positive is None else PositiveRule.parse(positive), Reading(drop_invalid)
    logs = [
        read_log(table, columns, rule, reading, once=True, keep_duplicates=keep_duplicates and split == "train")
        for split, table in tables.items()
    ]
    invalid = [log.invalid for log in logs if log.invalid is not None]
    allowed = None if candidates is None else read_candidates(candidates, None if columns is None else columns.item)
    about = {
        "source": {split: table.name for split, table in tables.items()},
        "positive": "every row" if rule is None else str(rule),
        "split": "ready-made",
    }
    frames = {split: log.frame for split, log in zip(tables, logs, strict=True)}
    notes = [note for log in logs for note in log.notes]
    return Prepared(frames, about, notes, allowed, pl.concat(invalid) if invalid else None)


def append_table(
    frames: Mapping[SplitName, pl.DataFrame],
    about: Mapping[str, Any],
    name: str,
    table: Table,
    names: ColumnNames | None = None,
    drop_invalid: bool = False,
) -> Prepared:
    """Append the positives of a table to the splits of a dataset, by the rules that it was made with.

    Pairs that are there already stay what they are. New ones are labelled by the dataset's split rule: at random among
    themselves, where the rule draws; where the rule is about time (`temporal`, `leave-last`), old and new pairs are
    split again, for what was latest yesterday is so no longer.

    Parameters
    ----------
    frames : splits of the dataset
    about : of the dataset
    name : of the dataset
    table : the rows to append
    names : columns of the table, where they are not those of the first log
    drop_invalid : leave out rows with faults

    Returns
    -------
    the parts of the new dataset
    """
    try:
        recipe = Recipe.model_validate(about.get(RULES))
    except ValidationError:
        rules = "does not say by which rules it was made of a log"
        raise InputError(f"dataset {name} {rules}; make it again with `dpaa data log`") from None
    rule = recipe.split
    if rule is not None and rule.kind == "time-windows":
        raise InputError(f"dataset {name} is one window of a log; append the rows to the log instead")
    columns = recipe.columns if names in (None, ColumnNames()) else names
    reading = Reading(drop_invalid, times_needed=rule is not None and rule.needs_times)
    log = read_log(table, columns, recipe.rule, reading, once=True, keep_duplicates=recipe.keep_duplicates)
    labelled = [frames[split].with_columns(pl.lit(split).alias(SPLIT)) for split in SPLITS]
    old, new = pl.concat(labelled, how="diagonal_relaxed"), log.frame
    for column in IDS:
        ids = one_type([old[column], new[column]], column)
        if ids[0].dtype != old[column].dtype:
            raise InputError(f"column {column!r} is text in {table.name} and integers in dataset {name}; cast it")
        new = new.with_columns(ids[1])
    if _times(old) != _times(new):
        both = f"{_times(old)} in dataset {name} and {_times(new)} in {table.name}"
        raise InputError(f"times are {both}; write them alike")
    if _times(old) == "dates":
        new = new.with_columns(pl.col(Column.TIMESTAMP).cast(old[Column.TIMESTAMP].dtype))
    again = new.join(old, on=IDS, how="semi")
    new = new.join(old, on=IDS, how="anti", maintain_order="left")
    if recipe.keep_duplicates:
        more = again.select(*IDS, pl.col(Column.COUNT).alias("more"))
        old = old.join(more, on=IDS, how="left", maintain_order="left")
        count = pl.col(Column.COUNT).fill_null(1) + pl.col("more").fill_null(0)
        old = old.with_columns(count.cast(pl.Int32).alias(Column.COUNT)).drop("more")
    earlier: list[Any] = about.get(APPENDED) or []
    with Engine() as engine:
        whole = pl.concat([old, new], how="diagonal_relaxed")
        engine.put("pairs", whole)
        rare = drop_rare(engine, recipe.least, whole.columns)
        parts = _split(engine, engine.frame("SELECT * FROM pairs") if rare else whole, recipe, table, len(earlier) + 1)
    pairs = sum(part.height for part in parts.values()) - old.height
    notes = [*log.notes, *rare, f"{counted(pairs, 'new pair', 'new pairs')} of {table.name} joined dataset {name}"]
    if again.height:
        effect = "their counts are added" if recipe.keep_duplicates else "they stay where they are"
        notes.append(f"{counted(again.height, 'pair', 'pairs')} of {table.name} are in the dataset already; {effect}")
    entry = {"source": table.name, "positives": log.frame.height, "new_pairs": pairs}
    return Prepared(parts, {**about, APPENDED: [*earlier, entry]}, notes, invalid=log.invalid)


def _times(frame: pl.DataFrame) -> str:
    if Column.TIMESTAMP not in frame.columns:
        return "missing"
    return "dates" if frame[Column.TIMESTAMP].dtype.is_temporal() else "numbers"


def _split(
    engine: Engine, whole: pl.DataFrame, recipe: Recipe, table: Table, times: int
) -> dict[SplitName, pl.DataFrame]:
    """Label the new pairs, or all of them where the rule is about time."""
    if recipe.split is None:
        return {"train": whole.drop(SPLIT)}
    is_new = pl.lit(value=True) if recipe.split.kind in BY_TIME else pl.col(SPLIT).is_null()
    kept, new = whole.filter(~is_new), whole.filter(is_new).drop(SPLIT)
    engine.put("pairs", new)
    engine.put("trained", kept.filter(pl.col(SPLIT) == "train"))
    how: Any = {} if recipe.split.kind in BY_TIME else {"trained": True, "times_appended": times}
    define_labels(engine, recipe.split, recipe.seed, new.columns, table.name, **how)
    labelled = engine.frame("SELECT * FROM labelled ORDER BY user_id, item_id")
    parts: dict[SplitName, pl.DataFrame] = {}
    for split in SPLITS:
        both = [kept.filter(pl.col(SPLIT) == split).drop(SPLIT)]
        both.append(labelled.filter(pl.col("label") == LABELS[split]).drop("label"))
        frame = pl.concat(both, how="diagonal_relaxed")
        if Column.COUNT in frame.columns:
            frame = frame.with_columns(pl.col(Column.COUNT).fill_null(1))
        parts[split] = frame if split == "train" else frame.drop(Column.COUNT, strict=False)
    return parts
