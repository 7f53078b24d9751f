"""Limits on the items of a list by an item column: at most N items per value, or at least N different values.

A list is filled from the best score down; an item that a limit forbids is passed over.  For one column with one value
per item that is the list with the highest sum of scores among all that keep the limits: what they allow is a matroid.
Items without a value in the column are held to nothing and count for nothing, items with several count for each.
`at_most` always holds; `at_least` as far as a user's candidates have so many values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dpaa.data.ids import Ints, Mask

Picked = tuple[Tensor, Tensor]
"""Values and columns of lists, (users, k) each; −∞ and −1 where a list ends early."""
Pick = Callable[[Tensor, int], Picked]
"""A block of scores and k → scores and columns of the lists."""
NO_VALUE = -1
DEEPER = 8
"""How many times more candidates are looked at where a list could not be filled."""


@dataclass(frozen=True, eq=False)
class Quota:
    """Limits of lists by one column of the items."""

    codes: Ints
    """Values of each column of the scores as whole numbers from 0, −1 where there are fewer.  (columns, values)."""
    at_most: int | None = None
    """Items with the same value in a list."""
    at_least: int | None = None
    """Different values in a list."""


def within(picker: Callable[[Tensor], Pick], quotas: Sequence[Quota], scores: Tensor, k: int) -> Picked:
    """Select the best lists that satisfy the quotas.  Returns scores and columns, (rows, k), −1 at the end.

    `picker` makes longer lists of some rows of the block, whose numbers it takes.
    """
    n = scores.shape[1]
    values = torch.full((len(scores), k), -torch.inf)
    columns = torch.full((len(scores), k), -1, dtype=torch.int64)
    # Deeper step by step: a few candidates fill nearly all lists, and to sort whole rows is what takes time.
    rows, depth = torch.arange(len(scores)), min(4 * k, n)
    while len(rows):
        picked, positions = picker(rows)(scores[rows], depth)
        picked, positions = picked.cpu().float(), positions.cpu()
        taken = chosen(positions.numpy(), quotas, k, last=depth == n)
        full = torch.from_numpy(taken.sum(axis=1) == k) | (depth == n)
        order = np.argsort(~taken, axis=1, kind="stable")[:, :k]  # the chosen first, in their order
        there = np.take_along_axis(taken, order, axis=1)
        width = order.shape[1]
        index = torch.from_numpy(order)
        values[rows[full], :width] = torch.where(torch.from_numpy(there), picked.gather(1, index), -torch.inf)[full]
        columns[rows[full], :width] = torch.where(torch.from_numpy(there), positions.gather(1, index), -1)[full]
        rows, depth = rows[~full], min(DEEPER * depth, n)
    return values, columns


def chosen(positions: Ints, quotas: Sequence[Quota], k: int, last: bool) -> Mask:
    """Choose among candidates, best first, −1 where there is none; (rows, candidates) like the result.

    `last`: these are all candidates there are, so that what cannot be reached is not waited for.
    """
    there = positions >= 0
    states = [_State(quota, np.where(there[:, :, None], quota.codes[positions], NO_VALUE), k, last) for quota in quotas]
    taken = np.zeros(positions.shape, dtype=bool)
    number = np.zeros(len(positions), dtype=np.int64)
    for soft in (False, True) if last else (False,):  # at the end what only `at_least` forbade fills the lists
        for rank in range(positions.shape[1]):
            free = there[:, rank] & ~taken[:, rank] & (number < k)
            if not free.any():
                if (number >= k).all():
                    break
                continue
            for state in states:
                free &= state.allows(rank, k - number, soft)
            taken[:, rank] |= free
            number += free
            for state in states:
                state.take(rank, free)
    return taken


class _State:
    """How often each value of one column is in each list so far."""

    def __init__(self, quota: Quota, codes: Ints, k: int, last: bool) -> None:
        self.quota, self.valued = quota, codes != NO_VALUE
        flat, n = _local(codes.reshape(len(codes), -1))
        self.codes = flat.reshape(codes.shape)
        self.rows = np.arange(len(codes))[:, None]
        self.count = np.zeros((len(codes), n), dtype=np.int32)
        self.different = np.zeros(len(codes), dtype=np.int64)
        self.wanted = np.full(len(codes), min(quota.at_least or 0, k))
        if last and quota.at_least:
            first = np.zeros(self.count.shape, dtype=bool)
            rows, positions, slots = np.nonzero(self.valued)
            first[rows, self.codes[rows, positions, slots]] = True
            self.wanted = np.minimum(self.wanted, first.sum(axis=1))

    def allows(self, rank: int, slots_left: Ints, soft: bool) -> Mask:
        """Test whether each list may take its candidate at this rank, with so many slots left."""
        valued, count = self.valued[:, rank], self.count[self.rows, self.codes[:, rank]]
        allowed: Mask = np.ones(len(valued), dtype=bool)
        if self.quota.at_most is not None:
            allowed = (~valued | (count < self.quota.at_most)).all(axis=1)
        if self.quota.at_least is not None and not soft:
            allowed &= (valued & (count == 0)).any(axis=1) | (slots_left > self.wanted - self.different)
        return allowed

    def take(self, rank: int, taken: Mask) -> None:
        rows, slots = np.nonzero(taken[:, None] & self.valued[:, rank])
        codes = self.codes[rows, rank, slots]
        np.add.at(self.different, rows, self.count[rows, codes] == 0)
        self.count[rows, codes] += 1  # an item has each of its values once


def _local(codes: Ints) -> tuple[Ints, int]:
    """The values of each row numbered from 0, and how many numbers there are: a column may have a million values."""
    order = np.argsort(codes, axis=1, kind="stable")
    in_order = np.take_along_axis(codes, order, axis=1)
    number = np.zeros(codes.shape, dtype=np.int64)
    number[:, 1:] = np.cumsum(in_order[:, 1:] != in_order[:, :-1], axis=1)
    local = np.empty_like(number)
    np.put_along_axis(local, order, number, axis=1)
    return local, int(number.max(initial=0)) + 1
