"""The run served by a worker: lists for batches of requests, id look-ups, item attributes."""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from dpaa._text import json_text
from dpaa.data.ids import WHOLE_NUMBER, Ints, is_text
from dpaa.data.pairs import Pairs, popular_items
from dpaa.errors import InputError
from dpaa.methods.base import Histories
from dpaa.ranking.quotas import Quota
from dpaa.ranking.rank import RankedBlock, Ranker, rank
from dpaa.ranking.registry import RERANKERS
from dpaa.ranking.reranker import Reranker, stored_reranker
from dpaa.runs.model import Model

NO_ITEMS: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Parameters:
    """Options shared by all lists of a request; items are distinct ascending indices."""

    k: int
    kappa: float = 0.0
    reranker: Reranker | None = None
    exclude: Ints = field(default_factory=lambda: NO_ITEMS)
    allow: Ints | None = None
    """None allows all candidates of the run."""
    quotas: tuple[Quota, ...] = ()

    @cached_property
    def group(self) -> Hashable:
        """Queries of equal groups are ranked in one call; requests with filters keep to themselves."""
        filtered = len(self.exclude) or self.allow is not None or self.quotas
        return id(self) if filtered else (self.k, self.kappa, self.reranker)


class Query(NamedTuple):
    """One list: of a user with training pairs, of a history, or, with neither, the most popular items."""

    parameters: Parameters
    user: int | None = None
    history: Ints | None = None

    @property
    def source(self) -> str:
        """Where the list comes from."""
        return "model" if self.user is not None else "popularity" if self.history is None else "history"


class Listed(NamedTuple):
    """Item indices and scores, best first."""

    items: Ints
    scores: NDArray[np.float32]


def compute(model: Model, queries: Sequence[Query]) -> list[Listed | Exception]:
    """Answer a batch, one call of `rank` for the queries of each group.

    Parameters
    ----------
    model : the run
    queries : with any parameters

    Returns
    -------
    for each its list, or what is wrong with it; one bad query spoils no other
    """
    groups: dict[Hashable, list[int]] = {}
    for position, query in enumerate(queries):
        groups.setdefault((query.source, query.parameters.group), []).append(position)
    answers: dict[int, Listed | Exception] = {}
    for positions in groups.values():
        try:
            answers |= zip(positions, _rank(model, [queries[position] for position in positions]), strict=True)
        except Exception as error:  # belongs to these requests; the worker and the rest of the batch continue
            answers |= dict.fromkeys(positions, error)
    return [answers[position] for position in range(len(queries))]


def taken_items(model: Model, user: int) -> NDArray[np.int32]:
    """Items of a user's training pairs."""
    pairs = model.train
    first, last = (int(np.searchsorted(pairs.user, np.int32(user), side)) for side in ("left", "right"))
    return pairs.item[first:last]


def _rank(model: Model, queries: Sequence[Query]) -> list[Listed]:
    """Rank the lists of one group."""
    parameters, source = queries[0].parameters, queries[0].source
    n_items, k, hidden = len(model.item_ids), min(parameters.k, len(model.item_ids)), parameters.exclude
    candidates = model.candidates if parameters.allow is None else parameters.allow
    plain = candidates is None and parameters.reranker is None and not parameters.quotas
    if len(hidden) and not (plain and source != "popularity" and len(hidden) < n_items):
        # As the library does it: re-rankers look at the candidates.  Hiding scores gives the same plain lists sooner.
        some = np.arange(n_items) if candidates is None else candidates
        candidates, hidden = some[~np.isin(some, hidden)], NO_ITEMS
    if candidates is not None and not len(candidates):
        raise InputError("no item is left to recommend; allow more items or exclude fewer")
    if source == "popularity":
        ranker = Ranker(n_items, torch.device("cpu"), None, candidates, parameters.quotas)
        return _listed([ranker.rank_popular(model.fallback, np.zeros(len(queries), dtype=np.int64), k)])
    masked, histories = model.train, None
    users = np.array([query.user for query in queries]) if source == "model" else np.arange(len(queries))
    if source == "history":
        masked = _pairs(users, [query.history for query in queries])
        histories = Histories(masked, len(queries))
    if len(hidden):
        taken = [query.history if query.user is None else taken_items(model, query.user) for query in queries]
        masked = _pairs(users, [np.concatenate([some, hidden]) for some in taken])
    blocks = rank(
        model.method,
        users,
        k,
        masked=masked,
        candidates=candidates,
        histories=histories,
        dial=parameters.kappa,
        prepared=model.prepared_dial if parameters.kappa else None,
        reranker=parameters.reranker,
        quotas=parameters.quotas,
    )
    return _listed(blocks)


def _pairs(users: Ints, items: Sequence[Any]) -> Pairs:
    return Pairs.of(np.repeat(users, [len(some) for some in items]), np.concatenate(items))


def _listed(blocks: Any) -> list[Listed]:
    ranked: Sequence[RankedBlock] = list(blocks)
    return [
        Listed(items[items >= 0], scores[items >= 0])
        for block in ranked
        for items, scores in zip(block.items, block.scores, strict=True)
    ]


Id = int | str
MOST_SAMPLED = 200
"""Users whose lists the live page measures."""
KEPT_SAMPLES = 128
"""Values of the dial and re-rankers whose lists are kept; the page's dial has 81 steps."""


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
        self._samples: dict[Hashable, tuple[Ints, list[Ints]]] = {}

    def rows(self, items: Ints) -> list[dict[str, Any]]:
        """`id` of each item, and `title` where there are titles."""
        ids, titles = self.model.item_ids, self.model.titles
        if titles is None:
            return [{"id": ids[item]} for item in items.tolist()]
        return [{"id": ids[item], "title": titles[item]} for item in items.tolist()]

    def listed_rows(self, listed: Listed) -> list[dict[str, Any]]:
        """Items with score and rank."""
        scored = zip(self.rows(listed.items), listed.scores.tolist(), strict=True)
        return [row | {"score": score, "rank": rank} for rank, (row, score) in enumerate(scored, 1)]

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

    def sample(self, parameters: Parameters) -> tuple[Ints, list[Ints]]:
        """Lists of evenly spaced users, kept: the users, and the items of each."""
        if parameters.group in self._samples:
            return self._samples[parameters.group]
        warm = np.flatnonzero(self.model.method.graph.user_degree.numpy())
        users = warm[np.unique(np.linspace(0, len(warm) - 1, MOST_SAMPLED).round().astype(np.int64))]
        lists = compute(self.model, [Query(parameters, user) for user in users.tolist()])
        if isinstance(lists[0], Exception):  # all of them: they are ranked in one call
            raise lists[0]
        sample = users, [answer.items for answer in lists if isinstance(answer, Listed)]
        if len(self._samples) < KEPT_SAMPLES:  # never more, whatever values requests come up with
            self._samples[parameters.group] = sample
        return sample

    def audit(self, parameters: Parameters) -> dict[str, float]:
        """Niche share, mean popularity and coverage of the sample's lists."""
        (_, lists), k = self.sample(parameters), parameters.k
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
                kind = RERANKERS[name]
            except InputError:  # an installed plug-in that does not load
                continue
            strength = getattr(kind.model_fields.get("strength"), "default", None)
            strength = strength if isinstance(strength, float) else None  # the page has no slider then
            names.append({"name": name, "title": kind.title, "strength": strength})
        # The run of a debiasing is the folder `run` in the folder that the user named.
        folder = model.path.parent if model.path is not None and "debias" in model.manifest else model.path
        return {
            "run": self.name if folder is None else folder.name,
            "dataset": model.entry("dataset").get("name"),
            "method": model.method.name,
            "users": len(model.user_ids),
            "items": len(model.item_ids),
            "popular_items": int(self.popular.sum()),
            "columns": model.columns.names,
            "dial": {"kappa": self.kappa, "curve": self._curve()},
            "rerank": None if own is None else own.in_words(),
            "rerankers": names,
            "choice": self._choice(),
            "snapshot": self.name,
        }

    def _choice(self) -> dict[str, Any] | None:
        """Describe what a choice of `dpaa debias` replaced, if this run can make those lists; None for other runs.

        Where another model was the baseline, the lists before are this model's with dial 0 and no re-ranker.
        """
        stored: Any = self.model.manifest.get("debias")
        try:
            base, chosen, sentences = stored["base"], stored["chosen"], [*stored["sentences"]]
            before = {"name": base["name"], "dial": self.model.kappa(base["popularity_dial"]), "rerank": "none"}
            metric = next((name for name in base["metrics"] if name.startswith("ndcg@")), None)
            if base["model"] != chosen["model"]:
                before, metric = {"name": chosen["model"], "dial": 0.0, "rerank": "none"}, None
            elif own := stored_reranker(base["rerank"], self.name):
                before["rerank"] = own.in_words()
            values = [point["metrics"].get(metric) for point in (base, chosen)]
            accuracy = None if None in values else {"metric": metric, "values": values}
            return {"before": before, "after": chosen["name"], "accuracy": accuracy, "sentences": sentences}
        except (AttributeError, KeyError, TypeError, InputError):  # an older format, or a plug-in that is not installed
            return None

    def _curve(self) -> list[dict[str, Any]] | None:
        """The dial's curve on validation; None where the run has none."""
        curve = self.model.dial_curve
        if curve is None:
            return None
        return [
            {"k": curve.k, **{name: None if np.isnan(value) else value for name, value in vars(point).items()}}
            for point in curve.points
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
    return np.array(sorted({row for id_ in given if (row := find(ids, id_)) >= 0}), dtype=np.int64)


def search(ids: pl.Series, titles: pl.Series | None, words: str, most: int) -> Ints:
    """Rows whose id begins with these words or whose title has them, whatever its case."""
    hits = ids.cast(pl.String).str.starts_with(words)
    if titles is not None:
        hits |= titles.str.to_lowercase().str.contains(words.casefold(), literal=True).fill_null(value=False)
    return hits.arg_true().head(most).to_numpy()
