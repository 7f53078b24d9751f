"""A run as a worker serves it: the model, and the tables that answers are computed from."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpaa._text import json_text
from dpaa.data.attributes import TITLE, attributes_of
from dpaa.data.ids import WHOLE_NUMBER, is_text
from dpaa.data.inputs import open_table
from dpaa.data.popularity import popular_items
from dpaa.errors import InputError
from dpaa.evaluation.concentration import head
from dpaa.ranking.registry import RERANKERS
from dpaa.runs.model import Model, load
from dpaa.serving.index import Index, build_index
from dpaa.serving.options import MOST_BYTES, MOST_IDS, MOST_PEOPLE, ServeOptions

Id = int | str
Ints = NDArray[Any]
TRIED_USERS = 128
"""Users whose queries an index is tried with."""


@dataclass(frozen=True, eq=False)
class IdTable:
    """Ids of users or items in ascending order, row i = index i, and their titles."""

    ids: pl.Series
    titles: pl.Series | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, given: Id) -> int:
        """The index of an id, -1 for an unknown one; where ids are integers, text that spells one stands for it."""
        if is_text(self.ids) != isinstance(given, str):
            if not isinstance(given, str) or len(given) > 20 or not re.fullmatch(WHOLE_NUMBER, given):
                return -1
            given = int(given)
        row = bisect_left(self.ids, given)
        return row if row < len(self.ids) and self.ids[row] == given else -1

    def shown(self, rows: Iterable[int]) -> list[dict[str, Any]]:
        """`id` of each row, and `title` where there are titles."""
        if self.titles is None:
            return [{"id": self.ids[row]} for row in rows]
        return [{"id": self.ids[row], "title": self.titles[row]} for row in rows]

    def search(self, words: str, most: int) -> list[int]:
        """Rows whose id begins with these words, then those whose title has them, whatever its case."""
        rows = self.ids.cast(pl.String).str.starts_with(words).arg_true().head(most).to_list()
        if self.titles is not None and words and len(rows) < most:
            hits = self.titles.str.to_lowercase().str.contains(words.casefold(), literal=True).fill_null(value=False)
            rows += [row for row in hits.arg_true().head(most).to_list() if row not in set(rows)]
        return rows[:most]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One state of a run, ready to answer; nothing in it changes."""

    name: str
    """Digest of the run's manifest: the same in every worker, another after another training."""
    model: Model
    users: IdTable
    items: IdTable
    plain: Tensor | None
    """(n_candidates, d) item vectors whose inner products rank at κ = 0; None for a method that ranks otherwise."""
    dialled: Tensor | None
    """(n_candidates, d + 1): the same with the popularity coordinate."""
    unit: Tensor | None
    """(n_items, d) item vectors of length 1; None where items cannot be compared."""
    index: Index | None
    popular: NDArray[np.bool_]
    """(n_items,): the smallest set of items that has 80% of the interactions; the others are niche."""
    head: NDArray[np.bool_]
    """(n_items,): the fifth of the items with the most interactions."""
    counts: NDArray[np.float32]
    """(n_items,): training interactions."""

    @cached_property
    def kappa(self) -> float:
        """κ of the run."""
        return self.model.kappa()

    @cached_property
    def row_of(self) -> Ints | None:
        """(n_items,) row of each item in `plain` and `dialled`, -1 for no candidate; None where row i is item i."""
        if self.model.candidates is None:
            return None
        rows = np.full(len(self.items), -1, dtype=np.int64)
        rows[self.model.candidates] = np.arange(len(self.model.candidates))
        return rows

    def taken(self, user: int) -> NDArray[np.int32]:
        """Items of a user's training pairs."""
        pairs = self.model.train
        first, last = (int(np.searchsorted(pairs.user, np.int32(user), side)) for side in ("left", "right"))
        return pairs.item[first:last]

    def described(self, items: Ints) -> list[dict[str, Any]]:
        """`id`, `title`, `interactions` and `group` of these items."""
        rows = self.items.shown(items.tolist())
        for row, count, popular in zip(rows, self.counts[items].tolist(), self.popular[items], strict=True):
            row |= {"interactions": int(count), "group": "popular" if popular else "niche"}
        return rows

    def most_popular_taken(self, user: int, most: int) -> Ints:
        """Items of a user's training pairs, the most popular first."""
        taken = self.taken(user)
        return taken[np.argsort(-self.counts[taken], kind="stable")][:most]


def read_snapshot(options: ServeOptions) -> Snapshot:
    """Load and check the run, and prepare it; a run that cannot be served is an `InputError`."""
    return make_snapshot(load(options.run), options.index, options.titles)


def make_snapshot(model: Model, index: str = "exact", titles: Path | None = None) -> Snapshot:
    """Prepare a model.

    Parameters
    ----------
    model : of a run, or in memory
    index : how candidates are found, one of `KINDS`
    titles : a table of item_id and title to use instead of the run's own titles

    Returns
    -------
    the snapshot
    """
    vectors, dial = model.method.vectors(), model.prepared_dial
    plain, dialled = None if vectors is None else vectors.items, None if dial is None else dial.items
    if model.candidates is not None and plain is not None and dialled is not None:
        some = torch.from_numpy(np.asarray(model.candidates, dtype=np.int64))
        plain, dialled = plain.index_select(0, some), dialled.index_select(0, some)
    counts = model.method.graph.item_degree.numpy()
    return Snapshot(
        name=f"run-{hashlib.sha256(json_text(model.manifest).encode()).hexdigest()[:8]}",
        model=model,
        users=IdTable(model.user_ids),
        items=IdTable(model.item_ids, model.titles if titles is None else _read_titles(titles, model.item_ids)),
        plain=plain,
        dialled=dialled,
        unit=None if model.method.item_vectors() is None else model.unit_vectors,
        index=build_index(index, dialled, _typical_queries(model)) if index != "exact" else None,
        popular=popular_items(counts.astype(np.float64)),
        head=head(counts),
        counts=counts,
    )


def _typical_queries(model: Model) -> Tensor:
    """(q, d + 1) queries of some users at some κ, for an index to be tried with."""
    vectors, dial = model.method.vectors(), model.prepared_dial
    if vectors is None or dial is None:
        return torch.empty(0)
    some = np.linspace(0, len(model.user_ids) - 1, TRIED_USERS).astype(np.int64)
    plain = vectors.queries(torch.from_numpy(some))
    kappas = (0.0, -1.0, -0.5, 1.0)
    return torch.cat([dial.queries(plain[number :: len(kappas)], kappa) for number, kappa in enumerate(kappas)])


def _read_titles(file: Path, item_ids: pl.Series) -> pl.Series:
    """The title of each item, null where the file has none; items that the run does not know are left out."""
    attributes, _ = attributes_of(open_table(file), item_ids)
    if attributes.titles is None:
        raise InputError(f"{file} has no column {TITLE!r}; titles are a table of item_id and title")
    return attributes.titles


# ------------------------------------------------------------------ what /about says


def about(snapshot: Snapshot, options: ServeOptions | None = None) -> dict[str, Any]:
    """Method, sizes, the dial with its curve, re-rankers and limits; see `_models.About`."""
    model = snapshot.model
    dataset = model.manifest.get("dataset")
    name = dataset.get("name") if isinstance(dataset, dict) else None
    own = model.reranker()
    # The run of a debiasing is the folder `run` in the folder that the user named.
    folder = model.path.parent if model.path is not None and "debias" in model.manifest else model.path
    index = snapshot.index
    return {
        "run": folder.name if folder is not None else str(name or snapshot.name),
        "dataset": None if name is None else str(name),
        "method": model.method.name,
        "users": len(snapshot.users),
        "items": len(snapshot.items),
        "popular_items": int(snapshot.popular.sum()),
        "titles": snapshot.items.titles is not None,
        "similar": snapshot.unit is not None,
        "columns": model.columns.names,
        "dial": {"kappa": snapshot.kappa, "curve": _curve(model)},
        "rerank": None if own is None else own.in_words(),
        "rerankers": _rerankers(),
        "snapshot": snapshot.name,
        "index": None if index is None else {"kind": index.kind, "recall": index.recall},
        "limits": None
        if options is None
        else {"k": options.most_k, "people": MOST_PEOPLE, "ids": MOST_IDS, "bytes": MOST_BYTES},
    }


def _curve(model: Model) -> list[dict[str, Any]] | None:
    """The dial's curve on validation; None where the run has none or it is damaged."""
    try:
        curve = model.dial_curve
    except InputError:
        return None
    if curve is None:
        return None
    return [
        {"k": curve.k, **{name: None if np.isnan(value) else value for name, value in point.items()}}
        for point in curve.per_kappa
    ]


def _rerankers() -> list[dict[str, Any]]:
    """Those that a request can name, with their numeric parameters and the range of a slider for each."""
    kinds = {}
    for name in RERANKERS:
        try:
            kinds[name] = RERANKERS[name]
        except InputError:  # an installed plug-in that does not load
            continue
    return [
        {
            "name": name,
            "title": kind.title,
            "settings": [
                {"name": field, "default": info.default, "meaning": info.description or ""}
                | _slider(info.metadata, info.default)
                for field, info in kind.model_fields.items()
                if isinstance(info.default, int | float) and not isinstance(info.default, bool)
            ],
        }
        for name, kind in kinds.items()
    ]


def _slider(rules: list[Any], default: float) -> dict[str, float]:
    """Its ends are the parameter's own bounds, or just inside of those that it must not reach."""
    bounds = {edge: getattr(rule, edge) for rule in rules for edge in ("ge", "gt", "le", "lt") if hasattr(rule, edge)}
    low, high = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
    least: float = -2 if low is None else low
    most: float = high if high is not None else 2 if low is None else max(least + 1, 2 * default)
    inside = (most - least) / 20
    return {"least": least + (inside if "gt" in bounds else 0), "most": most - (inside if "lt" in bounds else 0)}
