"""Lists of a snapshot, several at a time: one matrix product answers a batch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpaa.data.pairs import Pairs
from dpaa.errors import InputError
from dpaa.graph.kernels import top_k
from dpaa.methods.base import Histories
from dpaa.ranking.quotas import Quota
from dpaa.ranking.rank import RankedBlock, Ranker, rank
from dpaa.ranking.reranker import Reranker
from dpaa.serving._snapshot import Ints, Snapshot
from dpaa.serving.index import Index

NO_ITEMS: Ints = np.empty(0, dtype=np.int64)
MOST_SCORES = 16_000_000
"""Scores that are held at once (64 MB)."""
BLOCK = 64
"""Columns whose maximum is kept: a list of k has its items in the k blocks with the largest maxima."""
SLACK = 2
"""An index is searched for so many times k."""
MOST_HIDDEN = 2_000
"""Users who have taken more are answered exactly: an index would have to find all of that first."""
MOST_REASONS = 3
"""Items of the history that an explanation names."""
NOTHING_LEFT = "no item is left to recommend; allow more items or exclude fewer"

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(frozen=True, eq=False)
class Ask:
    """One list that is wanted, in indices of its snapshot."""

    snapshot: Snapshot
    k: int
    kind: Literal["user", "history", "similar", "popular"] = "user"
    number: int = -1
    """The user, or with `similar` the item."""
    history: Ints = field(default_factory=lambda: NO_ITEMS)
    kappa: float = 0.0
    exclude: Ints = field(default_factory=lambda: NO_ITEMS)
    """Ascending, distinct."""
    allow: Ints | None = None
    """Ascending, distinct; None allows all candidates."""
    reranker: Reranker | None = None
    quotas: tuple[Quota, ...] = ()

    @property
    def taken(self) -> Ints:
        """Items that the person has and must not get."""
        return self.snapshot.taken(self.number) if self.kind == "user" else self.history

    @property
    def by_product(self) -> bool:
        """Whether a product with a table of the snapshot answers it; otherwise the library does, one by one."""
        if self.kind == "similar":
            return self.snapshot.unit is not None
        if self.kind == "popular" or self.reranker is not None or self.allow is not None or self.quotas:
            return False
        return self.snapshot.dialled is not None and len(self.exclude) < len(self.snapshot.dialled)


@dataclass(frozen=True, eq=False)
class Answer:
    """Item indices and scores, best first."""

    items: Ints
    scores: NDArray[np.float32]


def answer(asks: Sequence[Ask]) -> list[Answer | Exception]:
    """Answer a batch.

    Parameters
    ----------
    asks : of any kind, snapshot and κ

    Returns
    -------
    for each its list, or what is wrong with it; one bad question spoils no other
    """
    answers: dict[int, Answer | Exception] = {}
    groups: dict[tuple[int, str], list[int]] = {}
    for position, ask in enumerate(asks):
        key = (id(ask.snapshot), ask.kind if ask.by_product else f"alone {position}")
        groups.setdefault(key, []).append(position)
    for positions in groups.values():
        step = max(1, MOST_SCORES // len(asks[positions[0]].snapshot.items))
        for first in range(0, len(positions), step):
            part = positions[first : first + step]
            some = [asks[position] for position in part]
            try:
                answers |= zip(part, _by_product(some) if some[0].by_product else [_by_library(some[0])], strict=True)
            except Exception as error:  # belongs to these requests; the worker and the rest of the batch continue
                answers |= dict.fromkeys(part, error)
    return [answers[position] for position in range(len(asks))]


def answer_all(asks: Sequence[Ask], together: int = 32) -> list[Answer]:
    """Answers in batches of `together`; the first that fails is raised."""
    answers: list[Answer] = []
    for first in range(0, len(asks), together):
        for one in answer(asks[first : first + together]):
            if isinstance(one, Exception):
                raise one
            answers.append(one)
    return answers


# ------------------------------------------------------------------ by the library


def _by_library(ask: Ask) -> Answer:
    """One list as `Model.recommend` makes it."""
    snapshot, model = ask.snapshot, ask.snapshot.model
    k = min(ask.k, len(snapshot.items))
    if ask.kind == "similar":
        model.unit_vectors  # noqa: B018  # raises the error that says why there are none
    if ask.kind == "popular":
        ranker = Ranker(len(snapshot.items), torch.device("cpu"), None, _candidates(ask), ask.quotas)
        return _of_block(ranker.rank_popular(model.fallback, np.zeros(1, dtype=np.int64), k))
    user = max(ask.number, 0)
    masked = Pairs(np.full(len(ask.taken), user, np.int32), np.asarray(ask.taken, np.int32))
    blocks = rank(
        model.method,
        np.array([user]),
        k,
        masked=masked,
        candidates=_candidates(ask),
        histories=Histories(masked, 1) if ask.kind == "history" else None,
        dial=ask.kappa,
        prepared=model.prepared_dial if ask.kappa else None,
        reranker=ask.reranker,
        quotas=ask.quotas,
    )
    return _of_block(next(iter(blocks)))


def _candidates(ask: Ask) -> Ints | None:
    """Items that may be listed; None for all."""
    allowed = ask.snapshot.model.candidates if ask.allow is None else ask.allow
    if len(ask.exclude):
        some = np.arange(len(ask.snapshot.items)) if allowed is None else allowed
        allowed = some[~np.isin(some, ask.exclude)]
    if allowed is not None and not len(allowed):
        raise InputError(NOTHING_LEFT)
    return allowed


def _of_block(block: RankedBlock) -> Answer:
    listed = block.items[0] >= 0
    return Answer(block.items[0][listed], block.scores[0][listed])


# ------------------------------------------------------------------ by one product


def _by_product(asks: Sequence[Ask]) -> list[Answer]:
    """Lists of one kind and snapshot."""
    snapshot, ks = asks[0].snapshot, [ask.k for ask in asks]
    if asks[0].kind == "similar":
        assert snapshot.unit is not None
        items = torch.tensor([ask.number for ask in asks])
        return _best_of(snapshot.unit, snapshot.unit[items], ks, [one[None] for one in items.numpy()])
    hidden = [_rows(snapshot, np.concatenate([ask.taken, ask.exclude]).astype(np.int64)) for ask in asks]
    queries, table = _queries(asks)
    lists = _best_of(table, queries, ks, hidden, snapshot.index)
    candidates = snapshot.model.candidates
    return lists if candidates is None else [Answer(candidates[one.items], one.scores) for one in lists]


def _queries(asks: Sequence[Ask]) -> tuple[Tensor, Tensor]:
    """Query vectors, each at its own κ (the dial is one coordinate), and the table to multiply them with."""
    snapshot, histories = asks[0].snapshot, None
    index = torch.tensor([ask.number for ask in asks])
    if asks[0].kind == "history":
        owners = np.repeat(np.arange(len(asks)), [len(ask.history) for ask in asks])
        histories = Histories(Pairs.of(owners, np.concatenate([ask.history for ask in asks])), len(asks))
        index = torch.arange(len(asks))
    vectors, dial = snapshot.model.method.vectors(None, histories), snapshot.model.prepared_dial
    assert vectors is not None and dial is not None  # noqa: PT018
    assert snapshot.plain is not None and snapshot.dialled is not None  # noqa: PT018
    plain = vectors.queries(index)
    kappas = torch.tensor([ask.kappa for ask in asks])
    if snapshot.index is None and not kappas.any():
        return plain, snapshot.plain
    return torch.cat([plain, (kappas * dial.deviation(plain))[:, None]], dim=1), snapshot.dialled


def _rows(snapshot: Snapshot, items: Ints) -> Ints:
    """Rows of these items in the snapshot's tables; items that are no candidates have none."""
    if snapshot.row_of is None:
        return items
    rows = snapshot.row_of[items]
    return rows[rows >= 0]


def _best_of(
    table: Tensor, queries: Tensor, ks: Sequence[int], hidden: Sequence[Ints], index: Index | None = None
) -> list[Answer]:
    """The best rows for each query but the hidden ones; the index answers those that it can."""
    lists: dict[int, Answer] = {}
    if index is not None:
        lists = _from_index(index, table, queries, ks, hidden)
    rest = [row for row in range(len(ks)) if row not in lists]
    if rest:
        n = len(table)
        # Padded to whole blocks; fresh memory is -inf only where no score is written.
        scores = torch.empty(len(rest), -(-n // BLOCK) * BLOCK)
        scores[:, n:] = -torch.inf
        torch.mm(queries if len(rest) == len(ks) else queries[rest], table.T, out=scores[:, :n])
        flat = np.concatenate([hidden[row] + position * scores.shape[1] for position, row in enumerate(rest)])
        scores.view(-1).index_fill_(0, torch.from_numpy(flat), -torch.inf)
        values, columns = (one.numpy() for one in _best(scores, min(max(ks[row] for row in rest), n)))
        for position, row in enumerate(rest):
            length = min(ks[row], int((columns[position] >= 0).sum()))
            lists[row] = Answer(columns[position, :length], values[position, :length])
    return [lists[row] for row in range(len(ks))]


def _best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """`top_k` of rows of whole blocks: the same result, without sorting through all columns."""
    blocks = scores.view(len(scores), -1, BLOCK)
    if k >= blocks.shape[1]:
        return top_k(scores, k)
    chosen = top_k(blocks.amax(dim=2), k)[1]
    if (chosen < 0).any():  # hardly anything may be listed
        return top_k(scores, k)
    chosen = chosen.sort(dim=1).values  # so that ties go to the lower column here, too
    among = blocks.gather(1, chosen[:, :, None].expand(-1, -1, BLOCK)).flatten(1)
    values, positions = top_k(among, k)
    columns = chosen.gather(1, positions.clamp(min=0) // BLOCK) * BLOCK + positions % BLOCK
    return values, torch.where(positions >= 0, columns, -1)


def _from_index(
    index: Index, table: Tensor, queries: Tensor, ks: Sequence[int], hidden: Sequence[Ints]
) -> dict[int, Answer]:
    """Answers from the index, scored exactly; queries of which it finds too little are left out."""
    able = [row for row, rows in enumerate(hidden) if len(rows) <= MOST_HIDDEN]
    if not able:
        return {}
    lists = {}
    most = min(max(SLACK * ks[row] + len(hidden[row]) for row in able), len(table))
    for row, columns in zip(able, index.search(queries[able], most)[0], strict=True):
        columns = np.sort(columns[(columns >= 0) & ~np.isin(columns, hidden[row])])
        if len(columns) >= min(ks[row], len(table) - len(hidden[row])):
            values, positions = top_k(queries[row : row + 1] @ table[torch.from_numpy(columns)].T, ks[row])
            listed = positions[0].numpy()
            lists[row] = Answer(columns[listed[listed >= 0]], values[0].numpy()[listed >= 0])
    return lists


# ------------------------------------------------------------------ why an item is in a list


def explain(ask: Ask, listed: Answer) -> list[dict[str, Any]]:
    """How popular each item is, what the dial added to its score, and which items of the history it is like.

    Parameters
    ----------
    ask : the question
    listed : its answer

    Returns
    -------
    one `_models.Explanation` per listed item
    """
    snapshot, items = ask.snapshot, np.asarray(listed.items, dtype=np.int64)
    reasons = [{name: row[name] for name in ("interactions", "group")} for row in snapshot.described(items)]
    if ask.kind == "popular" or not len(items):
        return reasons
    history = np.asarray(ask.taken, dtype=np.int64)
    near: list[list[Any]] = [[] for _ in items]
    if snapshot.unit is not None and len(history):
        cosines = snapshot.unit[torch.from_numpy(items)] @ snapshot.unit[torch.from_numpy(history)].T
        best = torch.topk(cosines, min(MOST_REASONS, len(history)), dim=1).indices.numpy()
        near = [[snapshot.items.ids[int(item)] for item in history[row]] for row in best]
    for reason, because in zip(reasons, near, strict=True):
        reason["because"] = because
    dial, vectors = snapshot.model.prepared_dial, snapshot.model.method.vectors()
    if dial is not None and vectors is not None and ask.reranker is None and ask.kind == "user":
        deviation = float(dial.deviation(vectors.queries(torch.tensor([ask.number])))[0])
        parts = ask.kappa * deviation * dial.items[torch.from_numpy(items), -1]  # κ · sd_u · p_i
        for reason, part in zip(reasons, parts.tolist(), strict=True):
            reason["dial_part"] = part
    return reasons


# ------------------------------------------------------------------ batches


class OverloadedError(Exception):
    """As many questions wait as may wait."""


class Batcher(Generic[Q, A]):
    """Questions that arrive while a batch computes form the next one, so a quiet service never waits for company.

    Parameters
    ----------
    compute : questions → an answer or an error for each
    most_waiting : questions that may wait
    most_together : questions of one batch
    inline : whether a batch is so short that it runs in the event loop, which saves the way to a thread and back
    observe : gets the size of every batch
    """

    def __init__(
        self,
        compute: Callable[[Sequence[Q]], Sequence[A | Exception]],
        most_waiting: int = 256,
        most_together: int = 32,
        inline: Callable[[], bool] = lambda: False,
        observe: Callable[[int], None] = lambda _size: None,
    ) -> None:
        self._compute, self._inline, self._observe = compute, inline, observe
        self._most_waiting, self._most_together = most_waiting, most_together
        self._waiting: deque[tuple[Q, asyncio.Future[A]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answers")
        self._busy = False

    @property
    def waiting(self) -> int:
        """Number of questions that wait."""
        return len(self._waiting)

    def is_full(self) -> bool:
        """Whether no further question may wait."""
        return len(self._waiting) >= self._most_waiting

    async def ask(self, *questions: Q) -> list[A]:
        """Answers of these questions; an `OverloadedError` at once if they are too many."""
        if len(self._waiting) + len(questions) > self._most_waiting:
            raise OverloadedError
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[A]] = [loop.create_future() for _ in questions]
        self._waiting.extend(zip(questions, futures, strict=True))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._begin, loop)  # after all requests that arrived in this turn
        return await asyncio.gather(*futures)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        batch: list[tuple[Q, asyncio.Future[A]]] = []
        while self._waiting and len(batch) < self._most_together:
            entry = self._waiting.popleft()
            if not entry[1].done():  # a request that timed out is not computed
                batch.append(entry)
        if not batch:
            self._busy = False
            return
        self._observe(len(batch))
        questions, futures = [entry[0] for entry in batch], [entry[1] for entry in batch]
        if self._inline():
            self._end(loop, futures, self._attempt(questions))
        else:
            computing = loop.run_in_executor(self._thread, self._attempt, questions)
            computing.add_done_callback(lambda done: self._end(loop, futures, done.result()))

    def _attempt(self, questions: list[Q]) -> Sequence[A | Exception]:
        try:
            return self._compute(questions)
        except Exception as error:  # belongs to these requests; the next batch runs
            return [error] * len(questions)

    def _end(
        self, loop: asyncio.AbstractEventLoop, futures: list[asyncio.Future[A]], answers: Sequence[A | Exception]
    ) -> None:
        for future, one in zip(futures, answers, strict=True):
            if future.done():
                continue
            if isinstance(one, Exception):
                future.set_exception(one)
            else:
                future.set_result(one)
        loop.call_soon(self._begin, loop)

    def close(self) -> None:
        """Release the thread; questions that still wait are not computed."""
        self._thread.shutdown(wait=False, cancel_futures=True)
