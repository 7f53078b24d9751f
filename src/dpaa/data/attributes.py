"""What is known of items besides who took them: their titles, and any other columns somebody gave.

The same file, `attributes.parquet`, is kept in a dataset and in the runs trained on it, under a digest of its own:
titles change no number of a training, so they are no part of a dataset's fingerprint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from dpaa._io import digest, write_into
from dpaa._text import counted
from dpaa.data._values import Wanted, read_frame
from dpaa.data.columns import Column
from dpaa.data.ids import WHOLE_NUMBER, encode, integers_if_unchanged, is_text, kind
from dpaa.data.log import find_column
from dpaa.data.parquet import parquet_schema, read_parquet
from dpaa.data.tables import Table
from dpaa.errors import InputError, reason

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
        """What people call the items, cut at 300 characters; null for an item without, None where nobody has one."""
        if TITLE not in self.frame.columns:
            return None
        return self.frame[TITLE].cast(pl.String).str.slice(0, LONGEST_TITLE)

    def column(self, name: str) -> pl.Series:
        """One column.  Returns (n_items,)."""
        if name not in self.frame.columns:
            raise no_column(name, self.columns)
        return self.frame[name]

    def values(self, name: str) -> pl.Series:
        """The values of each item as text: one, several (of `a|b`, or of a list) or none.  Returns (n_items,) lists."""
        column = self.column(name)
        if not isinstance(column.dtype, pl.List):
            text = column.cast(pl.String)
            column = text.str.split(SEVERAL if is_text(column) else "\0")
        cleaned = pl.element().cast(pl.String).str.strip_chars()
        distinct = column.list.eval(cleaned).list.eval(
            pl.element().filter(pl.element() != "").unique(maintain_order=True)
        )
        return distinct.fill_null(pl.Series([[]], dtype=pl.List(pl.String)))

    def groups(self, name: str) -> dict[str, npt.NDArray[np.bool_]]:
        """Value → which items have it; an item with several values is in several groups.

        Values are in ascending order, as numbers where the column has numbers; items without a value are the group
        `(none)`, the last.  Each mask is (n_items,).
        """
        values = self.values(name)
        filled = values.list.len() > 0
        items = filled.arg_true().to_numpy()
        owner = np.repeat(items, values.list.len().to_numpy()[items])
        each = values.filter(filled).explode()
        names = each.unique().to_list()
        if len(names) > MOST_GROUPS:
            raise InputError(
                f"column {name!r} of the items has {len(names):,} different values, too many for groups; choose a "
                f"column with at most {MOST_GROUPS}"
            )
        found = {}
        for value in sorted(names, key=float if self.column(name).dtype.is_numeric() else str):
            found[value] = np.zeros(len(values), dtype=bool)
            found[value][owner[(each == value).to_numpy()]] = True
        if not filled.all():
            found[MISSING] = ~filled.to_numpy() | found.pop(MISSING, np.zeros(1, dtype=bool))
        return found

    def with_ids(self, item_ids: pl.Series) -> pl.DataFrame:
        """`item_id` and the columns."""
        return pl.DataFrame([item_ids.alias(Column.ITEM), *self.frame.get_columns()])

    def aligned(self, own: pl.Series, wanted: pl.Series) -> ItemAttributes:
        """The same for other items: `own` are the ids of the rows, `wanted` those of the answer's."""
        index = pl.Series(encode(wanted, own).astype(np.int64)).replace(-1, None)
        return ItemAttributes(self.frame.select(pl.all().gather(index)))

    def over(self, older: ItemAttributes) -> ItemAttributes:
        """These, and what older ones of the same items know where these know nothing."""
        both = [name for name in self.columns if name in older.columns]
        for name in both:
            if self.frame[name].dtype != older.frame[name].dtype:
                raise InputError(
                    f"column {name!r} of the items is {older.frame[name].dtype} so far and {self.frame[name].dtype} "
                    "now; write it alike"
                )
        filled = self.frame.with_columns(pl.col(name).fill_null(older.frame[name]) for name in both)
        return ItemAttributes(filled.hstack(older.frame.drop(both)))

    def write_into(self, folder: Path, item_ids: pl.Series) -> None:
        """Write the file of a dataset or run that is being made."""
        write_into(folder, ATTRIBUTES_FILE, partial(self.with_ids(item_ids).write_parquet, compression="zstd"))


def no_column(name: str, columns: Sequence[str]) -> InputError:
    """What is said of a column that the items do not have."""
    some = ", ".join(map(repr, columns[:20])) + (", …" if len(columns) > 20 else "")
    return InputError(f"the items have no column {name!r}; they have {some}")


def attributes_of(table: Table, item_ids: pl.Series, item: str | None = None) -> tuple[ItemAttributes, list[str]]:
    """The attributes of these items in a table with an item column, and what is to be said of it.

    Rows of other items are counted and left out; an item that is there twice is refused.
    """
    key = find_column(table, Column.ITEM, item if item in table.columns else None)
    columns = [name for name in table.columns if name != key]
    if not columns:
        raise InputError(f"{table.name} has no column besides {key!r}; give at least a title")
    frame = table.read(list(table.columns))
    if not frame.height:
        raise InputError(f"{table.name} has no rows; leave the items out")
    ids = read_frame(table, {key: Wanted(key, "id")})[key]
    if (twice := ids.is_duplicated()).any():
        one = int(twice.arg_max() or 0)
        again = int((ids == ids[one]).arg_true()[1])
        raise InputError(
            f"{table.name} has item {ids[one]!r} twice, in {table.place(one)} and {table.place(again)}; remove one"
        )
    index = _index(ids, item_ids, table)
    known = index >= 0
    if not known.any():
        raise InputError(
            f"no item of {table.name} is in the log (it has {ids[0]!r}, the log {item_ids[0]!r}); "
            "use the ids of the log"
        )
    kept, notes = _kept(frame.select(columns), table)
    rows = np.full(len(item_ids), -1, dtype=np.int64)
    rows[index[known]] = np.flatnonzero(known)
    aligned = kept.select(pl.all().gather(pl.Series(rows).replace(-1, None)))
    if unknown := int((~known).sum()):
        such = ids.filter(pl.Series(~known))[0]
        told = counted(unknown, "item is not in the log and was", "items are not in the log and were")
        notes.append(f"{table.name}: {told} left out (such as {such!r})")
    if bare := len(item_ids) - int(known.sum()):
        such = item_ids[int((rows < 0).argmax())]
        told = counted(bare, "item of the log has", "items of the log have")
        notes.append(f"{table.name}: {told} no row (such as {such!r})")
    return ItemAttributes(aligned), notes


def read_attributes(folder: Path, item_ids: pl.Series, expected: str | None, remedy: str) -> ItemAttributes | None:
    """The attributes kept in a folder, None where there are none; `expected` is the digest of the file, as kept.

    A file that is missing, was changed, or was put there by somebody else is refused.
    """
    file = folder / ATTRIBUTES_FILE
    if expected is None and not file.exists():
        return None
    if expected is None or digest(file) != expected:
        raise InputError(f"{file} is not the file that was written there (its digest does not match); {remedy}")
    try:
        frame = read_parquet(file, list(parquet_schema(file)))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{file} is not a readable Parquet file ({reason(error)}); {remedy}") from None
    columns = [name for name in frame.columns if name != Column.ITEM]
    same = Column.ITEM in frame.columns and frame[Column.ITEM].equals(item_ids)
    if not same or not columns or any(_kind(frame[name].dtype) is None for name in columns):
        raise InputError(f"{file} does not hold the attributes of these items; {remedy}")
    return ItemAttributes(frame.select(columns))


def _index(ids: pl.Series, item_ids: pl.Series, table: Table) -> npt.NDArray[np.int32]:
    """The index of each id, −1 where the log has none such; ids of a text file may be meant either way."""
    if not table.typed and is_text(item_ids):
        return encode(ids.cast(pl.String), item_ids)
    if not table.typed and is_text(ids):  # some are no whole numbers, and so none of the log's
        whole = ids.str.contains(WHOLE_NUMBER)
        return np.where(whole.to_numpy(), encode(ids, item_ids), -1).astype(np.int32)
    if is_text(ids) != is_text(item_ids):
        raise InputError(
            f"the items in {table.name} are {kind(ids)} (such as {ids[0]!r}), those of the log are {kind(item_ids)} "
            f"(such as {item_ids[0]!r}); cast them"
        )
    return encode(ids, item_ids)


def _kept(frame: pl.DataFrame, table: Table) -> tuple[pl.DataFrame, list[str]]:
    """The columns in types that we keep, titles under `title`; what cannot be kept is named."""
    by_lower = {name.strip().lower(): name for name in reversed(frame.columns)}
    called = next((by_lower[name] for name in KNOWN_TITLES if name in by_lower), None)
    notes = [] if called in (None, TITLE) else [f"{table.name}: titles are taken from column {called!r}"]
    kept, lost = [], []
    for column in frame.get_columns():
        name = TITLE if column.name == called else column.name
        dtype = _kind(column.dtype)
        if dtype is None:
            lost.append(repr(column.name))
            continue
        values = column.cast(dtype)
        if name == TITLE:
            between = ", " if table.typed else " "  # words of a text file that RecBole counts as several values
            values = values.list.join(between) if isinstance(dtype, pl.List) else values.cast(pl.String)
        elif not table.typed and is_text(values):
            values = integers_if_unchanged(values.replace("", None))
        kept.append(values.alias(name))
    if lost:
        notes.append(f"{table.name}: {', '.join(lost[:5])} hold neither text, numbers, dates nor lists; left out")
    if not kept:
        raise InputError(
            f"no column of {table.name} holds text, numbers, dates or lists of them; give at least a title"
        )
    return pl.DataFrame(kept), notes


def _kind(dtype: pl.DataType) -> pl.DataType | None:
    """The type a column is kept in; None for one that is not kept."""
    if dtype in (pl.Categorical, pl.Enum, pl.Null):
        return pl.String()
    if dtype in (pl.String, pl.Boolean, pl.Date, pl.Datetime) or dtype.is_integer() or dtype.is_float():
        return dtype
    if dtype.is_decimal():
        return pl.Float64()
    if isinstance(dtype, pl.List | pl.Array) and isinstance(dtype.inner, pl.DataType):
        return pl.List(pl.String) if _kind(dtype.inner) in (pl.String(), pl.Int64()) else None
    return None
