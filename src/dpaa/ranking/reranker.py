"""The stage between scores and lists: `rerank(scores of candidates, users, k)`, a block of users at a time.

A re-ranker is a small frozen class whose fields are its settings; a run keeps its name and settings in the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.cooccurrence import Lists
from dpaa.graph.kernels import top_k
from dpaa.methods._popularity import items_of
from dpaa.methods.base import Histories, Method, Scorer, check_fields
from dpaa.plugins import origin_of
from dpaa.ranking.dial import DialVectors, dialled
from dpaa.ranking.registry import RERANKERS

SWEPT = (
    *(-2.0, -1.5, -1.25, -1.0, -0.85, -0.7, -0.6, -0.5, -0.4, -0.3, -0.25, -0.2, -0.15, -0.1, -0.05),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
)
"""κ of the popularity dial that a search for the best trade tries, beside 0."""
T = TypeVar("T")
BLOCK_SCORES = 4_000_000
"""Scores over all items that are held at once where lists are made dense."""


@dataclass(frozen=True)
class Candidates:
    """What the columns of a block of scores are."""

    graph: BipartiteGraph
    items: Tensor | None
    """Item index of each column; None where the columns are all items."""
    histories: Histories | None = None
    """Where the users are unseen in training: their items; users then count within these."""
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def taken(self, users: Tensor) -> tuple[Tensor, Tensor]:
        """What these users took in training (or as `histories` say): row of the block and item index of each pair."""
        return self._histories.entries(users)

    @property
    def popularity(self) -> Tensor:
        """Training count of each column's item, (columns,)."""
        return self.graph.item_degree if self.items is None else self.graph.item_degree[self.items]

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What a re-ranker needs of all items: made for the first block of users, and kept for the others."""
        if key not in self._made:
            self._made[key] = make()
        found: T = self._made[key]
        return found

    @cached_property
    def _histories(self) -> Lists:
        return items_of(self.graph, self.histories)


class Reranker(BaseModel):
    """Changes what is recommended after scoring; without a change, the k highest scores."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    name: ClassVar[str]
    title: ClassVar[str]
    """What it does, in one line."""
    paper: ClassVar[str] = "-"

    def scorer(
        self,
        method: Method,
        kappa: float,
        items: Tensor | None,
        histories: Histories | None,
        prepared: DialVectors | None = None,
    ) -> Scorer:
        """What scores does it start from?  The method's, with the popularity dial where it stands."""
        return dialled(method, kappa, items, histories, prepared)

    def rerank(self, scores: Tensor, users: Tensor, k: int, candidates: Candidates) -> tuple[Tensor, Tensor]:
        """Which columns make the list?  Their scores and numbers, each (users, k), in the order of the list.

        Scores are (users, columns); what must not be recommended is −inf and stays out.  No column stands in a list
        twice; −1 (score −inf) where nothing is left.
        """
        del users, candidates
        return top_k(scores, k)

    strengths: ClassVar[tuple[float, ...]] = ()
    """Values of the setting `strength` that `dpaa debias` tries; none where it is not meant for that."""

    @classmethod
    def sweep(cls) -> tuple[Self, ...]:
        """The settings that `dpaa debias` tries."""
        return tuple(cls(strength=value) for value in cls.strengths)  # type: ignore[call-arg]

    def rerank_lists(
        self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates
    ) -> tuple[Tensor, Tensor]:
        """The same where every user has candidates of its own, a list of anybody's: scores, and places in the list.

        Scores and items (indices) are (users, places); scores fall along a list and are −inf where it has ended.  As
        it is, all items are candidates, and those that are in no list must not be recommended.
        """
        everything, n = replace(candidates, items=None), candidates.graph.n_items
        parts = []
        for part in torch.split(torch.arange(len(users), device=users.device), max(1, BLOCK_SCORES // max(n, 1))):
            ended = scores[part] == -torch.inf
            target = torch.where(ended, n, items[part])  # one column more, for what is not there
            dense = scores.new_full((len(part), n + 1), -torch.inf).scatter_(1, target, scores[part])
            place = target.new_full((len(part), n + 1), -1)
            place.scatter_(1, target, torch.arange(scores.shape[1], device=users.device).expand_as(target))
            values, columns = reranked(self, dense[:, :n].contiguous(), k, users[part], everything)
            parts.append((values, torch.where(columns < 0, -1, place.gather(1, columns.clamp(min=0)))))
        return torch.cat([values for values, _ in parts]), torch.cat([places for _, places in parts])

    def in_words(self) -> str:
        """Its name and settings, as `parse_reranker` reads them."""
        return ",".join([self.name, *(f"{key}={value}" for key, value in self.model_dump(mode="json").items())])

    def as_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {"name": self.name, "settings": self.model_dump(mode="json"), "origin": origin_of(type(self))}


class Dial(Reranker):
    """The popularity dial (`dpaa.ranking.dial`), in place of the one that the run keeps."""

    name: ClassVar[str] = "dial"
    title: ClassVar[str] = "scores leaned towards popular items, or away from them"
    paper: ClassVar[str] = "ours; see docs/dial.md"

    kappa: float = 0.0
    """κ: above 0 leans to popular items, below 0 away from them."""

    @classmethod
    def sweep(cls) -> tuple[Dial, ...]:
        """Closely below 0, where accuracy is traded for reach; a little above, where a log's accuracy may be."""
        return tuple(cls(kappa=kappa) for kappa in SWEPT)

    def scorer(
        self,
        method: Method,
        kappa: float,
        items: Tensor | None,
        histories: Histories | None,
        prepared: DialVectors | None = None,
    ) -> Scorer:
        """Scores with the dial at this κ."""
        del kappa
        return dialled(method, self.kappa, items, histories, prepared)


def scores_at(scores: Tensor, places: Tensor) -> Tensor:
    """Scores of these places (users, k), −inf where the place is −1."""
    return scores.gather(1, places.clamp(min=0)).masked_fill(places < 0, -torch.inf)


def reranked(
    reranker: Reranker, scores: Tensor, k: int, users: Tensor, candidates: Candidates
) -> tuple[Tensor, Tensor]:
    """The lists of a block, checked: of the shape asked for, and nothing that must not be recommended."""
    with torch.no_grad():
        values, columns = reranker.rerank(scores, users, k, candidates)
    if values.shape != (len(scores), k) or columns.shape != values.shape:
        raise InputError(
            f"re-ranker {reranker.name} gave lists of shape {tuple(columns.shape)} with scores of shape "
            f"{tuple(values.shape)}; wanted {(len(scores), k)} for both"
        )
    if columns.min() < -1 or columns.max() >= scores.shape[1]:
        raise InputError(f"re-ranker {reranker.name} gave a column that is none of the {scores.shape[1]:,} candidates")
    hidden = torch.gather(scores, 1, columns.clamp(min=0)) == -torch.inf
    columns = torch.where(hidden, -1, columns)
    ordered = columns.sort(dim=1).values
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise InputError(f"re-ranker {reranker.name} gave an item twice in one list; each may be there once")
    return values, columns


NONE = "none"


def parse_reranker(text: str) -> Reranker | None:
    """`NAME`, or `NAME,SETTING=VALUE,…`; `none` is no re-ranker."""
    if text.strip().lower() == NONE:
        return None
    return make_reranker(*_read(text))


def told_reranker(text: str, place: object) -> Reranker:
    """The same from a file's words: only what is built in, installed or named in the call is ever imported."""
    name, settings = _read(text)
    return _made(RERANKERS.stored(name, None, place), settings)


def _read(text: str) -> tuple[str, dict[str, Any]]:
    name, *words = text.split(",")
    settings: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key.strip() in settings:
            raise InputError(f"cannot read {word!r} of the re-ranker {text!r}; write NAME,SETTING=VALUE, each once")
        settings[key.strip()] = value.strip()
    return name, settings


def make_reranker(name: str, settings: Mapping[str, object]) -> Reranker:
    """By its name, or `package.module:Class`; anything wrong is one sentence."""
    return _made(RERANKERS.find(name), settings)


def described(name: str) -> dict[str, Any]:
    """One re-ranker as plain data, like a method in `dpaa.methods.registry`."""
    kind = RERANKERS.find(name)
    settings = {
        key: {"default": field.default, "meaning": " ".join((field.description or "").split())}
        for key, field in kind.model_fields.items()
    }
    return {"name": kind.name, "title": kind.title, "paper": kind.paper, "settings": settings}


def stored_reranker(stored: object, place: object) -> Reranker | None:
    """The one that a manifest names, found in the same way."""
    if stored is None:
        return None
    if not isinstance(stored, dict) or not isinstance(stored.get("name"), str):
        raise InputError(f"{place} does not say which re-ranker it uses; restore it or train again")
    settings = stored.get("settings")
    kind = RERANKERS.stored(stored["name"], stored.get("origin"), place)
    return _made(kind, settings if isinstance(settings, dict) else {})


def _made(kind: type[Reranker], settings: Mapping[str, object]) -> Reranker:
    return kind(**check_fields(kind, settings, f"re-ranker {kind.name}"))
