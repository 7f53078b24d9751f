"""Settings: frozen, checked at the door, each with its meaning under the field.  A default is written only here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import dpaa
from dpaa._text import in_digits
from dpaa.errors import InputError


class Settings(BaseModel):
    """What every method has."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    method_type: ClassVar[Any] = None
    """The method that these settings configure."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    """Random seed; the same seed gives the same bits."""

    def fit(self, data: dpaa.Dataset, **how: Any) -> dpaa.Model:
        """`dpaa.fit` with the method configured like this."""
        return dpaa.fit(data, self, **how)

    def __repr_name__(self) -> str:
        return type(self).__name__ if self.method_type is None else self.method_type.__name__


class TrainedSettings(Settings):
    """What every method has that is trained in epochs."""

    embedding_size: int = Field(default=64, ge=1, le=65_536)
    """Columns of the embedding tables (D)."""
    layers: int = Field(default=3, ge=0, le=64)
    """Propagation layers (L); 0 is matrix factorisation."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Learning rate of Adam; of a schedule the largest."""
    learning_rate_schedule: Literal["inverse-sqrt", "constant"] = "constant"
    """After the warm-up: `inverse-sqrt` falls like `√(warmup_steps / step)`, `constant` stays."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps in which the learning rate rises from 0 to its full size, in a straight line; 0: none."""
    batch_size: Literal["auto"] | Annotated[int, Field(ge=1)] = 2048
    """Triples per step; `auto` grows with the log (at most about 500 batches an epoch, never below 2,048)."""
    epochs: int = Field(default=1000, ge=1)
    """Maximum number of epochs."""
    patience: int = Field(default=50, ge=1)
    """Epochs without a better validation recall@20 before stopping."""
    patience_steps: Literal["auto"] | Annotated[int, Field(ge=0)] = "auto"
    """Steps that must have passed without one as well; `auto` is 1.5 / learning_rate (1,500 at 0.001)."""
    minimum_steps: Literal["auto"] | Annotated[int, Field(ge=0)] = "auto"
    """Steps before early stopping may end training; `auto` is 1.5 / learning_rate (1,500 at 0.001)."""
    validation_steps: int = Field(default=6, ge=1)
    """Validation comes after an epoch that ends this many steps after the last validation; 1: after every epoch."""
    validation_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """Share of earlier validations in the recall@20 that early stopping compares; 0: the newest alone."""
    l2: float = Field(default=1e-4, ge=0)
    """Weight of `½ ‖E‖²` on the batch's rows of layer 0."""
    sampler: Literal["user-uniform", "interaction"] = "user-uniform"
    """`user-uniform`: a random user, then one of the user's items; `interaction`: every interaction once an epoch."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; `auto` takes CUDA where torch finds it, which was tried on a pretended device only."""
    threads: Literal["auto"] | Annotated[int, Field(ge=1)] = "auto"
    """Threads that share tiles of columns and rows; `auto` = one per core.  The number changes no bit of the result."""
    kernel: Literal["auto", "bag", "wide-bag", "csr"] = "auto"
    """Sparse product: `bag`, `wide-bag` or `csr`; `auto` follows a fixed rule, `dpaa train --calibrate` measures."""


NOT_YET_SETTINGS: dict[str, Any] = {
    "learning_rate_schedule": "constant",
    "warmup_steps": 0,
    "patience_steps": 0,
    "minimum_steps": 0,
    "validation_steps": 1,
    "validation_smoothing": 0.0,
}
"""How methods were trained before there were these settings: what runs and results that lack them were made with."""
PAPER_TRAINING: dict[str, Any] = {"learning_rate": 1e-3, "patience": 50} | NOT_YET_SETTINGS
"""The usual protocol of LightGCN's descendants, and the default here once: a constant learning rate, the best epoch."""

S = TypeVar("S", bound=BaseModel)


def with_settings_of_old(kind: type[Settings], values: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says of a method's settings, with those that did not exist when it was written."""
    return {**NOT_YET_SETTINGS, **values} if issubclass(kind, TrainedSettings) else dict(values)


def make_settings(kind: type[S], values: Mapping[str, object], owner: str, what: str = "method") -> S:
    """Settings from names and values (text is read as the field's type); anything wrong is one clear sentence."""
    for name in values:
        if name not in kind.model_fields:
            close = difflib.get_close_matches(name, kind.model_fields, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has: {', '.join(kind.model_fields)}"
            raise InputError(f"{what} {owner} has no setting {name!r}; {hint}")
    try:
        made = kind(**values)  # checked by pydantic, that is what it is for
    except ValidationError as error:
        first, *rest = error.errors()
        setting = first["loc"][0]
        messages = [first["msg"], *(other["msg"] for other in rest if other["loc"][0] == setting)]
        wanted = " or ".join(dict.fromkeys(message[:1].lower() + message[1:] for message in messages))
        raise InputError(f"setting {setting}: {wanted}, got {first['input']!r}") from None
    for name, value in values.items():
        if not in_digits(value, getattr(made, name)):
            raise InputError(f"setting {name}: a number is written in digits, got {value!r}")
    return made


def first_error(error: ValidationError) -> str:
    """What is wrong with a file that pydantic has checked, and where."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    message = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    return f"{place}: {message}" if place else message
