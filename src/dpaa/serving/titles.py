"""What people call the items: a table of item_id and title beside a run, which knows ids alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from dpaa.data.columns import Column
from dpaa.data.tables import open_table
from dpaa.errors import InputError

TITLE = "title"
LONGEST = 300
"""Characters of a title that are kept."""


def read_titles(file: Path, item_ids: pl.Series) -> dict[Any, str]:
    """Title by item id; of a repeated item the first counts, items that the run does not know are left out."""
    table = open_table(file)
    if missing := [name for name in (Column.ITEM, TITLE) if name not in table.columns]:
        raise InputError(f"{file} has no column {missing[0]!r}; titles are a table of item_id and title")
    found = table.read([Column.ITEM, TITLE])
    given = pl.DataFrame(
        {
            "word": found[Column.ITEM].cast(pl.String),
            TITLE: found[TITLE].cast(pl.String).str.slice(0, LONGEST),
        }
    ).drop_nulls()
    known = pl.DataFrame({"word": item_ids.cast(pl.String), "id": item_ids})
    both = known.join(given.unique("word", keep="first"), on="word")
    if not len(both):
        raise InputError(f"no item of {file} is one of the run (such as {item_ids[0]!r}); use the ids of the log")
    return dict(zip(both["id"].to_list(), both[TITLE].to_list(), strict=True))
