"""Attributes of items: titles, and any other given columns.

The same file, `attributes.parquet`, is stored in a dataset and in the runs trained on it, with its own digest:
titles change no number of a training, so they are no part of a dataset's fingerprint.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs

from dpaa._io import digest, write_into
from dpaa.data._values import Wanted, read_frame
from dpaa.data.ids import Column, encode, integers_if_unchanged, is_text, kind
from dpaa.data.log import find_column
from dpaa.data.parquet import read_parquet
from dpaa.data.tables import Table
from dpaa.errors import InputError

ATTRIBUTES_FILE = "attributes.parquet"
TITLE = "title"
KNOWN_TITLES = ("title", "item_title", "movie_title", "product_title", "name", "item_name", "product_name")
"""What a column of titles is usually called, the likeliest first; compared without regard to case."""
LONGEST_TITLE = 300
"""Characters of a title that are shown."""
SEVERAL = "|"
"""What stands between the values of an item that has several, as in `Comedy|Drama`."""
MISSING = "(none)"
"""The group of items without a value."""
MOST_GROUPS = 200


@dataclass(frozen=True, eq=False)
class ItemAttributes:
    """A table with a row per item, in the order of the item ids."""

    frame: pl.DataFrame
    """Without the ids; null where nothing is known.  (n_items,)"""

    @property
    def columns(self) -> list[str]:
        """What is known of items: `title`, if there are titles, and whatever else was given."""
        return self.frame.columns

    @cached_property
    def titles(self) -> pl.Series | None:
        """Display names of the items, cut at 300 characters; null for an item without, None if there are none."""
        if TITLE not in self.frame.columns:
            return None
        return self.frame[TITLE].cast(pl.String).str.slice(0, LONGEST_TITLE)

    def values(self, name: str) -> pl.Series:
        """Return the values of a column as text.

        Parameters
        ----------
        name : of the column

        Returns
        -------
        (n_items,) lists: one value, several (of `a|b`, or of a list) or none
        """
        if name not in self.frame.columns:
            raise InputError(f"the items have no column {name!r}; they have {', '.join(map(repr, self.columns[:20]))}")
        column = self.frame[name]
        if not isinstance(column.dtype, pl.List):
            column = column.cast(pl.String).str.split(SEVERAL if is_text(column) else "\0")
        cleaned = column.list.eval(pl.element().cast(pl.String).str.strip_chars())
        distinct = cleaned.list.eval(pl.element().filter(pl.element() != "").unique(maintain_order=True))
        return distinct.fill_null(pl.Series([[]], dtype=pl.List(pl.String)))

    def groups(self, name: str) -> dict[str, npt.NDArray[np.bool_]]:
        """Group the items by the values of a column; an item with several values is in several groups.

        Parameters
        ----------
        name : of the column

        Returns
        -------
        value → (n_items,) which items have it; values are ascending, as numbers where the column has numbers; items
        without a value are the group `(none)`, the last
        """
        values = self.values(name)
        each = values.explode().drop_nulls().unique().to_list()
        if len(each) > MOST_GROUPS:
            what = f"column {name!r} of the items has {len(each):,} different values"
            raise InputError(f"{what}, too many for groups; choose one of at most {MOST_GROUPS}")
        # As numbers where they are: as text, 10 would come before 9.
        each.sort(key=float if self.frame[name].dtype.is_numeric() else str)
        groups = {value: values.list.contains(value).to_numpy() for value in each}
        if (bare := (values.list.len() == 0).to_numpy()).any():
            groups[MISSING] = bare | groups.pop(MISSING, np.zeros(1, dtype=bool))
        return groups

    def with_ids(self, item_ids: pl.Series) -> pl.DataFrame:
        """Add the ids to the columns.

        Parameters
        ----------
        item_ids : (n_items,)

        Returns
        -------
        `item_id` and the columns
        """
        return pl.DataFrame([item_ids.alias(Column.ITEM), *self.frame.get_columns()])

    def aligned(self, own: pl.Series, wanted: pl.Series) -> ItemAttributes:
        """Align the rows with other items.

        Parameters
        ----------
        own : (n_items,) ids of the rows
        wanted : (n,) ids of the items

        Returns
        -------
        (n,) rows, null for items that are not there
        """
        return ItemAttributes(_gathered(self.frame, encode(wanted, own)))

    def over(self, older: ItemAttributes) -> ItemAttributes:
        """Fill missing values with older attributes, converted where a column has another type.

        Parameters
        ----------
        older : attributes of the same items

        Returns
        -------
        the completed attributes
        """
        both = [name for name in self.columns if name in older.columns]
        filled = self.frame.with_columns(
            pl.col(name).fill_null(older.frame[name].cast(self.frame[name].dtype, strict=False)) for name in both
        )
        return ItemAttributes(filled.hstack(older.frame.drop(both)))

    def write_into(self, folder: Path, item_ids: pl.Series) -> dict[str, Any]:
        """Write the file of a dataset or run that is being made.

        Parameters
        ----------
        folder : of the dataset or run
        item_ids : (n_items,)

        Returns
        -------
        the columns and the digest of the file
        """
        write_into(folder, ATTRIBUTES_FILE, partial(self.with_ids(item_ids).write_parquet, compression="zstd"))
        return {"columns": self.columns, "digest": digest(folder / ATTRIBUTES_FILE)}


def attributes_of(table: Table, item_ids: pl.Series, item: str | None = None) -> tuple[ItemAttributes, list[str]]:
    """Read what a table knows of items.

    Parameters
    ----------
    table : has an item column and others; an item that is there twice is refused, other items are left out
    item_ids : ids of the items
    item : the item column, where it has none of the usual names

    Returns
    -------
    the attributes, and notes
    """
    key = find_column(table, Column.ITEM, item if item in table.columns else None)
    others = [name for name in table.columns if name != key]
    if not others:
        raise InputError(f"{table.name} has no column besides {key!r}; add item attributes such as title")
    ids = read_frame(table, {key: Wanted(key, "id")})[key]
    if ids.is_duplicated().any():
        repeated = int((~ids.is_first_distinct()).arg_max() or 0)
        raise InputError(
            f"{table.name} has item {ids[repeated]!r} again in {table.place(repeated)}; leave one row per item"
        )
    if not table.typed:  # numbers of a text file may be meant as text, and the other way round
        text = ids.cast(pl.String)
        ids = text if is_text(item_ids) else text.replace_strict(item_ids.cast(pl.String), item_ids, default=None)
    index = encode(ids, item_ids) if is_text(ids) == is_text(item_ids) else np.full(len(ids), -1)
    known = np.flatnonzero(index >= 0)
    if not len(known):
        ours = f"{kind(item_ids)} such as {item_ids[0]!r}"
        raise InputError(f"no item of {table.name} is in the log, whose ids are {ours}; use the ids of the log")
    # Rows go to items by their index: the table may have others, in any order, and lack some.
    row = np.full(len(item_ids), -1)
    row[index[known]] = known
    frame = _kept(table.read(others), table)
    unknown, bare = len(ids) - len(known), len(item_ids) - len(known)
    notes = [f"{table.name}: {unknown:,} items are not in the log, {bare:,} items of the log have no row"]
    return ItemAttributes(_gathered(frame, row)), notes if unknown or bare else []


def _gathered(frame: pl.DataFrame, rows: npt.NDArray[Any]) -> pl.DataFrame:
    """Gather rows of a frame, null for index -1."""
    return frame.select(pl.all().gather(pl.Series(rows.astype(np.int64)).replace(-1, None)))


def read_attributes(folder: Path, item_ids: pl.Series, expected: str | None, remedy: str) -> ItemAttributes | None:
    """Read the attributes kept in a folder.

    Parameters
    ----------
    folder : of a dataset or a run
    item_ids : of the dataset or run
    expected : digest of the file, None where there should be none; another file is refused
    remedy : of the message

    Returns
    -------
    the attributes, None where there are none
    """
    file = folder / ATTRIBUTES_FILE
    if expected is None and not file.exists():
        return None
    frame = None
    with suppress(OSError, pl.exceptions.PolarsError):
        frame = read_parquet(file) if digest(file) == expected else None
    if frame is None or Column.ITEM not in frame.columns or not frame[Column.ITEM].equals(item_ids):
        raise InputError(f"{file} is not the file that was written there (its digest does not match); {remedy}")
    return ItemAttributes(frame.drop(Column.ITEM))


def _kept(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Keep the columns of text, numbers, dates and lists of text, titles under `title`."""
    plain = cs.string() | cs.numeric() | cs.boolean() | cs.date() | cs.datetime() | cs.by_dtype(pl.List(pl.String))
    casts = (cs.categorical() | cs.enum()).cast(pl.String), cs.decimal().cast(pl.Float64)
    kept = frame.with_columns(casts).select(plain)
    if not kept.width:
        raise InputError(f"{table.name} has no column of text, numbers or dates besides the ids; give at least a title")
    if not table.typed:
        kept = kept.with_columns(integers_if_unchanged(column.replace("", None)) for column in kept.select(cs.string()))
    title_column = Table(table.name, frame=kept).named(KNOWN_TITLES)
    if title_column is None:
        return kept
    title = (
        pl.col(title_column).list.join(" ")
        if kept[title_column].dtype == pl.List
        else pl.col(title_column).cast(pl.String)
    )
    return kept.with_columns(title).rename({title_column: TITLE})
