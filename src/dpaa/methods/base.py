"""The base class of every recommender: hyperparameters, metadata, scores and stored state.

Hyperparameters are the annotated fields of the class itself.  They always have a default; pydantic checks them when an
object is made.  What fitting creates is declared with `fitted()` or where it is assigned.
"""

from __future__ import annotations

import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, dataclass_transform, get_type_hints

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from torch import Tensor

from dpaa.data.pairs import Pairs
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph

if TYPE_CHECKING:
    from dpaa.runs.model import Model

Scorer = Callable[[Tensor], Tensor]
"""Indices of users (b,) → their scores (b, items)."""
ScorerFamily = Callable[[Tensor], Iterator[Tensor]]
"""The same for several strengths of a correction at once: one block of scores after the other."""
ScorerFamilies = Callable[[Tensor | None], ScorerFamily]
"""Items to score, all by default → their family."""
M = TypeVar("M", bound="Method")
Grid = Mapping[str, tuple[object, ...]]
Shapes = Mapping[str, tuple[str | int, ...]]
_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=True)


class _Fitted:
    """Marks an attribute that fitting sets; one with a shape is kept by runs."""

    def __init__(self, shape: tuple[str | int, ...]) -> None:
        self.shape = shape

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> _Fitted:
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r} before it is fitted")


def fitted(*shape: str | int, init: Literal[False] = False) -> Any:
    """Mark an annotated attribute that fitting sets; it is no hyperparameter.

    Parameters
    ----------
    shape : of a tensor that a run keeps: `users`, `items`, a hyperparameter's name or a number for each axis
    init : for type checkers

    Returns
    -------
    the mark
    """
    return _Fitted(shape)


@dataclass(frozen=True)
class Vectors:
    """Vectors whose inner products are the scores.

    Parameters
    ----------
    queries : indices of users (b,) → their vectors (b, d)
    items : (n, d) vectors of the items
    """

    queries: Callable[[Tensor], Tensor]
    items: Tensor

    def scores(self, index: Tensor) -> Tensor:
        """Scores of these users, (b, n)."""
        return self.queries(index) @ self.items.T


@dataclass(frozen=True)
class Histories:
    """Histories of users unseen in training.

    Parameters
    ----------
    pairs : (user, item) indices; row u of the scores is user u of the pairs
    n_users : how many users there are, those without pairs included
    """

    pairs: Pairs
    n_users: int


def method(
    name: str,
    *,
    title: str,
    paper: str = "-",
    grid: Grid | None = None,
    wide: Grid | None = None,
    default_candidate: bool = False,
    seeded: bool = True,
    version: int = 1,
) -> Callable[[type[M]], type[M]]:
    """Class decorator that names a method and describes it.

    Parameters
    ----------
    name : by which the command line, run folders and tables know it
    title : what it does, in one line
    paper : where it comes from
    grid : values of hyperparameters that a fair comparison tries on validation; inherited where it is not given
    wide : values of further hyperparameters that `dpaa tune` tries; numbers mark out a range
    default_candidate : whether `dpaa debias` tries it by default
    seeded : whether the seed changes the result
    version : raised when a change moves the method's numbers, so that stored results are not reused
    """

    def describe(kind: type[M]) -> type[M]:
        kind.name, kind.title, kind.paper, kind.version = name, title, paper, version
        kind.grid, kind.wide = kind.grid if grid is None else dict(grid), dict(wide or {})
        kind.default_candidate, kind.seeded = default_candidate, seeded
        return kind

    return describe


def _checked_fields(kind: type[Method]) -> type[BaseModel]:
    """Pydantic model of a class's hyperparameters: annotated attributes with a default."""
    fields: dict[str, Any] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        given = [k.__dict__[name] for k in kind.__mro__ if name in k.__dict__]
        declared = name.startswith("_") or getattr(hint, "__origin__", None) is ClassVar
        if declared or not given or isinstance(given[0], _Fitted):
            continue
        default = given[0]
        if not isinstance(default, FieldInfo):  # `layers: int = 2` in a subclass keeps the parent's bounds
            parent = next((value for value in given if isinstance(value, FieldInfo)), None)
            default = default if parent is None else FieldInfo.merge_field_infos(parent, default=default)
        fields[name] = (hint, default)
    checked: type[BaseModel] = create_model(kind.__name__, __config__=_CONFIG, **fields)
    checked()  # a default out of bounds is an error of the class, raised where it is written
    return checked


@dataclass_transform(kw_only_default=True, field_specifiers=(Field, fitted))
class Method(ABC):
    """A way to score items for users, fitted on training pairs alone."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    paper: ClassVar[str] = "-"
    version: ClassVar[int] = 1
    grid: ClassVar[dict[str, tuple[object, ...]]] = {}
    wide: ClassVar[dict[str, tuple[object, ...]]] = {}
    seeded: ClassVar[bool] = True
    default_candidate: ClassVar[bool] = False
    hyperparameters: ClassVar[type[BaseModel]]
    """Checks the hyperparameters; `model_fields` has their types, defaults and descriptions."""
    saved: ClassVar[Shapes] = {}
    """What a run keeps besides attributes that are `fitted` with a shape: name → shape, as there.

    That of the parent classes is inherited.  A name that is a hyperparameter too stands for the value that was chosen
    for it on validation, kept in `chosen_<name>`.
    """

    graph: BipartiteGraph = fitted()
    seed: int = Field(default=0, ge=0, lt=2**63, description="random seed; the same seed gives the same bits")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.hyperparameters = _checked_fields(cls)
        if "name" not in vars(cls):  # a class without the decorator, such as a user's own in a notebook
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower().replace("_", "-").strip("-")
            cls.title = (cls.__doc__ or cls.__name__).strip().splitlines()[0].rstrip(".")
            cls.default_candidate = False

    def __init__(self, **hyperparameters: Any) -> None:
        for name, value in check_fields(self.hyperparameters, hyperparameters, f"method {self.name}").items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={value!r}" for name, value in changed_params(self).items())
        return f"{type(self).__name__}({changed})"

    def get_params(self, exclude: Container[str] = ()) -> dict[str, Any]:
        """Hyperparameters by name, as in scikit-learn.

        Parameters
        ----------
        exclude : names to leave out

        Returns
        -------
        a new dict of hyperparameters and their values
        """
        return {name: getattr(self, name) for name in self.hyperparameters.model_fields if name not in exclude}

    def fit(self, data: Any, **options: Any) -> Model:
        """Fit a copy of this method on a dataset.

        Parameters
        ----------
        data : dataset, dataframe or SciPy matrix; early stopping looks at the validation split, the test split is not
            opened
        options : as in `dpaa.fit`

        Returns
        -------
        the fitted model
        """
        from dpaa.runs.fit import fit  # runs import methods, so this one import is late

        return fit(data, self, **options)

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """Function from indices of users to their scores: inner products of `vectors`, unless overridden.

        Parameters
        ----------
        items : indices of the items to score, all by default
        histories : score these users, unseen in training, instead of the training users

        Returns
        -------
        a function from (b,) user indices to (b, items) scores
        """
        vectors = self.vectors(items, histories)
        assert vectors is not None, f"{type(self).__name__} needs a method `vectors` or `scorer`"
        return vectors.scores

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors | None:
        """Return vectors whose inner products are the scores.

        Parameters
        ----------
        items : item indices; None = all
        histories : users unseen in training, instead of the training users

        Returns
        -------
        the vectors, the items' the same with and without histories; None where scores are no inner product
        """
        return None

    def item_vectors(self) -> Tensor | None:
        """Vectors whose cosine measures how similar two items are.

        Returns
        -------
        (n_items, d), or None where the method has none
        """
        return None

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the tensors of `state`, so that an untrusted file is refused before it is read.

        Returns
        -------
        name → shape
        """
        sizes: dict[Any, Any] = {"users": self.graph.n_users, "items": self.graph.n_items} | self.get_params()
        declared: dict[str, tuple[str | int, ...]] = {}
        for kind in reversed(type(self).__mro__):
            declared |= vars(kind).get("saved", {})
            fitted = {name: mark for name, mark in vars(kind).items() if isinstance(mark, _Fitted)}
            declared |= {name: mark.shape for name, mark in fitted.items() if mark.shape}
        return {name: tuple(sizes.get(size, size) for size in shape) for name, shape in declared.items()}

    def state(self) -> dict[str, Tensor]:
        """Tensors that a run keeps in `model.safetensors`.

        Returns
        -------
        name → float32 tensor
        """
        return {
            name: torch.as_tensor(attrgetter(self._attribute(name))(self), dtype=torch.float32)
            for name in self.state_shapes()
        }

    def load_state(self, state: dict[str, Tensor], copy: bool = True) -> None:
        """Restore what `state` returned; the method can score afterwards.

        Parameters
        ----------
        state : name → tensor
        copy : without a copy the tensors, mapped from a file perhaps, are read and never written
        """
        for name, tensor in state.items():
            # Copies are aligned: a matrix product rounds differently on other alignments.
            value = (tensor.to(self.graph.device, copy=True) if copy else tensor) if tensor.ndim else tensor.item()
            setattr(self, self._attribute(name), value)

    def _attribute(self, name: str) -> str:
        return f"chosen_{name}" if name in self.hyperparameters.model_fields else name

    def _attach(self, graph: BipartiteGraph) -> None:
        """Take the training graph; called once, before fitting or loading."""
        self.graph = graph


class ClosedForm(Method):
    """A method with a closed-form solution, computed without epochs."""

    @abstractmethod
    def learn(self) -> None:
        """Compute what `scorer` needs from `self.graph`."""


class ChosenAfterwards:
    """Mixin of methods with strengths that are chosen on validation, after training."""

    def choose(self, validation: Validation) -> dict[str, float]:
        """Choose the strengths, parameters frozen.

        Returns
        -------
        name → chosen value, for the manifest
        """
        raise NotImplementedError


class Randomised:
    """Mixin of methods that also learn from pairs of randomised exposure, which a dataset may carry."""

    def take(self, pairs: Pairs) -> None:
        """Keep what is needed of the pairs."""
        raise NotImplementedError


class Validation(Protocol):
    """Validation recall@20 with training pairs hidden, for methods that choose strengths afterwards."""

    def recall_of(self, method: Method) -> float:
        """Recall of the method as it scores now."""

    def recalls_of(self, family: ScorerFamilies, n: int, device: torch.device = ...) -> list[float]:
        """Recall at each of n strengths, in one pass; `family` takes the candidates (None = all items)."""


def attach(kind: Method, graph: BipartiteGraph) -> Any:
    """Copy a configured method onto a training graph.

    Parameters
    ----------
    kind : the configured method, which stays as it is
    graph : the training pairs

    Returns
    -------
    a method of the same class and hyperparameters that can be fitted or loaded
    """
    # A new object: the caller's stays as it was configured, and can be fitted again on other data.
    copied = type(kind)(**kind.get_params())
    copied._attach(graph)
    return copied


def changed_params(configured: Method) -> dict[str, Any]:
    """Hyperparameters that differ from their defaults."""
    fields = configured.hyperparameters.model_fields
    return {name: value for name, value in configured.get_params().items() if value != fields[name].default}


def check_fields(model: type[BaseModel], values: Mapping[str, object], owner: str) -> dict[str, Any]:
    """Check names and values against a pydantic model; text is parsed as the field's type.

    Parameters
    ----------
    model : whose fields are allowed
    values : name → value
    owner : such as `method ips`, for messages

    Returns
    -------
    every field with its checked value or default

    Raises
    ------
    InputError : with one sentence that names the field, the rule and the value
    """
    for name in values:
        if name not in model.model_fields:
            close = difflib.get_close_matches(name, model.model_fields, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has: {', '.join(model.model_fields)}"
            raise InputError(f"{owner} has no hyperparameter {name!r}; {hint}")
    try:
        checked = model(**values)
    except ValidationError as error:
        first, *rest = error.errors()
        field = first["loc"][0]
        messages = [first["msg"], *(other["msg"] for other in rest if other["loc"][0] == field)]
        wanted = " or ".join(dict.fromkeys(message[:1].lower() + message[1:] for message in messages))
        raise InputError(f"hyperparameter {field}: {wanted}, got {first['input']!r}") from None
    return {name: getattr(checked, name) for name in model.model_fields}
