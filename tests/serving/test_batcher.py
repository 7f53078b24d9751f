"""Batches form while the one before computes; what waits is bounded; nobody is forgotten."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from dpaa.serving._engine import Batcher, OverloadedError


class Slow:
    """Doubles numbers when it may, and remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go = threading.Event()

    def __call__(self, numbers: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(numbers))
        self.go.wait(10)
        return [ValueError(str(one)) if one < 0 else 2 * one for one in numbers]


@pytest.mark.parametrize("inline", [True, False])
def test_batches_form_while_the_one_before_computes(inline: bool) -> None:
    slow = Slow()
    sizes: list[int] = []
    if inline:
        slow.go.set()

    async def play() -> list[int]:
        batcher = Batcher(slow, 100, 8, lambda: inline, sizes.append)
        first = asyncio.ensure_future(batcher.ask(0))
        await asyncio.sleep(0.05)
        rest = [asyncio.ensure_future(batcher.ask(number)) for number in range(1, 21)]
        await asyncio.sleep(0)
        slow.go.set()
        return [one for (one,) in await asyncio.gather(first, *rest)]

    assert asyncio.run(play()) == [2 * number for number in range(21)]
    assert [len(batch) for batch in slow.batches] == sizes == [1, 8, 8, 4]


def test_the_queue_is_bounded_and_empties() -> None:
    slow = Slow()

    async def play() -> None:
        batcher = Batcher(slow, 3, 2)
        begun = asyncio.ensure_future(batcher.ask(1))
        await asyncio.sleep(0.05)
        waiting = [asyncio.ensure_future(batcher.ask(number)) for number in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await batcher.ask(9)
        slow.go.set()
        await asyncio.gather(begun, *waiting)
        assert await batcher.ask(5) == [10]

    asyncio.run(play())


def test_errors_go_to_whom_they_belong_and_the_next_batch_runs() -> None:
    slow = Slow()
    slow.go.set()

    async def play() -> None:
        batcher = Batcher(slow)
        answers = await asyncio.gather(*(batcher.ask(one) for one in (1, -2, 3)), return_exceptions=True)
        assert [str(one) for one in answers] == ["[2]", "-2", "[6]"]
        broken: Batcher[int, int] = Batcher(lambda _numbers: 1 / 0)  # type: ignore[arg-type,return-value]
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await broken.ask(1)

    asyncio.run(play())


def test_who_gave_up_is_not_computed_for() -> None:
    slow = Slow()

    async def play() -> None:
        batcher = Batcher(slow)
        first = asyncio.ensure_future(batcher.ask(1))
        await asyncio.sleep(0.05)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await batcher.ask(2)
        third = asyncio.ensure_future(batcher.ask(3))
        await asyncio.sleep(0)
        slow.go.set()
        assert await asyncio.gather(first, third) == [[2], [6]]

    asyncio.run(play())
    assert slow.batches == [[1], [3]]
