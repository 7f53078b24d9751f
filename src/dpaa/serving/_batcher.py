"""A queue whose queries are computed in batches."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

MOST_TOGETHER = 32
"""Queries of one batch."""
Q = TypeVar("Q")
A = TypeVar("A")


class OverloadedError(Exception):
    """The queue is full."""


class Batcher(Generic[Q, A]):
    """Collects queries that arrive during a batch into the next one; an idle service computes immediately.

    Parameters
    ----------
    compute : queries → an answer or an error for each
    most_waiting : queries that may wait
    inline : whether a batch is so short that it runs in the event loop, which saves the way to a thread and back
    observe : gets the size of every batch
    """

    def __init__(
        self,
        compute: Callable[[Sequence[Q]], Sequence[A | Exception]],
        most_waiting: int = 256,
        inline: bool = False,
        observe: Callable[[int], None] = lambda _size: None,
    ) -> None:
        self._compute, self._most_waiting, self._inline, self._observe = compute, most_waiting, inline, observe
        # Touched in the event loop alone, so that no lock is needed; only `compute` runs in the thread.
        self._waiting: deque[tuple[Q, asyncio.Future[A]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lists")
        self._busy = False

    def is_full(self) -> bool:
        """Whether the queue is full."""
        return len(self._waiting) >= self._most_waiting

    async def ask(self, *queries: Q) -> list[A]:
        """Answers of these queries; an `OverloadedError` at once if they are too many."""
        if len(self._waiting) + len(queries) > self._most_waiting:
            raise OverloadedError
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[A]] = [loop.create_future() for _ in queries]
        self._waiting.extend(zip(queries, futures, strict=True))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._begin)  # after all requests that arrived in this turn
        return await asyncio.gather(*futures)

    def _begin(self) -> None:
        batch: list[tuple[Q, asyncio.Future[A]]] = []
        while self._waiting and len(batch) < MOST_TOGETHER:
            entry = self._waiting.popleft()
            if not entry[1].done():  # a request that timed out is not computed
                batch.append(entry)
        self._busy = bool(batch)
        if not batch:
            return
        self._observe(len(batch))
        queries, futures = [entry[0] for entry in batch], [entry[1] for entry in batch]
        if self._inline:
            self._end(futures, self._compute(queries))
        else:
            computing = asyncio.get_running_loop().run_in_executor(self._thread, self._compute, queries)
            computing.add_done_callback(lambda done: self._end(futures, done.result()))

    def _end(self, futures: list[asyncio.Future[A]], answers: Sequence[A | Exception]) -> None:
        for future, answer in zip(futures, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        asyncio.get_running_loop().call_soon(self._begin)

    def close(self) -> None:
        """Release the thread; queries that still wait are not computed."""
        self._thread.shutdown(wait=False, cancel_futures=True)
