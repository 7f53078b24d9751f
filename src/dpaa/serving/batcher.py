"""Questions wait together while a batch computes, and are answered together when it is done."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class OverloadedError(Exception):
    """As many wait as may wait."""


class Batcher(Generic[Q, A]):
    """One batch computes at a time; the next forms meanwhile, so a quiet service never waits for company.

    Short work (`inline`) is done between two turns of the event loop, which spares the way to a thread and back.
    """

    def __init__(
        self,
        compute: Callable[[Sequence[Q]], Sequence[A | Exception]],
        most_waiting: int = 256,
        most_together: int = 32,
        inline: Callable[[], bool] = lambda: False,
        watch: Callable[[int], None] = lambda _size: None,
    ) -> None:
        self._compute, self._inline, self._watch = compute, inline, watch
        self._most_waiting, self._most_together = most_waiting, most_together
        self._waiting: deque[tuple[Q, asyncio.Future[A]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answers")
        self._busy = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    async def ask(self, question: Q) -> A:
        """The answer; an `OverloadedError` at once where too many wait."""
        if len(self._waiting) >= self._most_waiting:
            raise OverloadedError
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        self._waiting.append((question, future))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._begin, loop)  # after all that have come in this turn
        return await future

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        batch: list[tuple[Q, asyncio.Future[A]]] = []
        while self._waiting and len(batch) < self._most_together:
            one = self._waiting.popleft()
            if not one[1].done():  # who has given up is not answered
                batch.append(one)
        if not batch:
            self._busy = False
            return
        self._watch(len(batch))
        questions = [question for question, _ in batch]
        if self._inline():
            self._end(loop, batch, self._tried(questions))
        else:
            done = loop.run_in_executor(self._thread, self._tried, questions)
            done.add_done_callback(lambda found: self._end(loop, batch, found.result()))

    def _tried(self, questions: list[Q]) -> Sequence[A | Exception]:
        try:
            return self._compute(questions)
        except Exception as error:  # told to those who asked; the next batch goes on
            return [error] * len(questions)

    def _end(
        self, loop: asyncio.AbstractEventLoop, batch: list[tuple[Q, asyncio.Future[A]]], found: Sequence[A | Exception]
    ) -> None:
        for (_, future), one in zip(batch, found, strict=True):
            if not future.done():
                if isinstance(one, Exception):
                    future.set_exception(one)
                else:
                    future.set_result(one)
        loop.call_soon(self._begin, loop)

    def close(self) -> None:
        """Wait for nobody: who still asks has been answered or told."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def all_or_first_error(found: list[Any]) -> list[Any]:
    """Answers of `gather(return_exceptions=True)`; the first error is raised when all have ended."""
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return found
