"""Top-k lists over the candidates with some pairs left out, block by block; nothing per user in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpaa.data.ids import Ints, Mask
from dpaa.data.pairs import Pairs, positions_within
from dpaa.errors import InputError
from dpaa.graph.kernels import top_k
from dpaa.methods.base import Histories, Method
from dpaa.ranking.dial import DialVectors, dialled
from dpaa.ranking.quotas import Pick, Quota, within
from dpaa.ranking.reranker import Candidates, Reranker, reranked

BLOCK_SCORES = 4_000_000
"""Scores held at once (16 MB): large enough for a good matrix product, small enough for the cache's neighbourhood."""
MOST_TOGETHER = 100_000_000
"""Scores of a re-ranker that needs all users at once: with their order about 3 GB."""


def users_at_once(n_items: int, candidates: Ints | None) -> int:
    """How many users' scores are computed together."""
    return max(1, BLOCK_SCORES // max(n_items if candidates is None else len(candidates), 1))


@dataclass(frozen=True)
class RankedBlock:
    """Lists of some users, best first; item −1 where nothing was left to recommend."""

    users: Ints
    """(b,)"""
    items: Ints
    """(b, k) item indices."""
    scores: NDArray[np.float32]
    """(b, k)"""


@dataclass(frozen=True, eq=False)
class ColdUsers:
    """Users without training pairs, whose scores would be noise or zeros: they get one list, the most popular items."""

    cold: Mask
    """(n_users,)"""
    popularity: Tensor
    """(n_items,): recent popularity where the log has times, training counts elsewhere."""


class Ranker:
    """Turns blocks of scores into lists.

    Parameters
    ----------
    n_items : number of items
    device : where scores are
    masked : (user, item) pairs, by user, that are never listed
    candidates : item indices, all by default
    quotas : limits on how alike the items of a list may be
    cold : users who get the most popular items instead
    together : whether all users are ranked in one block
    """

    def __init__(
        self,
        n_items: int,
        device: torch.device,
        masked: Pairs | None,
        candidates: Ints | None,
        quotas: Sequence[Quota] = (),
        cold: ColdUsers | None = None,
        together: bool = False,
    ) -> None:
        self._masked = masked
        self._column_of: Ints | None = None
        if candidates is not None:
            self._column_of = np.full(n_items, -1, dtype=np.int64)
            self._column_of[candidates] = np.arange(len(candidates))
        self._candidates = candidates
        self._device = device
        self.columns = None if candidates is None else torch.from_numpy(candidates.astype(np.int64)).to(device)
        """The candidates as a method's `scorer` takes them; None = all items."""
        self._columns = n_items if candidates is None else len(candidates)
        self._together, self._step = together, users_at_once(n_items, candidates)
        of = slice(None) if candidates is None else candidates
        self.limits = [replace(quota, codes=quota.codes[of]) for quota in quotas]
        """Quotas over all items as quotas over the columns."""
        self.best: Pick = partial(within, lambda _rows: top_k, self.limits) if self.limits else top_k
        """The best scores, as far as the quotas allow them."""
        self._cold = cold

    def blocks(self, users: Ints) -> Iterator[tuple[Ints, Tensor]]:
        """Split users into blocks whose scores fit memory.

        Parameters
        ----------
        users : (n,) indices

        Returns
        -------
        each block as an array and as a tensor for the scorer
        """
        step = max(len(users), 1) if self._together else self._step
        if self._together and len(users) * self._columns > MOST_TOGETHER:
            size = f"{len(users):,} users × {self._columns:,} items"
            raise InputError(
                f"this re-ranker ranks all users at once, and {size} are more than {MOST_TOGETHER:,} scores; "
                "re-rank a file of long lists with `dpaa rerank`, or fewer users"
            )
        for first in range(0, len(users), step):
            block = users[first : first + step]
            yield block, torch.from_numpy(block.astype(np.int64)).to(self._device)

    def ranked(self, users: Ints, k: int, variants: Variants) -> Iterator[list[RankedBlock]]:
        """Rank users block by block, once for each variant of the scores.

        Parameters
        ----------
        users : (n,) indices
        k : length of the lists
        variants : (b,) user indices → blocks of scores, each with what picks the lists from it

        Returns
        -------
        for each block of users, the lists of every variant
        """
        for block, index in self.blocks(users):
            yield [self.rank(scores, block, k, pick) for scores, pick in variants(index)]

    def rank(self, scores: Tensor, users: Ints, k: int, pick: Pick = top_k) -> RankedBlock:
        """Rank one block; its masked scores are overwritten.

        Parameters
        ----------
        scores : (b, columns)
        users : (b,) indices
        k : length of the lists
        pick : chooses columns from the scores; default the k highest

        Returns
        -------
        the lists of the block
        """
        block = self._rank(scores.contiguous(), users, k, pick)  # a method's may lie in memory as they like
        if self._cold is not None and (rows := np.flatnonzero(self._cold.cold[users])).size:
            popular = self.rank_popular(self._cold.popularity, users[rows], k)
            block.items[rows], block.scores[rows] = popular.items, popular.scores
        return block

    def rank_popular(self, popularity: Tensor, users: Ints, k: int) -> RankedBlock:
        """Rank by popularity: one list for all users, but for the masked pairs of each; no dial and no re-ranker.

        Parameters
        ----------
        popularity : (n_items,)
        users : (b,) indices
        k : length of the lists

        Returns
        -------
        the lists of the block
        """
        row = popularity.to(self._device)
        row = row if self.columns is None else row[self.columns]
        # One row serves everybody unless pairs are masked, which differ from user to user.
        rows = len(users) if self._masked is not None else 1
        block = self._rank(row.expand(rows, -1).clone(), users[:rows], k, self.best)
        times = (len(users) // rows, 1)
        return RankedBlock(users, np.tile(block.items, times), np.tile(block.scores, times))

    def _rank(self, scores: Tensor, users: Ints, k: int, pick: Pick) -> RankedBlock:
        if self._masked is not None:
            self._hide(scores, users, self._masked)
        values, columns = pick(scores, k)
        items = columns.cpu().numpy()
        if self._candidates is not None:
            items = np.where(items >= 0, self._candidates[items], -1)
        return RankedBlock(users, items, values.float().cpu().numpy())

    def _hide(self, scores: Tensor, users: Ints, masked: Pairs) -> None:
        """Set the masked scores of these rows to −inf; pairs are looked at only of these users."""
        wanted = users.astype(masked.user.dtype)  # of another type, all pairs would be converted
        first, last = (np.searchsorted(masked.user, wanted, side=side) for side in ("left", "right"))
        lengths = last - first
        rows = np.repeat(np.arange(len(users)), lengths)
        columns = masked.item[positions_within(lengths) + np.repeat(first, lengths)].astype(np.int64)
        if self._column_of is not None:
            columns = self._column_of[columns]
            rows, columns = rows[columns >= 0], columns[columns >= 0]
        # One flat index, filled in place: no mask of the block's size is made.
        flat = torch.from_numpy(rows * scores.shape[1] + columns).to(scores.device)
        scores.view(-1).index_fill_(0, flat, -torch.inf)


Variants = Callable[[Tensor], Iterable[tuple[Tensor, Pick]]]
"""Indices of users → blocks of scores, each with what picks the lists from it."""


def rank(
    method: Method,
    users: Ints,
    k: int,
    *,
    masked: Pairs | None = None,
    candidates: Ints | None = None,
    histories: Histories | None = None,
    dial: float = 0.0,
    prepared: DialVectors | None = None,
    reranker: Reranker | None = None,
    quotas: Sequence[Quota] = (),
    cold: ColdUsers | None = None,
) -> Iterator[RankedBlock]:
    """Rank the candidates for users, never a masked pair.

    Parameters
    ----------
    method : a fitted method
    users : (n,) indices; with `histories` within those
    k : length of the lists
    masked : (user, item) pairs that are not listed; with `histories` users count within those
    candidates : item indices, all by default
    histories : rank for these users, unseen in training
    dial : κ of the popularity dial
    prepared : vectors of the dial, computed once for many calls
    reranker : makes the lists from the scores
    quotas : limits on how alike the items of a list may be
    cold : users who get the most popular items instead

    Returns
    -------
    lists block by block, in the order of the users
    """
    graph = method.graph
    together = reranker is not None and reranker.together
    if together and quotas:
        raise InputError("limits of a column and a re-ranker that ranks all users at once exclude each other; drop one")
    ranker = Ranker(graph.n_items, graph.device, masked, candidates, quotas, cold, together)
    kappa = dial if reranker is None else reranker.dial(dial)
    scorer = dialled(method, kappa, ranker.columns, histories, prepared)
    about = Candidates(graph, ranker.columns, histories)

    def variants(index: Tensor) -> Iterator[tuple[Tensor, Pick]]:
        def picker(rows: Tensor | slice) -> Pick:
            return top_k if reranker is None else partial(reranked, reranker, users=index[rows], candidates=about)

        pick = partial(within, picker, ranker.limits) if ranker.limits else picker(slice(None))
        yield scorer(index), pick

    # Block by block: the scores of all users would not fit, and their lists need not.
    return (block for (block,) in ranker.ranked(users, k, variants))
