"""What every method answers, trained in epochs or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from torch import Tensor

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.settings import Settings

Scorer = Callable[[Tensor], Tensor]
"""Indices of users (b,) → their scores (b, items)."""
ScorerFamily = Callable[[Tensor], Iterator[Tensor]]
"""The same for several strengths of a correction at once: one block of scores after the other."""


ITSELF = "the method itself"


class Validation(Protocol):
    """What a method may ask of the validation split, parameters frozen: recall@20 with training pairs hidden."""

    def recall_of(self, method: Method) -> float:
        """The method as it scores now."""

    def recalls_of(self, family: Callable[[Tensor | None], ScorerFamily], n: int) -> list[float]:
        """Each of n strengths, in one pass; `family` takes the candidates (None = all items) like `scorer`."""


@dataclass(frozen=True)
class Vectors:
    """What an inner product ranks by."""

    queries: Callable[[Tensor], Tensor]
    """Indices of users (b,) → their vectors (b, d)."""
    items: Tensor
    """(n, d)"""


@dataclass(frozen=True)
class Histories:
    """Items taken by users unseen in training; row u of the scores is user u of the pairs."""

    pairs: Pairs
    n_users: int


class Method(ABC):
    """A way to score items for users, made from training pairs alone."""

    name: ClassVar[str]
    title: ClassVar[str]
    """What it does, in one line."""
    paper: ClassVar[str]
    version: ClassVar[int] = 1
    """Raised when a change moves the method's numbers, so that stored results of the old one are not reused."""
    settings_type: ClassVar[type[Settings]] = Settings
    grid: ClassVar[dict[str, tuple[object, ...]]] = {}
    """Which values of which settings a fair comparison tries, on validation."""
    wide: ClassVar[dict[str, tuple[object, ...]]] = {}
    """Values of further settings that a wide search (`dpaa tune`) tries; numbers mark out a range."""
    seeded: ClassVar[bool] = True
    """Whether the seed changes the result."""
    iterative: ClassVar[bool] = False
    """Whether the trainer runs epochs (then it is a `LightGCN`) or calls `fit` once."""
    assembled: ClassVar[bool] = False
    """Whether it is made of several trainings: then it is asked to `assemble` itself."""
    dial_rule: ClassVar[str] = ITSELF
    """How its `popularity_dial` comes about, in words."""

    def __init__(self, graph: BipartiteGraph, settings: Settings) -> None:
        self.graph = graph
        self.settings = settings

    def fit(self) -> None:
        """Learn in one go; only for methods that are not iterative."""
        raise NotImplementedError(f"{self.name} is trained in epochs")

    @abstractmethod
    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """A function from user indices to scores over `items` (all without argument).

        With `histories`, rows are those users, unseen in training, instead of the training users.
        """

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors | None:
        """The vectors whose inner product `scorer` gives, with its arguments; None where it ranks by anything else.

        The items' are the same with and without histories.
        """
        del items, histories
        return None

    @property
    def popularity_dial(self) -> float:
        """κ of the popularity dial (`dpaa.reranking.dial`) when training ends: 0, the method itself.

        A run keeps it in its manifest, where it may be changed (`dpaa.evaluation.dial_curve`).
        """
        return 0.0

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What `model.safetensors` holds."""

    @abstractmethod
    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Take back what `tensors` gave; ready to score afterwards."""

    @classmethod
    @abstractmethod
    def tensor_shapes(cls, graph: BipartiteGraph, settings: Settings) -> dict[str, tuple[int, ...]]:
        """The tensors a saved run must hold, with their shapes, so that a foreign file is refused before it is read."""

    def tune(self, validation: Validation) -> dict[str, float]:
        """Choose inference-time strengths on validation, parameters frozen; what was chosen goes to the manifest."""
        del validation
        return {}

    def item_vectors(self) -> Tensor | None:
        """Vectors whose cosine says how alike two items are, (n_items, d); None where the method has none."""
        return None

    def message_weights(self) -> list[tuple[str, Tensor]]:
        """Columns of `edges.parquet` beside the ids, each (n_edges,); empty where messages carry no weight."""
        return []
