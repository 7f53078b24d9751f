"""A run as a worker serves it: the model, look-ups of ids, and what is known of its items."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from typing import Any

import numpy as np
import polars as pl

from dpaa._text import json_text
from dpaa.data.ids import WHOLE_NUMBER, is_text
from dpaa.data.popularity import popular_items
from dpaa.errors import InputError
from dpaa.ranking.registry import RERANKERS
from dpaa.runs.model import Model
from dpaa.serving._lists import Ints, Listed, Parameters, Query, compute, taken_items

Id = int | str
MOST_SAMPLED = 200
"""Users whose lists the live page measures."""
KEPT_SAMPLES = 128
"""Values of the dial whose lists are kept; the page has 81 steps."""


class Snapshot:
    """One state of a run, ready to answer.

    Parameters
    ----------
    model : the loaded run
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        # Digest of the manifest: the same in every worker, another after another training.
        self.name = f"run-{hashlib.sha256(json_text(model.manifest).encode()).hexdigest()[:8]}"
        self.kappa = model.kappa()
        self.counts = model.method.graph.item_degree.numpy()  # (n_items,) training interactions
        self.popular = popular_items(self.counts.astype(np.float64))  # (n_items,); the others are niche
        self._samples: dict[tuple[float, int], tuple[Ints, list[Ints]]] = {}

    def rows(self, items: Ints) -> list[dict[str, Any]]:
        """`id` of each item, and `title` where there are titles."""
        ids, titles = self.model.item_ids, self.model.titles
        if titles is None:
            return [{"id": ids[item]} for item in items.tolist()]
        return [{"id": ids[item], "title": titles[item]} for item in items.tolist()]

    def listed_rows(self, listed: Listed) -> list[dict[str, Any]]:
        """Items with score and rank."""
        rows = self.rows(listed.items)
        for rank, (row, score) in enumerate(zip(rows, listed.scores.tolist(), strict=True), 1):
            row["score"], row["rank"] = score, rank
        return rows

    def popularity(self, items: Ints) -> list[dict[str, Any]]:
        """`interactions` and `group` of each item."""
        pairs = zip(self.counts[items].tolist(), self.popular[items].tolist(), strict=True)
        return [{"interactions": int(count), "group": "popular" if popular else "niche"} for count, popular in pairs]

    def explain(self, query: Query, items: Ints) -> list[dict[str, Any]]:
        """How popular each listed item is, and which item of the user's history is most like it."""
        reasons, model = self.popularity(items), self.model
        history = taken_items(model, query.user) if query.user is not None else query.history
        if history is not None and len(history) and model.method.item_vectors() is not None:
            nearest = (model.unit_vectors[items] @ model.unit_vectors[history.astype(np.int64)].T).argmax(dim=1)
            for reason, position in zip(reasons, nearest.tolist(), strict=True):
                reason["because"] = model.item_ids[int(history[position])]
        return reasons

    # ------------------------------------------------------------------ what the live page shows

    def sample(self, kappa: float, k: int) -> tuple[Ints, list[Ints]]:
        """Lists of evenly spaced users at κ, kept: the users, and the items of each."""
        if (kappa, k) in self._samples:
            return self._samples[kappa, k]
        warm = np.flatnonzero(self.model.method.graph.user_degree.numpy())
        users = warm[np.unique(np.linspace(0, len(warm) - 1, MOST_SAMPLED).round().astype(np.int64))]
        parameters = Parameters(k, kappa)
        lists = compute(self.model, [Query(parameters, user) for user in users.tolist()])
        sample = users, [one.items for one in lists if isinstance(one, Listed)]
        if len(self._samples) < KEPT_SAMPLES:
            self._samples[kappa, k] = sample
        return sample

    def audit(self, kappa: float, k: int) -> dict[str, float]:
        """Niche share, mean popularity and coverage of the sample's lists."""
        _, lists = self.sample(kappa, k)
        n_candidates = len(self.counts) if self.model.candidates is None else len(self.model.candidates)
        return {
            f"aplt@{k}": float(np.mean([np.mean(~self.popular[items]) for items in lists])),
            f"arp@{k}": float(np.mean([np.mean(self.counts[items]) for items in lists])),
            f"coverage@{k}": len(np.unique(np.concatenate(lists))) / n_candidates,
        }

    def about(self) -> dict[str, Any]:
        """The run, its dial and curve, and the re-rankers that a request can name."""
        model, own, names = self.model, self.model.reranker(), []
        for name in RERANKERS:
            try:
                names.append({"name": name, "title": RERANKERS[name].title})
            except InputError:  # an installed plug-in that does not load
                continue
        # The run of a debiasing is the folder `run` in the folder that the user named.
        folder = model.path.parent if model.path is not None and "debias" in model.manifest else model.path
        return {
            "run": self.name if folder is None else folder.name,
            "dataset": (model.manifest.get("dataset") or {}).get("name"),
            "method": model.method.name,
            "users": len(model.user_ids),
            "items": len(model.item_ids),
            "popular_items": int(self.popular.sum()),
            "columns": model.columns.names,
            "dial": {"kappa": self.kappa, "curve": self._curve()},
            "rerank": None if own is None else own.in_words(),
            "rerankers": names,
            "snapshot": self.name,
        }

    def _curve(self) -> list[dict[str, Any]] | None:
        """The dial's curve on validation; None where the run has none."""
        curve = self.model.dial_curve
        if curve is None:
            return None
        return [
            {"k": curve.k, **{name: None if np.isnan(value) else value for name, value in point.items()}}
            for point in curve.per_kappa
        ]


def find(ids: pl.Series, given: Id) -> int:
    """The index of an id, -1 for an unknown one; where ids are integers, text that spells one stands for it."""
    if is_text(ids) != isinstance(given, str):
        if not isinstance(given, str) or len(given) > 20 or not re.fullmatch(WHOLE_NUMBER, given):
            return -1
        given = int(given)
    row = bisect_left(ids, given)
    return row if row < len(ids) and ids[row] == given else -1


def find_all(ids: pl.Series, given: list[Id]) -> Ints:
    """Indices of the known ids, ascending and distinct; unknown ones cannot be recommended anyhow."""
    return np.array(sorted({row for one in given if (row := find(ids, one)) >= 0}), dtype=np.int64)


def search(ids: pl.Series, titles: pl.Series | None, words: str, most: int) -> Ints:
    """Rows whose id begins with these words or whose title has them, whatever its case."""
    hits = ids.cast(pl.String).str.starts_with(words)
    if titles is not None:
        hits |= titles.str.to_lowercase().str.contains(words.casefold(), literal=True).fill_null(value=False)
    return hits.arg_true().head(most).to_numpy()
