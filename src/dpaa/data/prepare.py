"""Prepare datasets from tables: keep positives, deduplicate pairs, drop rare users and items, split.

The steps are SQL statements (`log.define_pairs`, `splits.drop_rare`, `splits.define_labels`) that DuckDB runs whatever
the size of the log, and Spark where it outgrows one machine.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from dpaa._text import counted
from dpaa.data._engine import Engine, in_words
from dpaa.data._spark import SparkEngine, define_spark_log
from dpaa.data._values import Values
from dpaa.data.ids import IDS, SPLITS, Column, SplitName, one_type
from dpaa.data.log import ColumnNames, PositiveRule, Reading, define_log, define_pairs, read_candidates, read_log
from dpaa.data.splits import LABELS, SplitRule, define_labels, drop_rare
from dpaa.data.tables import Table
from dpaa.errors import InputError

VALIDATION_EXPOSURE = "validation_exposure"
"""Key of `about`: whether the validation pairs come from the log's own exposure, `biased`, or not, `unbiased`."""
RULES, APPENDED = "rules", "appended"
"""Keys of `about`: the recipe of the dataset, and what has been appended since."""
LABEL = "label"


Frames = Mapping[SplitName, pl.DataFrame]


class _Prepared(NamedTuple):
    """The arguments of `Dataset.of`, but for the name."""

    frames: dict[SplitName, pl.DataFrame]
    about: dict[str, Any]
    notes: list[str]
    candidates: pl.Series | None = None
    invalid: pl.DataFrame | None = None
    """Rows with faults that were left out: `source, row, fault, content`."""


class Recipe(BaseModel):
    """Options by which a log is converted to a dataset; stored in `dataset.json`.

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
        """Describe the recipe and the log for `dataset.json`.

        Parameters
        ----------
        source : name of the log

        Returns
        -------
        source, rules, split and seed
        """
        positive = None if self.rule is None else str(self.rule)
        return {
            "source": source,
            "positive": positive or "every row",
            "split": "all for training" if self.split is None else str(self.split),
            "seed": self.seed,
            VALIDATION_EXPOSURE: "biased",
            RULES: self.model_dump() | {"positive": positive},
        }

    def pairs(self, engine: Engine, table: Table, drop_invalid: bool, times_needed: bool) -> tuple[Values, list[str]]:
        """Make the table `pairs` of an engine.

        Parameters
        ----------
        engine : DuckDB or Spark
        table : the log
        drop_invalid : leave out rows with faults, which are otherwise refused
        times_needed : whether every row must have a time

        Returns
        -------
        a description of the log, and the columns of the table
        """
        reading = Reading(drop_invalid, times_needed)
        define: Any = define_spark_log if isinstance(engine, SparkEngine) else define_log
        values: Values = define(engine, table, self.columns, self.rule, reading)
        columns = define_pairs(engine, values, table.name, self.keep_duplicates)
        values.notes += drop_rare(engine, self.least, columns)
        if self.rule is None and Column.RATING in columns:
            low, high = engine.row("SELECT min(rating), max(rating) FROM pairs")
            if low is not None and low < high:
                keep = f"--positive 'rating>={low + 0.75 * (high - low):.3g}' keeps the high ones"
                values.notes.append(f"ratings go from {low:g} to {high:g} and every row counts as positive; {keep}")
        return values, columns

    def queries(self, engine: Engine, columns: list[str], source: str) -> dict[SplitName, str]:
        """Split the table `pairs` of an engine.

        Parameters
        ----------
        engine : DuckDB or Spark
        columns : of the table
        source : name of the log, for messages

        Returns
        -------
        split → query of its pairs
        """
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


def one_table(table: Table, split: SplitRule | None = None, *, drop_invalid: bool = False, **recipe: Any) -> _Prepared:
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
    return _Prepared(frames, how.about(table.name), values.notes, invalid=values.invalid)


def table_per_split(
    tables: Mapping[SplitName, Table], candidates: Table | None = None, *, drop_invalid: bool = False, **recipe: Any
) -> _Prepared:
    """Prepare one table per split in memory; pairs are counted in the training split only.

    Parameters
    ----------
    tables : split → its pairs
    candidates : items that may be recommended; None = all
    drop_invalid : leave out rows with faults
    recipe : `columns`, `positive`, `keep_duplicates` as in `Recipe`

    Returns
    -------
    the parts of a dataset
    """
    how = Recipe(**recipe)
    rules, count = (how.columns, how.rule, Reading(drop_invalid)), how.keep_duplicates
    logs = [
        read_log(table, *rules, once=True, keep_duplicates=count and split == "train")
        for split, table in tables.items()
    ]
    invalid = [log.invalid for log in logs if log.invalid is not None]
    allowed = None if candidates is None else read_candidates(candidates, how.columns.item)
    about = {
        "source": {split: table.name for split, table in tables.items()},
        "positive": str(how.rule or "every row"),
        "split": "ready-made",
    }
    frames = {split: log.frame for split, log in zip(tables, logs, strict=True)}
    notes = [note for log in logs for note in log.notes]
    return _Prepared(frames, about, notes, allowed, pl.concat(invalid) if invalid else None)


def append_table(
    frames: Frames, about: Mapping[str, Any], name: str, table: Table, names: ColumnNames | None, drop_invalid: bool
) -> _Prepared:
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
        rules = "does not record how it was made from a log"
        raise InputError(f"dataset {name} {rules}; make it again with `dpaa data log`") from None
    rule = recipe.split
    if rule is not None and rule.kind == "time-windows":
        raise InputError(f"dataset {name} is one window of a log; append the rows to the log instead")
    by_time = rule is not None and rule.needs_times
    columns = recipe.columns if names in (None, ColumnNames()) else names
    log = read_log(
        table, columns, recipe.rule, Reading(drop_invalid, by_time), once=True, keep_duplicates=recipe.keep_duplicates
    )
    labelled = [frames[split].with_columns(pl.lit(LABELS[split]).alias(LABEL)) for split in SPLITS]
    old, new = pl.concat(labelled, how="diagonal_relaxed"), log.frame
    for column in IDS:
        ids = one_type([old[column], new[column]], column)
        if ids[0].dtype != old[column].dtype:
            raise InputError(f"column {column!r} is text in {table.name} and integers in dataset {name}; cast it")
        new = new.with_columns(ids[1])
    times = [_times(old), _times(new)]
    if times[0] != times[1]:
        both = f"{times[0]} in dataset {name} and {times[1]} in {table.name}"
        raise InputError(f"times are {both}; use the same format")
    if times[0] == "dates":
        new = new.with_columns(pl.col(Column.TIMESTAMP).cast(old[Column.TIMESTAMP].dtype))
    repeated = new.join(old, on=IDS, how="semi")
    # A row of a pair that is there already is no new pair: it only counts.
    if recipe.keep_duplicates:
        more = repeated.select(*IDS, pl.col(Column.COUNT).alias("more"))
        count = pl.col(Column.COUNT).fill_null(1) + pl.col("more").fill_null(0)
        old = old.join(more, on=IDS, how="left").with_columns(count.cast(pl.Int32).alias(Column.COUNT)).drop("more")
    earlier: list[Any] = about.get(APPENDED) or []
    with Engine() as engine:
        engine.put("pairs", pl.concat([old, new.join(old, on=IDS, how="anti")], how="diagonal_relaxed"))
        rare = drop_rare(engine, recipe.least, [*dict.fromkeys([*old.columns, *new.columns])])
        whole = _labelled(engine, recipe, table.name, len(earlier) + 1)
    if Column.COUNT in whole.columns:
        whole = whole.with_columns(pl.col(Column.COUNT).fill_null(1))
    parts = {split: whole.filter(pl.col(LABEL) == LABELS[split]).drop(LABEL) for split in SPLITS}
    parts |= {split: parts[split].drop(Column.COUNT, strict=False) for split in ("valid", "test")}
    pairs = whole.height - old.height
    notes = [*log.notes, *rare, f"{counted(pairs, 'new pair', 'new pairs')} of {table.name} joined dataset {name}"]
    if repeated.height:
        effect = "their counts are added" if recipe.keep_duplicates else "they stay where they are"
        notes.append(f"{repeated.height:,} pairs of {table.name} are in the dataset already; {effect}")
    entry = {"source": table.name, "positives": log.frame.height, "new_pairs": pairs}
    return _Prepared(parts, {**about, APPENDED: [*earlier, entry]}, notes, invalid=log.invalid)


def _times(frame: pl.DataFrame) -> str:
    if Column.TIMESTAMP not in frame.columns:
        return "missing"
    return "dates" if frame[Column.TIMESTAMP].dtype.is_temporal() else "numbers"


def _labelled(engine: Engine, recipe: Recipe, source: str, times_appended: int) -> pl.DataFrame:
    """Label the pairs without a label, or all of them where the rule is about time."""
    rule, whole = recipe.split, engine.frame("SELECT * FROM pairs")
    if rule is None:
        return whole.with_columns(pl.lit(LABELS["train"]).alias(LABEL))
    stays = pl.lit(value=False) if rule.needs_times else pl.col(LABEL).is_not_null()
    kept, unlabelled = whole.filter(stays), whole.filter(~stays).drop(LABEL)
    engine.put("pairs", unlabelled)
    engine.put("trained", kept.filter(pl.col(LABEL) == LABELS["train"]))
    times_appended = 0 if rule.needs_times else times_appended
    define_labels(engine, rule, recipe.seed, unlabelled.columns, source, times_appended)
    return pl.concat([kept, engine.frame("SELECT * FROM labelled")], how="diagonal_relaxed")
