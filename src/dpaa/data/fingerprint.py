"""What names a dataset: SHA-256 over ids, splits and candidates, fed block by block."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import polars as pl

from dpaa.data.ids import is_text, kind
from dpaa.data.pairs import Indices

AT_ONCE = 100_000
Blocks = tuple[int, Iterable[Indices]] | None
"""An array: how many numbers it has, and these, block by block; None where there is none."""


def fingerprint(user_ids: pl.Series, item_ids: pl.Series, arrays: Iterable[Blocks]) -> str:
    """Of users and items of every split in their order, of training counts, candidates and further pairs, if any."""
    digest = hashlib.sha256()
    for ids in (user_ids, item_ids):
        _feed(digest, len(found := kind(ids).encode()), [found])
        if is_text(ids):
            lengths = ids.str.len_bytes().cast(pl.Int64).to_numpy()
            _feed(digest, 8 * len(ids), [lengths.astype("<i8").tobytes()])
            texts = ("".join(ids.slice(first, AT_ONCE).to_list()).encode() for first in range(0, len(ids), AT_ONCE))
            _feed(digest, int(lengths.sum()), texts)
        else:
            _feed(digest, 8 * len(ids), [ids.to_numpy().astype("<i8" if ids.dtype == pl.Int64 else "<u8").tobytes()])
    for array in arrays:
        if array is None:
            _feed(digest, 4, [b"none"])
        else:
            _feed(digest, 4 * array[0], (np.ascontiguousarray(block, dtype="<i4").tobytes() for block in array[1]))
    return digest.hexdigest()


def _feed(digest: hashlib._Hash, length: int, content: Iterable[bytes]) -> None:
    digest.update(length.to_bytes(8, "little"))
    for block in content:
        digest.update(block)
