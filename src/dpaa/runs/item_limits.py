"""Columns of the items as limits of lists: which items have a value, and how alike a list may be."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.errors import InputError, need_whole
from dpaa.reranking.quotas import NO_VALUE, Quota


def has_value(values: pl.Series, wanted: object) -> NDArray[np.bool_]:
    """Which items have this value, or one of these values, among theirs; compared as text."""
    several = wanted if isinstance(wanted, Iterable) and not isinstance(wanted, str) else [wanted]
    words = sorted({str(one).lower() if isinstance(one, bool) else str(one) for one in several})
    found = values.list.eval(pl.element().is_in(words)).list.any().fill_null(value=False)
    if not found.any():
        some = ", ".join(repr(one) for one in values.explode().drop_nulls().unique().sort().head(3))
        raise InputError(
            f"no item has {' or '.join(map(repr, words))} in column {values.name!r} (some have {some}); "
            "give a value that is there"
        )
    return found.to_numpy()


def quota(values: pl.Series, at_most: int | None, at_least: int | None) -> Quota:
    """Limits by the values of a column; items without one are held to nothing, those with several count for each."""
    for limit, name in ((at_most, "at most"), (at_least, "at least")):
        if limit is not None:
            need_whole(limit, f"{name} of column {values.name!r}")
    lengths = values.list.len().to_numpy().astype(np.int64)
    codes = np.full((len(values), max(int(lengths.max(initial=0)), 1)), NO_VALUE, dtype=np.int64)
    filled = values.filter(values.list.len() > 0)
    flat = filled.explode().rank("dense").cast(pl.Int64).to_numpy() - 1 if len(filled) else np.empty(0, np.int64)
    rows = np.repeat(np.arange(len(values)), lengths)
    codes[rows, np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)] = flat
    return Quota(codes, at_most, at_least)
