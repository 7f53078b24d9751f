"""Approximate search in large catalogues: one FAISS index for every user and every κ of the dial.

It holds the dial's item vectors, prepared: the items' mean is subtracted, which moves all scores of a query by one
number, and the popularity coordinate is scaled to the deviation of the others, the query's by the inverse.  Rankings
stay, and neighbours lie evenly enough for a graph (HNSW) or for cells (IVF).  More is fetched than needed and scored
again exactly; what the index misses is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpaa.errors import InputError
from dpaa.serving.options import KINDS, needed

Floats = NDArray[np.float32]
FILE = "index.faiss"
LINKS, WIDTH_BUILDING = 32, 80
"""HNSW: links of a vector, and neighbours that are looked at when it is added."""
NARROWEST = {"hnsw": 64, "ivf": 8}
"""Where widening begins: neighbours looked at, or cells (of about 4 √n) searched, per query."""
GOOD_RECALL = 0.98
"""Share of the true best that an index must find, tried with queries of users when it is built."""
TRIED_K = 20
SMALLEST = 2_000
"""Items below which an index gains nothing."""


@dataclass(frozen=True, eq=False)
class Index:
    """Finds rows of the dial's table that may be among the best."""

    kind: str
    faiss_index: Any
    scale: float
    """Of the popularity coordinate."""
    width: int
    """Neighbours looked at (HNSW) or cells searched (IVF) per query."""
    recall: float
    """Of the best 20 at that width, measured when it was built."""

    def search(self, queries: Tensor, most: int) -> tuple[NDArray[np.int64], Floats]:
        """Rows that may be among the best, by approximate score.

        Parameters
        ----------
        queries : (b, d + 1) queries of the dial
        most : rows per query

        Returns
        -------
        rows (b, most), -1 where fewer were found, and their approximate scores (b, most), best first
        """
        scaled = queries.numpy().copy()
        scaled[:, -1] /= self.scale
        if self.kind == "hnsw":
            self.faiss_index.hnsw.efSearch = max(self.width, most)
        else:
            self.faiss_index.nprobe = self.width
        scores, rows = self.faiss_index.search(scaled, most)
        return rows, np.where(rows >= 0, scores, -np.inf).astype(np.float32)


def faiss() -> Any:
    """The FAISS module, set to one thread, since requests are what runs in parallel."""
    library = needed("faiss", "an index", "index")
    library.omp_set_num_threads(1)
    return library


def prepared(table: Tensor) -> tuple[Floats, float]:
    """The vectors that are put into an index.

    Parameters
    ----------
    table : (n, d + 1) item vectors of the dial

    Returns
    -------
    the prepared vectors (n, d + 1), and the scale of their last coordinate
    """
    rows = table.numpy() - table.mean(dim=0).numpy()
    spread = float(rows[:, :-1].std())
    own = float(rows[:, -1].std())
    scale = spread / own if own > 0 and spread > 0 else 1.0
    rows[:, -1] *= scale
    return np.ascontiguousarray(rows), scale


def build_index(kind: str, table: Tensor | None, queries: Tensor) -> Index | None:
    """An index of the dial's table, searched as wide as it needs for `GOOD_RECALL`.

    Parameters
    ----------
    kind : one of `KINDS`
    table : (n, d + 1) item vectors of the dial; None for a method that does not rank by an inner product
    queries : (q, d + 1) typical queries

    Returns
    -------
    the index; None for `exact`
    """
    if kind not in KINDS:
        raise InputError(f"there is no index {kind!r}; choose one of {', '.join(KINDS)}")
    if kind == "exact":
        return None
    if table is None:
        raise InputError(
            f"this method does not rank by an inner product, so an index {kind} cannot serve it; use exact"
        )
    rows, scale = prepared(table)
    built = make_index(kind, rows)
    best = torch.topk(queries @ table.T, TRIED_K, dim=1).indices.numpy()
    width, recall = widened_index(kind, built, scale, queries, best)
    return Index(kind, built, scale, width, recall)


def make_index(kind: str, rows: Floats) -> Any:
    """FAISS's index of prepared vectors.

    Parameters
    ----------
    kind : `hnsw` or `ivf`
    rows : (n, d + 1) from `prepared`

    Returns
    -------
    a `faiss.Index` for inner products
    """
    if len(rows) < SMALLEST:
        raise InputError(f"{len(rows):,} items are too few for an index {kind}; use exact, which is faster there")
    library, size = faiss(), rows.shape[1]
    if kind == "hnsw":
        index = library.IndexHNSWFlat(size, LINKS, library.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = WIDTH_BUILDING
    else:
        cells = max(16, int(4 * len(rows) ** 0.5))
        index = library.IndexIVFFlat(library.IndexFlatIP(size), size, cells, library.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid, index.cp.niter = 1, 8
        index.train(rows[:: max(1, len(rows) // (50 * cells))])
    index.add(rows)
    return index


def widened_index(kind: str, index: Any, scale: float, queries: Tensor, best: NDArray[Any]) -> tuple[int, float]:
    """How wide to search, and the recall that this reaches; arguments as in `Index` and `widened`."""
    return widened(
        lambda width: Index(kind, index, scale, width, 0.0).search(queries, 2 * TRIED_K)[0],
        best,
        NARROWEST[kind],
        index.ntotal if kind == "hnsw" else index.nlist,
    )


def widened(
    search: Callable[[int], NDArray[Any]], best: NDArray[Any], narrowest: int, widest: int
) -> tuple[int, float]:
    """The first width, doubled from the narrowest on, that finds `GOOD_RECALL` of the best.

    Parameters
    ----------
    search : width → rows (q, any) that are found
    best : (q, k) rows that should be found
    narrowest, widest : bounds of the width

    Returns
    -------
    the width, and the share of the best that it finds
    """
    width = narrowest
    while True:
        pairs = zip(best, search(width), strict=True)
        recall = float(np.mean([len(np.intersect1d(*pair)) / best.shape[1] for pair in pairs]))
        if recall >= GOOD_RECALL or width >= widest:
            return width, recall
        width = min(2 * width, widest)
