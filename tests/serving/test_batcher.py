"""Batches form while the one before computes; what waits is bounded; nobody is forgotten."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from dpaa.serving._snapshot import MOST_TOGETHER, Batcher, OverloadedError


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
    slow, sizes, n = Slow(), list[int](), 2 * MOST_TOGETHER + 4
    if inline:
        slow.go.set()

    async def play() -> list[int]:
        batcher = Batcher(slow, 100, inline, sizes.append)
        first = asyncio.ensure_future(batcher.ask(0))
        await asyncio.sleep(0.05)
        rest = [asyncio.ensure_future(batcher.ask(number)) for number in range(1, n + 1)]
        await asyncio.sleep(0)
        slow.go.set()
        return [one for (one,) in await asyncio.gather(first, *rest)]

    assert asyncio.run(play()) == [2 * number for number in range(n + 1)]
    assert [len(batch) for batch in slow.batches] == sizes == [1, MOST_TOGETHER, MOST_TOGETHER, 4]


def test_the_queue_is_bounded_and_errors_go_to_whom_they_belong() -> None:
    slow = Slow()

    async def play() -> None:
        batcher = Batcher(slow, 3)
        begun = asyncio.ensure_future(batcher.ask(1))
        await asyncio.sleep(0.05)
        with pytest.raises(TimeoutError):  # who gave up is not computed for
            async with asyncio.timeout(0.05):
                await batcher.ask(7)
        waiting = [asyncio.ensure_future(batcher.ask(number)) for number in (-2, 3)]
        await asyncio.sleep(0)
        assert batcher.is_full()
        with pytest.raises(OverloadedError):
            await batcher.ask(9)
        slow.go.set()
        answers = await asyncio.gather(begun, *waiting, return_exceptions=True)
        assert [str(one) for one in answers] == ["[2]", "-2", "[6]"]
        assert await batcher.ask(5) == [10]

    asyncio.run(play())
    assert slow.batches == [[1], [-2, 3], [5]]
