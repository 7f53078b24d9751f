from __future__ import annotations

import polars as pl

from dpaa.data.prepare import one_table, table_per_split
from dpaa.data.splits import SplitRule
from dpaa.data.tables import as_table

LOG = pl.DataFrame({"user": [1, 1, 2, 2, 2], "item": [1, 1, 1, 2, 3], "rating": [5, 5, 4, 1, 3]})


def test_one_table_without_a_rule_is_all_for_training() -> None:
    parts = one_table(as_table(LOG, "log"), positive="rating>=3")
    assert parts.frames["train"].rows() == [(1, 1, 5), (2, 1, 4), (2, 3, 3)]
    assert parts.about["split"] == "all for training"
    assert parts.notes == [
        "log: 1 of 5 rows are not positive (rating >= 3) and were dropped",
        "log has 1 duplicate pair; each counts once; pass --keep-duplicates to count them all",
    ]


def test_one_table_with_a_rule_is_split() -> None:
    parts = one_table(as_table(LOG, "log"), split=SplitRule("random-global", valid=0.25, test=0.25))
    assert {name: frame.height for name, frame in parts.frames.items()} == {"train": 2, "valid": 1, "test": 1}


def test_a_table_per_split_counts_training_pairs_only() -> None:
    table = as_table(LOG, "log")
    parts = table_per_split({"train": table, "test": table}, as_table({"item": [2, 3]}, "items"), keep_duplicates=True)
    assert parts.frames["train"]["count"].to_list() == [2, 1, 1, 1]
    assert "count" not in parts.frames["test"].columns
    assert parts.candidates is not None
    assert parts.candidates.to_list() == [2, 3]
