"""Settings: frozen, checked at the door, each with its meaning under the field.  A default is written only here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import dpaa
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
    """Learning rate of Adam."""
    batch_size: Literal["auto"] | Annotated[int, Field(ge=1)] = 2048
    """Triples per step; `auto` grows with the log (at most about 500 batches an epoch, never below 2,048)."""
    epochs: int = Field(default=1000, ge=1)
    """Maximum number of epochs."""
    patience: int = Field(default=50, ge=1)
    """Epochs without a better validation recall@20 before stopping."""
    l2: float = Field(default=1e-4, ge=0)
    """Weight of `½ ‖E‖²` on the batch's rows of layer 0."""
    sampler: Literal["user-uniform", "interaction"] = "user-uniform"
    """`user-uniform`: a random user, then one of the user's items; `interaction`: every interaction once an epoch."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; `auto` takes CUDA where torch finds it.  The CUDA path is untested."""
    threads: Literal["auto"] | Annotated[int, Field(ge=1)] = "auto"
    """Threads that share the column tiles; `auto` = one per core.  The number changes no bit of the result."""
    kernel: Literal["auto", "bag", "wide-bag", "csr"] = "auto"
    """Sparse product: `bag`, `wide-bag` or `csr`; `auto` follows a fixed rule, `dpaa train --calibrate` measures."""


S = TypeVar("S", bound=BaseModel)


def make_settings(kind: type[S], values: Mapping[str, object], owner: str, what: str = "method") -> S:
    """Settings from names and values (text is read as the field's type); anything wrong is one clear sentence."""
    for name in values:
        if name not in kind.model_fields:
            close = difflib.get_close_matches(name, kind.model_fields, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has: {', '.join(kind.model_fields)}"
            raise InputError(f"{what} {owner} has no setting {name!r}; {hint}")
    try:
        return kind(**values)  # checked by pydantic, that is what it is for
    except ValidationError as error:
        first, *rest = error.errors()
        setting = first["loc"][0]
        messages = [first["msg"], *(other["msg"] for other in rest if other["loc"][0] == setting)]
        wanted = " or ".join(dict.fromkeys(message[:1].lower() + message[1:] for message in messages))
        raise InputError(f"setting {setting}: {wanted}, got {first['input']!r}") from None


def first_error(error: ValidationError) -> str:
    """What is wrong with a file that pydantic has checked, and where."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    message = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    return f"{place}: {message}" if place else message
