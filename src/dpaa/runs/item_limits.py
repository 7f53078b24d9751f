"""Columns of the items as limits of lists: which items have a value, and how alike a list may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.data.attributes import ItemAttributes, no_column
from dpaa.errors import InputError, need_whole
from dpaa.ranking.quotas import NO_VALUE, Quota

LONGEST_NUMBER = 9
"""Digits of a limit: no list is longer."""


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column of the items, its values as whole numbers."""

    name: str
    codes: NDArray[np.int32]
    """Values of each item, −1 where there are fewer.  (n_items, most values of an item)."""
    words: pl.Series
    """What each number stands for, ascending."""

    @classmethod
    def of(cls, values: pl.Series) -> CodedColumn:
        """From the values of each item as lists of text (`ItemAttributes.values`)."""
        lengths = values.list.len().to_numpy().astype(np.int64)
        codes = np.full((len(values), max(int(lengths.max(initial=0)), 1)), NO_VALUE, dtype=np.int32)
        flat = values.filter(values.list.len() > 0).explode().cast(pl.String)
        rows = np.repeat(np.arange(len(values)), lengths)
        slots = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        if len(flat):
            codes[rows, slots] = flat.rank("dense").cast(pl.Int32).to_numpy() - 1
        return cls(values.name, codes, flat.unique().sort())

    def having(self, wanted: object) -> NDArray[np.bool_]:
        """Which items have this value, or one of these values, among theirs; compared as text."""
        several = wanted if isinstance(wanted, Iterable) and not isinstance(wanted, str) else [wanted]
        words = sorted({str(one).lower() if isinstance(one, bool) else str(one) for one in several})
        codes = self.words.is_in(words).arg_true().to_numpy()
        if not len(codes):
            some = ", ".join(repr(one) for one in self.words.head(3))
            raise InputError(
                f"no item has {' or '.join(map(repr, words))} in column {self.name!r} (some have {some}); "
                "give a value that is there"
            )
        return np.asarray(np.isin(self.codes, codes).any(axis=1))

    def quota(self, at_most: int | None, at_least: int | None) -> Quota:
        """Limits by the values; items without one are held to nothing, those with several count for each."""
        for limit, name in ((at_most, "at most"), (at_least, "at least")):
            if limit is not None:
                need_whole(limit, f"{name} of column {self.name!r}")
        return Quota(self.codes, at_most, at_least)


class ItemColumns:
    """Columns of the items by name; each is coded when it is first asked for, and kept."""

    def __init__(self, attributes: ItemAttributes | None, coded: Iterable[CodedColumn] = ()) -> None:
        self._attributes, self._coded = attributes, {one.name: one for one in coded}

    @property
    def names(self) -> list[str]:
        """Those there are."""
        return list(self._coded) if self._attributes is None else self._attributes.columns

    def __getitem__(self, name: str) -> CodedColumn:
        if name not in self._coded:
            if not self.names:
                raise InputError(
                    f"nothing is known of the items, no column {name!r} either; make the dataset with --items"
                )
            if self._attributes is None:
                raise no_column(name, self.names)
            self._coded[name] = CodedColumn.of(self._attributes.values(name))
        return self._coded[name]

    def quotas(self, at_most: Mapping[str, int], at_least: Mapping[str, int]) -> tuple[Quota, ...]:
        """The limits of every column that is named."""
        return tuple(self[name].quota(at_most.get(name), at_least.get(name)) for name in {**at_most, **at_least})

    def allowed(self, only: Mapping[str, object], some: NDArray[Any]) -> NDArray[Any]:
        """Those of some items that have a wanted value in every column that is named."""
        for name, wanted in only.items():
            some = some[self[name].having(wanted)[some]]
        return some


# ------------------------------------------------------------------ as they are typed: `genre=3`, `in_stock=true`


def read_only(given: Sequence[str], option: str, example: str) -> dict[str, list[str]]:
    """`COLUMN=VALUE` → the values that are allowed in each column."""
    found: dict[str, list[str]] = {}
    for text in given:
        column, equals, value = text.rpartition("=")
        if not equals or not column.strip() or not value.strip():
            raise InputError(f"{option} takes COLUMN=VALUE, got {text!r}; write for example {example}")
        found.setdefault(column.strip(), []).append(value.strip())
    return found


def read_limits(given: Sequence[str], option: str, example: str) -> dict[str, int]:
    """`COLUMN=N` → N of each column."""
    found: dict[str, int] = {}
    for text in given:
        column, equals, number = (part.strip() for part in text.rpartition("="))
        if not (
            equals
            and column
            and number.isdecimal()
            and number.isascii()
            and len(number) <= LONGEST_NUMBER
            and int(number)
        ):
            raise InputError(f"{option} takes COLUMN=N with N from 1, got {text!r}; write for example {example}")
        if column in found:
            raise InputError(f"{option} is given twice for column {column!r}; give it once")
        found[column] = int(number)
    return found
