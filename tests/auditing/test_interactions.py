"""What is audited: the same from every format, from folders and datasets; duplicates and rules for positives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpaa
from dpaa.auditing.audit import audit
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from tests.auditing.examples import LISTS, LOG, comparable, logs


def test_duplicates_count_once_unless_they_are_to_be_counted() -> None:
    twice = pl.concat([LOG, LOG.filter(pl.col("item_id") == "E").with_columns(timestamp=pl.lit(11, pl.Int64))])
    assert comparable(audit(twice)) == comparable(audit(LOG))
    assert "each stands at its first time" in audit(twice).notes[1]
    assert audit(LOG).notes == []
    found = audit(twice, keep_duplicates=True)
    assert found.log.interactions == 11
    assert found.log.items_once == 2
    assert sum(period.interactions for period in found.log.periods) == 11
    kept = Dataset.from_frame(twice, keep_duplicates=True)
    assert comparable(audit(kept)) == comparable(found)


def test_the_rule_for_positives_and_column_names(tmp_path: Path) -> None:
    rated = LOG.rename({"item_id": "thing"}).with_columns(stars=pl.Series([5] * 9 + [1]))
    rated.write_csv(tmp_path / "log.tsv", separator="\t")
    names = dpaa.data.log.ColumnNames(item="thing")
    found = audit(tmp_path / "log.tsv", positive="stars>=3", names=names)
    assert comparable(found) == comparable(audit(LOG[:9]))
    assert "1 of 10 rows are not positive" in found.notes[0]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "inter"])
def test_every_format_gives_the_same(tmp_path: Path, ending: str) -> None:
    log, lists = tmp_path / f"log.{ending}", tmp_path / "lists.csv"
    if ending == "parquet":
        LOG.write_parquet(log)
    elif ending == "inter":
        typed = {"user_id": "user_id:token", "item_id": "item_id:token", "timestamp": "timestamp:float"}
        LOG.rename(typed).write_csv(log, separator="\t")
    else:
        LOG.write_csv(log, separator="," if ending == "csv" else "\t")
    LISTS.write_csv(lists)
    expected = comparable(audit(LOG, LISTS))
    expected["recommendations"]["name"] = "lists.csv"
    found = comparable(audit(log, lists))
    assert found.pop("in_words")[0] == expected.pop("in_words")[0]
    assert found == expected


def test_a_folder_gives_what_the_dataset_gives(tmp_path: Path) -> None:
    data = Dataset.from_frame(LOG, test={"user_id": ["u5"], "item_id": ["A"]})
    data.write(tmp_path / "data")
    assert comparable(audit(tmp_path / "data", LISTS)) == comparable(audit(data, LISTS))
    assert audit(tmp_path / "data").source == "the training split of dataset frame"
    assert audit(data).log.interactions == 10, "the test split is not looked at"


def test_a_dataset_takes_no_options_of_logs() -> None:
    with pytest.raises(InputError, match="is prepared already"):
        audit(Dataset.from_frame(LOG), positive="rating>3")


@given(logs(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(log: pl.DataFrame, random: Any) -> None:
    order = list(range(log.height))
    random.shuffle(order)
    assert comparable(audit(log[order])) == comparable(audit(log))


@given(logs(), st.booleans())
def test_a_dataset_gives_what_its_log_gives(log: pl.DataFrame, keep_duplicates: bool) -> None:
    data = Dataset.from_frame(log, keep_duplicates=keep_duplicates)
    assert comparable(audit(data)) == comparable(audit(log, keep_duplicates=keep_duplicates))
