"""What every method answers, trained in epochs or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import torch
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

    def recalls_of(
        self, family: Callable[[Tensor | None], ScorerFamily], n: int, device: torch.device = ...
    ) -> list[float]:
        """Each of n strengths, in one pass; `family` takes the candidates (None = all items) like `scorer`.

        Both lie on `device`, which is the processor where nothing else is said.
        """


class Context(Protocol):
    """Who trains and validates for a method: a run, or a fit without a folder (`runs/stages.py`)."""

    def fit_once(self, method: Method) -> dict[str, Any]:
        """Let a method learn in one go."""

    def epochs(self, method: Any) -> dict[str, Any]:
        """Train a method in epochs, with early stopping and checkpoints."""


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
    paper: ClassVar[str] = "-"
    version: ClassVar[int] = 1
    """Raised when a change moves the method's numbers, so that stored results of the old one are not reused."""
    builds_on: ClassVar[tuple[str, ...]] = ()
    """Methods that are trained on the way to this one: where their numbers change, so do its own."""
    settings_type: ClassVar[type[Settings]] = Settings
    grid: ClassVar[dict[str, tuple[object, ...]]] = {}
    """Which values of which settings a fair comparison tries, on validation."""
    wide: ClassVar[dict[str, tuple[object, ...]]] = {}
    """Values of further settings that a wide search (`dpaa tune`) tries; numbers mark out a range."""
    seeded: ClassVar[bool] = True
    """Whether the seed changes the result."""
    default_candidate: ClassVar[bool] = False
    """Whether `dpaa debias` tries it unasked: strong, and different from the others."""
    dial_rule: ClassVar[str] = ITSELF
    """How its `popularity_dial` comes about, in words."""
    saved: ClassVar[Mapping[str, tuple[str | int, ...]]] = {}
    """Attributes that `model.safetensors` holds, with their shapes: `users`, `items`, a setting's name or a number.

    A number alone is `()`.  Those of the parent class are inherited.
    """
    needs_randomised: ClassVar[bool] = False
    """Whether it learns from pairs of randomised exposure too, which a dataset may carry."""
    pretrained_from: ClassVar[str] = "lightgcn"
    """The method that is trained first where `pretrained_layers` asks for one."""

    def __init__(self, graph: BipartiteGraph, settings: Settings) -> None:
        self.graph = graph
        self.settings = settings
        self.device = graph.edge_user.device

    def __init_subclass__(cls) -> None:
        if "settings_type" in vars(cls) and "method_type" not in vars(cls.settings_type):
            cls.settings_type.method_type = cls  # the first to name them: who derives from it takes nothing over

    # ------------------------------------------------------------------ learning

    def train(self, context: Context) -> dict[str, Any]:
        """Learn, by what the context offers; what is returned goes to the manifest."""
        return context.fit_once(self)

    def fit(self) -> None:
        """Learn in one go; only for methods without epochs."""
        raise NotImplementedError(f"{self.name} is trained in epochs")

    def tune(self, validation: Validation) -> dict[str, float]:
        """Choose inference-time strengths on validation, parameters frozen; what was chosen goes to the manifest."""
        del validation
        return {}

    def pretrained_layers(self) -> int | None:
        """How many layers beyond layer 0 of a model trained before are needed; None where none is."""
        return None

    def take_randomised(self, pairs: Pairs) -> None:
        """What is kept of the pairs of randomised exposure, where they are needed."""
        raise NotImplementedError(f"{self.name} uses no randomised pairs")

    @property
    def validation_overlap(self) -> Literal["drop", "mask", "keep"]:
        """How early stopping treats validation pairs that are training pairs too: neither ranked nor counted."""
        return "drop"

    # ------------------------------------------------------------------ scoring

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

    def item_vectors(self) -> Tensor | None:
        """Vectors whose cosine says how alike two items are, (n_items, d); None where the method has none."""
        return None

    def message_weights(self) -> list[tuple[str, Tensor]]:
        """Columns of `edges.parquet` beside the ids, each (n_edges,); empty where messages carry no weight."""
        return []

    # ------------------------------------------------------------------ what a run keeps

    def saved_shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors a run must hold, with their shapes, so that a foreign file is refused before it is read."""
        sizes = {"users": self.graph.n_users, "items": self.graph.n_items} | self.settings.model_dump()
        declared: dict[str, tuple[str | int, ...]] = {}
        for kind in reversed(type(self).__mro__):
            declared |= kind.__dict__.get("saved", {})
        return {
            name: tuple(size if isinstance(size, int) else sizes[size] for size in shape)
            for name, shape in declared.items()
        }

    def tensors(self) -> dict[str, Tensor]:
        """What `model.safetensors` holds: every attribute that is `saved`, as float32."""
        return {name: torch.as_tensor(getattr(self, name), dtype=torch.float32) for name in self.saved_shapes()}

    def tensors_to_score(self) -> dict[str, Tensor]:
        """Those of `tensors` without which it could not score; `adopt` takes them."""
        return self.tensors()

    def adopt(self, tensors: dict[str, Tensor]) -> None:
        """Ready to score with these very tensors, which may be mapped from a file: they are read, never written."""
        for name, tensor in tensors.items():
            setattr(self, name, tensor if tensor.ndim else tensor.item())

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Take back what `tensors` gave; ready to score afterwards."""
        for name, tensor in tensors.items():
            # Copies: a file's tensors lie anywhere, and a matrix product rounds differently on other alignments.
            setattr(self, name, tensor.to(self.device, copy=True) if tensor.ndim else tensor.item())
