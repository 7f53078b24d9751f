"""An approximate index for large catalogues: one for every user and every κ.

Its vectors are those of the dial, prepared: the items' mean is subtracted, which moves all scores of a query by one
number, and the popularity coordinate is scaled to the deviation of the others, the query's by the inverse.  Rankings
stay, and neighbours lie evenly enough for a graph (HNSW) or for cells (IVF).  What it finds is more than was asked
for, and is scored again exactly; what it misses is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpaa.errors import InputError
from dpaa.serving.extra import faiss
from dpaa.serving.settings import KINDS

Floats = NDArray[np.float32]
FILE = "index.faiss"
LINKS, WIDTH_BUILDING = 32, 80
"""HNSW: links of a vector, and how many neighbours are looked at when it is made."""
NARROWEST = {"hnsw": 64, "ivf": 8}
"""Where widening begins: neighbours looked at, or cells read (of about 4 √n), for a question."""
GOOD_RECALL = 0.98
"""An index is asked as wide as finds this share of the true best, tried with queries of users when it is made."""
TRIED_K = 20
SMALLEST = 2_000
"""Items below which there is nothing to gain."""
MOST_HIDDEN = 2_000
"""Who has taken more is answered exactly: an index would have to find all of that first."""


@dataclass(frozen=True, eq=False)
class Index:
    """Finds rows of the table of the dial that may be among the best."""

    kind: str
    found: Any
    scale: float
    """Of the popularity coordinate."""
    width: int
    recall: float
    """Of the best 20 at that width, as measured when it was made."""

    def search(self, queries: Tensor, most: int) -> tuple[NDArray[np.int64], Floats]:
        """Rows and approximate scores, best first, −1 where fewer were found.  Both (queries, most)."""
        asked = queries.numpy().copy()
        asked[:, -1] /= self.scale
        if self.kind == "hnsw":
            self.found.hnsw.efSearch = max(self.width, most)
        else:
            self.found.nprobe = self.width
        scores, rows = self.found.search(asked, most)
        return rows, np.where(rows >= 0, scores, -np.inf).astype(np.float32)


def prepared(table: Tensor) -> tuple[Floats, float]:
    """The vectors that are put into an index, and the scale of their last coordinate."""
    rows = table.numpy() - table.mean(dim=0).numpy()
    spread = float(rows[:, :-1].std())
    own = float(rows[:, -1].std())
    scale = spread / own if own > 0 and spread > 0 else 1.0
    rows[:, -1] *= scale
    return np.ascontiguousarray(rows), scale


def build_index(kind: str, table: Tensor | None, queries: Tensor, folder: Path) -> dict[str, Any] | None:
    """Make an index of the dial's table in the folder; what `read_index` needs to know, None without an index.

    `queries` are some of those that will come, (q, d + 1).
    """
    if kind not in KINDS:
        raise InputError(f"there is no index {kind!r}; choose one of {', '.join(KINDS)}")
    if kind == "exact":
        return None
    library = faiss()
    if table is None:
        raise InputError(
            f"this method does not rank by an inner product, so an index {kind} cannot serve it; use exact"
        )
    rows, scale = prepared(table)
    made = make_index(kind, rows)
    library.write_index(made, str(folder / FILE))
    best = torch.topk(queries @ table.T, TRIED_K, dim=1).indices.numpy()
    width, recall = widened_index(kind, made, scale, queries, best)
    return {"kind": kind, "scale": scale, "width": width, "recall": recall}


def make_index(kind: str, rows: Floats) -> Any:
    """FAISS's index of prepared vectors."""
    if len(rows) < SMALLEST:
        raise InputError(f"{len(rows):,} items are too few for an index {kind}; use exact, which is faster there")
    library, size = faiss(), rows.shape[1]
    if kind == "hnsw":
        made = library.IndexHNSWFlat(size, LINKS, library.METRIC_INNER_PRODUCT)
        made.hnsw.efConstruction = WIDTH_BUILDING
    else:
        made = library.IndexIVFFlat(library.IndexFlatIP(size), size, _cells(rows), library.METRIC_INNER_PRODUCT)
        made.cp.min_points_per_centroid, made.cp.niter = 1, 8
        made.train(rows[:: max(1, len(rows) // (50 * _cells(rows)))])
    made.add(rows)
    return made


def widened_index(kind: str, made: Any, scale: float, queries: Tensor, best: NDArray[Any]) -> tuple[int, float]:
    """How wide to search, and what share of the true best is found so."""
    return widened(
        lambda width: Index(kind, made, scale, width, 0.0).search(queries, 2 * TRIED_K)[0],
        best,
        NARROWEST[kind],
        made.ntotal if kind == "hnsw" else made.nlist,
    )


def widened(
    search: Callable[[int], NDArray[Any]], best: NDArray[Any], narrowest: int, widest: int
) -> tuple[int, float]:
    """The first width, doubled from the narrowest on, that finds `GOOD_RECALL` of the best; and the share it finds."""
    width = narrowest
    while True:
        pairs = zip(best, search(width), strict=True)
        share = float(np.mean([len(np.intersect1d(*pair)) / best.shape[1] for pair in pairs]))
        if share >= GOOD_RECALL or width >= widest:
            return width, share
        width = min(2 * width, widest)


def _cells(rows: Floats) -> int:
    return max(16, int(4 * len(rows) ** 0.5))


def read_index(about: dict[str, Any] | None, folder: Path) -> Index | None:
    """What `build_index` made."""
    return None if about is None else Index(found=faiss().read_index(str(folder / FILE)), **about)
