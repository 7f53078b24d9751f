"""How long the rest will take, told from what was done of the same kind, and not before some of it was."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dpaa.runs.progress import duration


@dataclass
class Pace:
    """Times the parts of a call by their kind."""

    clock: Callable[[], float] = time.monotonic
    _began: float = field(init=False)
    _took: dict[str, list[float]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """What is done in here is one of a kind; what is broken off does not count."""
        before = self.clock()
        yield
        self._took.setdefault(kind, []).append(self.clock() - before)

    def left(self, todo: Counter[str]) -> float | None:
        """Seconds for what is still to do: the mean of its kind so far; None where nothing is known of a kind."""
        if any(number and kind not in self._took for kind, number in todo.items()):
            return None
        return sum(number * sum(self._took[kind]) / len(self._took[kind]) for kind, number in todo.items() if number)

    def in_words(self, todo: Counter[str]) -> str:
        """`31 s so far, about 2 min left`."""
        seconds = self.left(todo)
        so_far = f"{duration(self.clock() - self._began)} so far"
        return so_far if seconds is None else f"{so_far}, about {duration(seconds)} left"
