"""Many questions to one table of item vectors, answered together, each as if it were alone, bit for bit.

One question is a product of a vector and the table (GEMV), limited by reading the table.  Several at once (GEMM) read
it once, but round otherwise in the last bit.  So a batch only finds who may be in each list: the first k and some more.
Those are scored again alone, and a bound on the rounding says whether anybody else could have been in the list; in the
rare case that it cannot be excluded, the question is answered alone.

A product over some rows of the table gives the bits of the product over all of them, but for the last rows, which the
kernel takes in another order.  So the last rows of the table always stand last in what is scored again, and its length
is that of the table modulo `LANES`.  Whether this holds on a machine is tried when a snapshot is made (`bits_hold`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpaa.graph.kernels import top_k

Ints = NDArray[Any]
LANES = 64
"""A multiple of what any kernel takes at a time."""
SMALLEST = 3 * LANES
"""Rows below which there is nothing to gain."""
MORE = 16
"""Fetched beyond k, so that equals at the cut are seen."""
BLOCK = 64
"""Columns whose maximum is kept: a list of k has its members in the k blocks with the largest maxima."""


@dataclass(frozen=True, eq=False)
class Question:
    """One vector to be held against a table."""

    vector: Tensor
    """(1, d)"""
    k: int
    hidden: Ints
    """Columns that must not be listed, such as what somebody has; they stay columns."""
    removed: Ints
    """Columns that are taken out of the table, ascending: the library scores the others alone."""


@dataclass(frozen=True, eq=False)
class Found:
    """A list: columns and scores, best first; as long as there was something to list."""

    columns: Ints
    scores: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Table:
    """Item vectors, one row for each column of the scores."""

    rows: Tensor
    """(n, d)"""
    batches: bool = True
    """Whether questions may be answered together (`bits_hold`)."""
    items: Ints | None = None
    """Item index of each row; None where row i is item i."""

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def row_of(self) -> Ints | None:
        """Row of each item, −1 where it has none; None where row i is item i."""
        if self.items is None:
            return None
        found = np.full(int(self.items.max()) + 1, -1, dtype=np.int64)
        found[self.items] = np.arange(len(self.items))
        return found

    def rows_of(self, items: Ints) -> Ints:
        """Rows of these items; those without one are left out."""
        if self.row_of is None:
            return np.asarray(items, dtype=np.int64)
        known = np.asarray(items, dtype=np.int64)
        known = known[known < len(self.row_of)]
        rows = self.row_of[known]
        return rows[rows >= 0]

    def items_of(self, rows: Ints) -> Ints:
        """Item index of each of these rows."""
        return rows if self.items is None else self.items[rows]

    @cached_property
    def longest(self) -> float:
        """Length of the longest row; an upper bound where rows are many."""
        return max((float(part.norm(dim=1).max()) for part in torch.split(self.rows, 65_536)), default=0.0)

    def alone(self, question: Question) -> Found:
        """By the library's own product over all rows that are left, and its own cut."""
        if question.k < 1:  # what is like the only item there is
            return Found(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))
        rows = self.rows
        left: Ints | None = None
        if len(question.removed):
            kept = np.ones(len(rows), dtype=bool)
            kept[question.removed] = False
            left = np.flatnonzero(kept)
            rows = rows.index_select(0, torch.from_numpy(left))
        scores = question.vector @ rows.T
        hidden = question.hidden
        if left is not None:
            at = np.searchsorted(left, hidden)
            hidden = at[(at < len(left)) & (left[np.minimum(at, len(left) - 1)] == hidden)]
        scores[0, torch.from_numpy(hidden)] = -torch.inf
        values, columns = top_k(scores, min(question.k, scores.shape[1]))
        found = columns[0].numpy()
        there = found >= 0
        found = found[there]
        return Found(found if left is None else left[found], values[0].numpy()[there])

    def near(self, questions: Sequence[Question], wide: Tensor) -> list[tuple[Ints, Ints]]:
        """Who may be listed, for several questions at once: columns and scores to rounding, best first.

        `wide` are the questions' vectors, (b, d).
        """
        n, b = len(self), len(questions)
        blocks = -(-n // BLOCK)
        width = blocks * BLOCK
        scores = _room(b, width)
        torch.mm(wide, self.rows.T, out=scores[:, :n])
        scores[:, n:] = -torch.inf
        out = [np.concatenate([one.hidden, one.removed]) + row * width for row, one in enumerate(questions)]
        scores.view(-1).index_fill_(0, torch.from_numpy(np.concatenate(out).astype(np.int64)), -torch.inf)
        most = min(max(one.k for one in questions) + MORE, n)
        in_blocks = scores.view(b, blocks, BLOCK)
        chosen = torch.topk(in_blocks.amax(dim=2), min(most, blocks), dim=1, sorted=False).indices
        among = torch.gather(in_blocks, 1, chosen[:, :, None].expand(-1, -1, BLOCK)).flatten(1)
        values, places = torch.topk(among, most, dim=1)
        columns = torch.gather(chosen, 1, places // BLOCK) * BLOCK + places % BLOCK
        return [(columns[row].numpy(), values[row].numpy()) for row in range(b)]

    def settled(self, question: Question, columns: Ints, about: Ints, sure: bool) -> Found:
        """The list from columns with their scores of a batch or of an index (`about`), best first.

        With `sure`, nobody else may be in the list, or the question is asked alone.
        """
        left = len(self) - len(question.removed)
        if left < SMALLEST:
            return self.alone(question)
        there = about > -np.inf
        whole = bool(there.all())
        if not whole:
            columns, about = columns[there], about[there]
        tail = self._last(question.removed)
        in_tail = columns >= tail[0]  # what is left behind its first row is in it
        some, late = columns[~in_tail], columns[in_tail]
        pad = np.full(-len(some) % LANES, tail[0])
        rows = self.rows.index_select(0, torch.from_numpy(np.concatenate([some, pad, tail])))
        scores = (question.vector @ rows.T)[0].numpy()
        listed, exact = some, scores[: len(some)]
        if len(late):
            listed = np.concatenate([some, late])
            exact = np.concatenate([exact, scores[len(some) + len(pad) + np.searchsorted(tail, late)]])
        order = np.lexsort((listed, -exact))[: question.k]
        if sure and whole and len(columns) < left:
            cut = exact[order[-1]] if len(order) == question.k else -np.inf
            if not cut - about[-1] > self.rounding * float(np.linalg.norm(question.vector[0].numpy())):
                return self.alone(question)
        return Found(listed[order], exact[order])

    def _last(self, removed: Ints) -> Ints:
        """The last rows that are left, ascending: as many as the rest is a multiple of `LANES` rows."""
        if not len(removed):
            return self._whole_tail
        n = len(self)
        most = LANES + (n - len(removed)) % LANES
        near = np.arange(max(0, n - most - len(removed)), n)
        return np.setdiff1d(near, removed, assume_unique=True)[-most:]

    @cached_property
    def _whole_tail(self) -> Ints:
        n = len(self)
        return np.arange(n - LANES - n % LANES, n)

    @cached_property
    def rounding(self) -> float:
        """How far two ways of computing a score can be apart, for a question of length 1."""
        return 4 * self.rows.shape[1] * 2.0**-24 * self.longest


def bits_hold(rows: Tensor, tries: int = 6) -> bool:
    """Whether scoring again alone gives the bits of the whole product, on this machine and for this table."""
    table, rng = Table(rows), np.random.default_rng(0)
    if len(table) < SMALLEST + tries:
        return False
    for number in range(tries):
        vector = rows[int(rng.integers(len(rows)))][None] * float(rng.uniform(0.5, 2))
        removed = np.unique(rng.integers(0, len(rows), number))
        question = Question(vector, 100, np.empty(0, dtype=np.int64), removed)
        alone = table.alone(question)
        some = np.union1d(alone.columns, rng.integers(0, len(rows), 30))
        some = np.setdiff1d(some, removed)
        again = table.settled(question, some, np.zeros(len(some)), sure=False)
        if not (np.array_equal(alone.columns, again.columns) and np.array_equal(alone.scores, again.scores)):
            return False
    return True


_ROOM: list[Tensor] = [torch.empty(0)]


def _room(rows: int, columns: int) -> Tensor:
    """Memory for scores that is used again: fresh pages cost more than the product.  One thread computes."""
    if _ROOM[0].numel() < rows * columns:
        _ROOM[0] = torch.empty(rows * columns)
    return _ROOM[0][: rows * columns].view(rows, columns)
