"""Tables become the parts of a dataset: positives, each pair once, rare users and items out, split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from dpaa.data.append import RULES, Rules
from dpaa.data.columns import Column, SplitName
from dpaa.data.log import ColumnNames, Reading, as_one_type, once_each, read_candidates, read_log
from dpaa.data.positive import PositiveRule
from dpaa.data.splits import SplitRule, drop_rare, split_frame
from dpaa.data.tables import Table

VALIDATION_EXPOSURE = "validation_exposure"
"""Key of `about`: whether the validation pairs come from the log's own exposure, `biased`, or not, `unbiased`."""


class Prepared(NamedTuple):
    """What `Dataset.of` takes, but for the name."""

    frames: dict[SplitName, pl.DataFrame]
    about: dict[str, object]
    notes: list[str]
    candidates: pl.Series | None = None
    invalid: pl.DataFrame | None = None
    """Rows with faults that were left out: `source, row, fault, content`."""


def one_table(
    table: Table,
    names: ColumnNames | None = None,
    positive: str | None = None,
    split: SplitRule | None = None,
    min_user_interactions: int = 1,
    min_item_interactions: int = 1,
    keep_duplicates: bool = False,
    seed: int = 0,
    drop_invalid: bool = False,
) -> Prepared:
    """One table, split by a rule; without a rule all pairs are for training."""
    rule = None if positive is None else PositiveRule.parse(positive)
    reading = Reading(drop_invalid, times_needed=split is not None and split.needs_times)
    log = once_each(read_log(table, names, rule, reading), keep_duplicates)
    frame, rare = drop_rare(log.frame, min_user_interactions, min_item_interactions)
    frames: dict[SplitName, pl.DataFrame] = {"train": frame}
    cut: list[str] = []
    if split is not None:
        frames, cut = split_frame(frame, split, seed, table.name)
    about = about_log(
        table.name,
        names,
        rule,
        split,
        min_user_interactions=min_user_interactions,
        min_item_interactions=min_item_interactions,
        keep_duplicates=keep_duplicates,
        seed=seed,
    )
    return Prepared(frames, about, [*log.notes, *rare, *cut], invalid=log.invalid)


def about_log(
    source: str, names: ColumnNames | None, rule: PositiveRule | None, split: SplitRule | None, **how: Any
) -> dict[str, object]:
    """What a dataset says of the log that it was made of, and by which rules; `how` are the other ones."""
    rules = Rules.of(names or ColumnNames(), split, positive=None if rule is None else str(rule), **how)
    return {
        "source": source,
        "positive": "every row" if rule is None else str(rule),
        "split": "all for training" if split is None else str(split),
        "seed": how["seed"],
        VALIDATION_EXPOSURE: "biased",
        RULES: rules.model_dump(),
    }


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
        once_each(read_log(table, names, rule, reading), count.get(split, False)) for split, table in tables.items()
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
