"""The stage between scores and lists: `rerank(scores of candidates, users, k)`, a block of users at a time.

A re-ranker is a small frozen class whose fields are its parameters; a run's manifest keeps its name and parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from dpaa._text import name_and_values
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.kernels import top_k
from dpaa.methods._shared import items_of
from dpaa.methods.base import Histories, check_fields
from dpaa.plugins import origin_of
from dpaa.ranking.dial import dialled_lists
from dpaa.ranking.quotas import Picked
from dpaa.ranking.registry import RERANKERS

SWEPT = (
    *(-2.0, -1.5, -1.25, -1.0, -0.85, -0.7, -0.6, -0.5, -0.4, -0.3, -0.25, -0.2, -0.15, -0.1, -0.05),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
)
"""κ of the popularity dial that a search for the best trade-off tries, beside 0."""
T = TypeVar("T")


@dataclass(frozen=True)
class Candidates:
    """Items, users and popularity of a block of scores."""

    graph: BipartiteGraph
    items: Tensor | None
    """Item index of each column; None where the columns are all items."""
    histories: Histories | None = None
    """Where the users are unseen in training: their items; users then count within these."""
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def taken(self, users: Tensor) -> tuple[Tensor, Tensor]:
        """List what users took in training (or in `histories`).

        Parameters
        ----------
        users : (b,) indices

        Returns
        -------
        row of the block and item index of each pair, (pairs,) each
        """
        return self.once("taken", lambda: items_of(self.graph, self.histories)).entries(users)

    @property
    def popularity(self) -> Tensor:
        """Training count of each column's item, (columns,)."""
        return self.graph.item_degree if self.items is None else self.graph.item_degree[self.items]

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Compute what a re-ranker needs of all items for the first block of users, and keep it for the others.

        Parameters
        ----------
        key : under which the value is kept
        make : computes the value

        Returns
        -------
        the value
        """
        if key not in self._made:
            self._made[key] = make()
        value: T = self._made[key]
        return value


class Reranker(BaseModel):
    """Base of re-rankers: builds lists from scores; by default the k highest scores."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    name: ClassVar[str]
    title: ClassVar[str]
    """What it does, in one line."""
    paper: ClassVar[str] = "-"
    together: ClassVar[bool] = False
    """Whether lists depend on each other, so that all users must be ranked at once."""

    def dial(self, kappa: float) -> float:
        """Choose κ of the popularity dial over the scores that the re-ranker starts from.

        Parameters
        ----------
        kappa : κ of the model

        Returns
        -------
        κ to apply; as given unless the re-ranker sets its own
        """
        return kappa

    def rerank(self, scores: Tensor, users: Tensor, k: int, candidates: Candidates) -> Picked:
        """Choose the columns that make the list, the k highest scores unless overridden.

        Parameters
        ----------
        scores : (users, columns), −inf for what must not be recommended
        users : (users,) indices
        k : length of the lists
        candidates : what the columns are

        Returns
        -------
        scores and columns, best first, (users, k) each; no column twice, −1 (score −inf) where none is left
        """
        return top_k(scores, k)

    strengths: ClassVar[tuple[float, ...]] = ()
    """Values of `strength` that `dpaa debias` tries; none where it is not meant for that."""

    @classmethod
    def sweep(cls) -> tuple[Self, ...]:
        """Configure the re-ranker with each strength that `dpaa debias` tries.

        Returns
        -------
        re-rankers, one per strength
        """
        return tuple(cls(strength=value) for value in cls.strengths)  # type: ignore[call-arg]

    def rerank_lists(self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates) -> Picked:
        """Re-rank given lists, in which every user has candidates of their own.

        Parameters
        ----------
        scores, items : (users, n) fall along a list and are −inf where it has ended; item indices
        users : (users,) indices
        k : length of the new lists
        candidates : the graph behind them

        Returns
        -------
        scores, and positions in the given lists, (users, k) each
        """
        raise InputError(
            f"re-ranker {self.name} needs the scores of all items, which a file does not have; name a run instead"
        )

    def in_words(self) -> str:
        """Write the name and parameters as `parse_reranker` reads them.

        Returns
        -------
        such as `xquad,strength=0.5`
        """
        return ",".join([self.name, *(f"{key}={value}" for key, value in self._parameters().items())])

    def as_json(self) -> dict[str, Any]:
        """Describe the re-ranker for the manifest.

        Returns
        -------
        its name, parameters and origin
        """
        return {"name": self.name, "settings": self._parameters(), "origin": origin_of(type(self))}

    def _parameters(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


class Dial(Reranker):
    """The popularity dial (`dpaa.ranking.dial`), in place of the one that the run keeps."""

    name: ClassVar[str] = "dial"
    title: ClassVar[str] = "scores shifted towards popular items (above 0) or away from them (below 0)"
    paper: ClassVar[str] = "ours; see docs/dial.md"

    kappa: float = 0.0
    """κ: above 0 leans to popular items, below 0 away from them."""

    @classmethod
    def sweep(cls) -> tuple[Dial, ...]:
        """Configure the dial with several κ, densely below 0 and a few above."""
        return tuple(cls(kappa=kappa) for kappa in SWEPT)

    def dial(self, kappa: float) -> float:
        """Replace κ by the re-ranker's own."""
        return self.kappa

    def rerank_lists(self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates) -> Picked:
        """Turn the dial in units of the deviation of the listed items' scores."""
        return top_k(dialled_lists(scores, items, candidates.graph, self.kappa), k)


def reranked(reranker: Reranker, scores: Tensor, k: int, users: Tensor, candidates: Candidates) -> Picked:
    """Make the lists of a block and check them: the wanted shape, and nothing that must not be recommended."""
    with torch.no_grad():
        values, columns = reranker.rerank(scores, users, k, candidates)
    # It may be a plug-in: nothing that it returns is shown to anybody unchecked.
    shaped = columns.shape == values.shape == (len(scores), k)
    if not shaped or columns.min() < -1 or columns.max() >= scores.shape[1]:
        raise InputError(
            f"re-ranker {reranker.name} gave lists of shape {tuple(columns.shape)} with scores of shape "
            f"{tuple(values.shape)}; wanted {(len(scores), k)} for both, of columns from -1 to {scores.shape[1] - 1}"
        )
    columns = torch.where(torch.gather(scores, 1, columns.clamp(min=0)) == -torch.inf, -1, columns)
    ordered = columns.sort(dim=1).values
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise InputError(f"re-ranker {reranker.name} gave an item twice in one list; each may be there once")
    return values, columns


def parse_reranker(text: str) -> Reranker | None:
    """Read `NAME`, or `NAME,PARAMETER=VALUE,…`; `none` is no re-ranker."""
    name, params = name_and_values(text, f"the re-ranker {text!r}", "NAME,PARAMETER=VALUE, each once")
    return None if text.strip().lower() == "none" else make_reranker(name, params)


def make_reranker(wanted: str | type[Reranker], params: Mapping[str, object]) -> Reranker:
    """Make a re-ranker by its class, name or `package.module:Class`; anything wrong is one sentence."""
    kind = RERANKERS.find(wanted)
    return kind(**check_fields(kind, params, f"re-ranker {kind.name}"))


def stored_reranker(stored: object, source: object) -> Reranker | None:
    """Make the re-ranker that a manifest names, from those that are known here."""
    if stored is None:
        return None
    if not isinstance(stored, dict) or not isinstance(stored.get("name"), str):
        raise InputError(f"{source} does not say which re-ranker it uses; restore it or train again")
    params = stored.get("settings")
    if isinstance(params, dict) and "head_share" in params:  # its name until 0.1.0
        params = {("popular_mass" if name == "head_share" else name): value for name, value in params.items()}
    kind = RERANKERS.stored(stored["name"], stored.get("origin"), source)
    return make_reranker(kind, params if isinstance(params, dict) else {})
