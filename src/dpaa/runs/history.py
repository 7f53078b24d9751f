"""Lines of `history.jsonl`, which may be anybody's: of the types that training writes, or refused."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpaa._text import parse_json


class _Line(BaseModel):
    """Numbers within their bounds: one far outside would make a figure of any size.  Other keys may hold anything."""

    model_config = ConfigDict(strict=True, extra="allow")

    epoch: int = Field(ge=0, lt=2**31)
    loss: float | None
    valid: dict[str, float | None]
    learning_rate: float | None = Field(default=None, ge=0)
    """Of the epoch's last step, where it changes."""
    part: str = ""
    embedding_shift: float | None = Field(default=None, ge=0)
    pretrained_share: float | None = Field(default=None, ge=0, le=1)
    iiw_by_decile: list[Annotated[float, Field(ge=-0.01, le=2.01)] | None] | None = Field(
        default=None, min_length=10, max_length=10
    )
    """Means of 1 − cosine, rounded."""


def history_line(text: str) -> dict[str, Any]:
    """One line; a ValueError says what is wrong with it."""
    content = parse_json(text)
    if not isinstance(content, dict):
        raise ValueError("a line is no JSON object")
    try:
        _Line.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise ValueError(f"{where}: {message}" if where else message) from None
    return dict(content)
