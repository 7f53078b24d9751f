"""Pandas frames for who asks for them; nothing else here needs pandas, and pyarrow is not needed at all."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import polars as pl

from dpaa.errors import InputError, MissingExtraError


def to_pandas(thing: Any) -> Any:
    """Convert a table to a pandas frame.

    Parameters
    ----------
    thing : a polars frame, or anything with `to_frame` (an evaluation, a comparison, an audit)

    Returns
    -------
    a `pandas.DataFrame` with the same columns
    """
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise MissingExtraError("a pandas frame", "pandas") from None
    frame = thing.to_frame() if hasattr(thing, "to_frame") else thing
    if not isinstance(frame, pl.DataFrame):
        raise InputError(f"a {type(thing).__name__} is no table; give a frame, an evaluation, a comparison or an audit")
    return pandas.DataFrame({name: frame[name].to_numpy() for name in frame.columns}, columns=frame.columns)
