"""One thing a user may do wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mistake:
    kind: str
    """In words, as docs/errors.md lists it."""
    command: str
    """As it is typed, in the folder of `workshop.build`."""
    says: tuple[str, ...] | str
    """What the sentence must contain: file, place, value, remedy."""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Files that are made or replaced first."""
    spoil: Callable[[], object] | None = None
    """What is done first otherwise; the current directory is the folder."""
    progress: bool = False
    """Whether the mistake shows only on the way, after lines of progress."""
