"""A log is appended to a dataset that was made of one, by the rules that the dataset was made with.

Pairs that are there already stay what they are. New ones are labelled by the dataset's split rule: at random among
themselves, where the rule draws; where the rule is about time (`temporal`, `leave-last`), old and new pairs are split
anew, for what was latest yesterday is so no longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from dpaa._text import counted
from dpaa.data._engine import Engine
from dpaa.data.columns import SPLITS, Column, SplitName
from dpaa.data.log import ColumnNames, Log, Reading, as_one_type, read_log
from dpaa.data.positive import PositiveRule
from dpaa.data.splits import BY_TIME, LABELS, SplitRule, define_labels, drop_rare
from dpaa.data.tables import Table
from dpaa.errors import InputError

RULES, APPENDED = "rules", "appended"
"""Keys of `about`: by what the dataset was made, and what has been appended since."""


class Rules(BaseModel):
    """By what a log became a dataset; kept in `dataset.json`."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    columns: dict[str, str | None]
    positive: str | None
    split: dict[str, str | float | int] | None
    min_user_interactions: int
    min_item_interactions: int
    keep_duplicates: bool
    seed: int

    @classmethod
    def of(cls, names: ColumnNames, split: SplitRule | None, **rest: Any) -> Rules:
        """Those of one call."""
        return cls(columns=asdict(names), split=None if split is None else asdict(split), **rest)

    @classmethod
    def kept(cls, about: Mapping[str, Any], name: str) -> Rules:
        """Those of a dataset; one that was not made of one log has none."""
        try:
            return cls.model_validate(about.get(RULES))
        except ValidationError:
            raise InputError(
                f"dataset {name} does not say by which rules it was made of a log; make it again with `dpaa data log`"
            ) from None

    @property
    def rule(self) -> SplitRule | None:
        """How it was split."""
        try:
            return None if self.split is None else SplitRule(**self.split)  # type: ignore[arg-type]
        except TypeError:
            raise InputError("the dataset's split rule is not one of this version; make the dataset again") from None


def append_table(
    frames: Mapping[SplitName, pl.DataFrame],
    about: Mapping[str, Any],
    name: str,
    fingerprint: str,
    table: Table,
    names: ColumnNames | None = None,
    drop_invalid: bool = False,
) -> tuple[dict[SplitName, pl.DataFrame], dict[str, object], list[str], pl.DataFrame | None]:
    """The splits with a table's positives in them, what is to be said of the dataset, notes, and invalid rows.

    `names` are the table's columns, where they are not called as those of the first log; `drop_invalid` leaves rows
    with faults out.
    """
    rules = Rules.kept(about, name)
    rule = rules.rule
    if rule is not None and rule.kind == "time-windows":
        raise InputError(
            f"dataset {name} is one window of a log and has not all of it; append the rows to the log instead"
        )
    columns = ColumnNames(**rules.columns) if names is None or names == ColumnNames() else names
    positive = None if rules.positive is None else PositiveRule.parse(rules.positive)
    reading = Reading(drop_invalid, times_needed=rule is not None and rule.needs_times)
    log = read_log(table, columns, positive, reading, once=True, keep_duplicates=rules.keep_duplicates)
    old = pl.concat([_labelled(frames[split], split) for split in SPLITS], how="diagonal_relaxed")
    made = [Log(old, f"dataset {name}", typed=True), log]
    old, new = (one.frame for one in as_one_type(made))
    _check_columns(old, new, table, name)
    if Column.TIMESTAMP in old.columns and isinstance(old[Column.TIMESTAMP].dtype, pl.Datetime):
        new = new.with_columns(pl.col(Column.TIMESTAMP).cast(old[Column.TIMESTAMP].dtype))
    again = new.join(old, on=[Column.USER, Column.ITEM], how="semi")
    new = new.join(old, on=[Column.USER, Column.ITEM], how="anti", maintain_order="left")
    if rules.keep_duplicates:
        old = _with_more(old, again)
    whole = pl.concat([old, new], how="diagonal_relaxed")
    if Column.COUNT in whole.columns:
        whole = whole.with_columns(pl.col(Column.COUNT).fill_null(1))
    least = {Column.USER: rules.min_user_interactions, Column.ITEM: rules.min_item_interactions}
    earlier = about.get(APPENDED)
    before: list[Any] = earlier if isinstance(earlier, list) else []
    with Engine() as engine:
        engine.put("pairs", whole)
        rare = drop_rare(engine, least, whole.columns)
        kept = engine.frame("SELECT * FROM pairs") if rare else whole
        parts, cut = _split(engine, kept, rule, rules.seed, table, len(before) + 1)
    pairs = sum(part.height for part in parts.values()) - old.height
    notes = [*log.notes, *_repeats(again.height, table, rules), *rare, *cut]
    counted_pairs = counted(pairs, "new pair", "new pairs")
    notes.append(f"{counted_pairs} of {table.name} joined dataset {name} by its own rules")
    told = {
        "source": table.name,
        "positives": log.frame.height,
        "new_pairs": pairs,
        "notes": notes,
        "fingerprint_before": fingerprint,
    }
    return parts, {**about, APPENDED: [*before, told]}, notes, log.invalid


def told_before(about: Mapping[str, Any]) -> list[str]:
    """Notes of what was appended earlier, which the list of what was appended keeps."""
    earlier = about.get(APPENDED)
    last = earlier[-1] if isinstance(earlier, list) and earlier else None
    found = last.get("notes") if isinstance(last, dict) else None
    return found if isinstance(found, list) else []


SPLIT = "split"


def _labelled(frame: pl.DataFrame, split: SplitName) -> pl.DataFrame:
    return frame.with_columns(pl.lit(split).alias(SPLIT))


def _split(
    engine: Engine, whole: pl.DataFrame, rule: SplitRule | None, seed: int, table: Table, times: int
) -> tuple[dict[SplitName, pl.DataFrame], list[str]]:
    is_new = pl.col(SPLIT).is_null()
    bare, known = whole.drop(SPLIT), whole.filter(~is_new)
    if rule is None:
        return {"train": bare}, []
    if rule.kind in BY_TIME:
        return _labelled_frames(engine, bare, rule, seed, table)
    old: dict[SplitName, pl.DataFrame] = {split: known.filter(pl.col(SPLIT) == split).drop(SPLIT) for split in SPLITS}
    engine.put("trained", old["train"])
    how: Any = {"trained": True, "times_appended": times}
    new, cut = _labelled_frames(engine, whole.filter(is_new).drop(SPLIT), rule, seed, table, **how)
    return {split: _both(old[split], new[split], split) for split in SPLITS}, cut


def _labelled_frames(
    engine: Engine, pairs: pl.DataFrame, rule: SplitRule, seed: int, table: Table, **how: Any
) -> tuple[dict[SplitName, pl.DataFrame], list[str]]:
    """The frames of the three splits, and what is to be noted about them."""
    engine.put("pairs", pairs)
    notes = define_labels(engine, rule, seed, pairs.columns, table.name, **how)
    frame = engine.frame("SELECT * FROM labelled ORDER BY user_id, item_id")
    parts = {split: frame.filter(pl.col("label") == LABELS[split]).drop("label") for split in SPLITS}
    return {split: _both(part, part.clear(), split) for split, part in parts.items()}, notes


def _both(old: pl.DataFrame, new: pl.DataFrame, split: SplitName) -> pl.DataFrame:
    found = pl.concat([old, new], how="diagonal_relaxed")
    return found if split == "train" else found.drop(Column.COUNT, strict=False)


def _with_more(old: pl.DataFrame, again: pl.DataFrame) -> pl.DataFrame:
    """Counts of pairs that occur again."""
    more = again.select(Column.USER, Column.ITEM, pl.col(Column.COUNT).alias("more"))
    found = old.join(more, on=[Column.USER, Column.ITEM], how="left", maintain_order="left")
    count = pl.col(Column.COUNT).fill_null(1) + pl.col("more").fill_null(0)
    return found.with_columns(count.cast(pl.Int32).alias(Column.COUNT)).drop("more")


def _repeats(again: int, table: Table, rules: Rules) -> list[str]:
    if not again:
        return []
    told = "their counts are added" if rules.keep_duplicates else "they stay where they are"
    return [f"{counted(again, 'pair', 'pairs')} of {table.name} are in the dataset already; {told}"]


def _check_columns(old: pl.DataFrame, new: pl.DataFrame, table: Table, name: str) -> None:
    """Times of one kind; a column that one of the two lacks is empty in the other's rows, but for times."""
    has = [Column.TIMESTAMP in frame.columns for frame in (old, new)]
    if has[0] != has[1]:
        lacks, other = (f"dataset {name}", table.name) if has[1] else (table.name, f"dataset {name}")
        raise InputError(f"{other} has times, {lacks} has none; append rows with the same columns")
    if has[0]:
        kinds = [isinstance(frame[Column.TIMESTAMP].dtype, pl.Datetime) for frame in (old, new)]
        if kinds[0] != kinds[1]:
            words = ["dates" if one else "numbers" for one in kinds]
            raise InputError(
                f"the times of dataset {name} are {words[0]}, those of {table.name} are {words[1]}; write them alike"
            )
