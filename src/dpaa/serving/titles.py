"""What people call the items, from a table of item_id and title beside a run: for one that does not know it itself."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dpaa.data.attributes import TITLE, attributes_of
from dpaa.data.inputs import open_table
from dpaa.errors import InputError


def read_titles(file: Path, item_ids: pl.Series) -> pl.Series:
    """The title of each item, null where the file has none; items that the run does not know are left out."""
    table = open_table(file)
    found, _ = attributes_of(table, item_ids)
    if found.titles is None:
        raise InputError(f"{file} has no column {TITLE!r}; titles are a table of item_id and title")
    return found.titles
