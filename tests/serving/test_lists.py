"""Lists of a batch are those of `Model`, whatever they are computed together with."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from dpaa.ranking.reranker import Dial
from dpaa.runs.model import Model
from dpaa.serving._batcher import MOST_TOGETHER, Batcher, OverloadedError
from dpaa.serving._snapshot import NO_ITEMS, Listed, Parameters, Query, compute
from tests.serving.made import drawn_model

KAPPAS = (0.0, 0.0, -0.5, 1.0, -2.0)


def drawn_queries(model: Model, n: int, seed: int) -> Iterator[Query]:
    """Of all sources, with all kinds of parameters; some share theirs."""
    rng, n_items = np.random.default_rng(seed), len(model.item_ids)
    for number in range(n):
        some = np.unique(rng.integers(0, n_items, int(rng.integers(1, 9))))
        parameters = Parameters(
            k=int(rng.choice([3, 20])),
            kappa=float(rng.choice(KAPPAS)),
            reranker=Dial(kappa=-0.3) if number % 7 == 6 else None,
            exclude=NO_ITEMS if number % 3 else np.unique(rng.integers(0, n_items, 5)),
            allow=np.unique(rng.integers(0, n_items, 150)) if number % 5 == 4 else None,
        )
        user, history = (int(rng.integers(len(model.user_ids))), None) if number % 2 else (None, some)
        yield Query(parameters, user, history)


def check(model: Model, queries: list[Query], size: int = 32) -> None:
    """In batches of this size: the library's items in its order, scores to float tolerance."""
    for first in range(0, len(queries), size):
        batch = queries[first : first + size]
        for query, listed in zip(batch, compute(model, batch), strict=True):
            assert isinstance(listed, Listed), listed
            parameters, items = query.parameters, model.item_ids
            how: dict[str, Any] = {"popularity_dial": parameters.kappa, "rerank": parameters.reranker}
            how |= {"exclude": items.gather(parameters.exclude.tolist())}
            how |= {} if parameters.allow is None else {"items": items.gather(parameters.allow)}
            if query.user is None:
                frame = model.recommend_for(items.gather(query.history), parameters.k, **how)
            else:
                frame = model.recommend([model.user_ids[query.user]], parameters.k, **how)
            assert items.gather(listed.items).to_list() == frame["item_id"].to_list()
            assert listed.scores.tolist() == pytest.approx(frame["score"].to_list(), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(("n_items", "candidates"), [(1003, True), (5000, False), (150, True)])
def test_lists_equal_the_library(n_items: int, candidates: bool) -> None:
    model = drawn_model(n_items=n_items, candidates=candidates)
    for size in (1, 32):
        check(model, list(drawn_queries(model, 64, n_items)), size)


def test_one_bad_query_spoils_no_other() -> None:
    model, plain = drawn_model(n_items=150), Parameters(3)
    bad = Query(Parameters(3, exclude=np.arange(150)), 1)
    first, second, third = compute(model, [Query(plain, 0), bad, Query(plain, 2)])
    assert isinstance(first, Listed)
    assert "no item is left to recommend" in str(second)
    assert isinstance(third, Listed)


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
