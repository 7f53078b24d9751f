"""What changes between two sets of lists: how much they share, whose exposure moves, and for whom it matters most.

`lists` is (users, k) item indices, each item once in a list, −1 where a list ends early.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.comparison.entry import Entry
from dpaa.comparison.result import Example, Exposure, Moved, Overlap, Place
from dpaa.data.columns import Column
from dpaa.evaluation import bias
from dpaa.evaluation.concentration import most_moved
from dpaa.evaluation.evaluator import Evaluation, Evaluator

Ints = NDArray[Any]
Floats = NDArray[np.float64]
MOVED_ITEMS = 10
"""Items listed as gaining, and as losing."""


def shared_items(one: Ints, other: Ints) -> Ints:
    """How many items the two lists of each user share.  Returns (users,)."""
    both = np.sort(np.concatenate([one, other], axis=1), axis=1)  # an item of both stands beside itself
    return np.asarray(((both[:, 1:] == both[:, :-1]) & (both[:, 1:] >= 0)).sum(axis=1))


def jaccard(one: Ints, other: Ints) -> Floats:
    """`|A ∩ B| / |A ∪ B|` per user, in [0, 1]; 1 for two empty lists.  Returns (users,)."""
    shared = shared_items(one, other)
    union = (one >= 0).sum(axis=1) + (other >= 0).sum(axis=1) - shared
    return np.where(union > 0, shared / np.maximum(union, 1), 1.0)


def telling_users(gain: Floats, shared: Ints, number: int, listed: Ints | None = None) -> Ints:
    """Users for whom most changes: those who gain most and those who lose most in turn, fewer shared items first.

    Where nobody gains or loses (any more), those whose lists share least.  Users who are not `listed` (bool per user;
    all are unless given) come only when no other is left.  Returns (at most `number`,) rows.
    """
    index = np.arange(len(gain))
    later = np.zeros(len(gain), dtype=bool) if listed is None else ~listed
    up = [row for row in np.lexsort((index, shared, -gain, later))[:number] if gain[row] > 0 and not later[row]]
    down = [row for row in np.lexsort((index, shared, gain, later))[:number] if gain[row] < 0 and not later[row]]
    rest = np.lexsort((index, shared, later))[: 3 * number]
    in_turn = [row for pair in zip(up, down, strict=False) for row in pair]
    ordered = [*in_turn, *up[len(down) :], *down[len(up) :], *rest]
    return np.array(list(dict.fromkeys(ordered))[:number], dtype=np.int64)


# ------------------------------------------------------------------ of entries


def overlaps(base: Entry, others: Sequence[Entry]) -> list[Overlap]:
    """Each entry against the baseline; and runs of one entry against one another, to hold that against."""
    found = []
    for entry in (base, *others):
        if len(entry.evaluations) > 1:
            found.append(_overlap(entry.name, entry.name, list(combinations(entry.evaluations, 2))))
        if entry is not base:
            found.append(_overlap(entry.name, base.name, list(product(entry.evaluations, base.evaluations))))
    return found


def _overlap(name: str, other: str, pairs: Sequence[tuple[Evaluation, Evaluation]]) -> Overlap:
    shares = [jaccard(one.lists, two.lists) for one, two in pairs]
    return Overlap(
        entry=name,
        other=other,
        jaccard=float(np.mean(shares)),
        shared=float(np.mean([shared_items(one.lists, two.lists) for one, two in pairs])),
        unchanged=float(np.mean([share == 1.0 for share in shares])),
    )


def exposure(evaluator: Evaluator, base: Entry, entry: Entry) -> Exposure:
    """Whose exposure moves most from the baseline to an entry."""
    n_items = evaluator.dataset.n_items
    before, after = (
        np.mean([bias.exposure(found.lists, n_items) for found in side.evaluations], axis=0) for side in (base, entry)
    )
    change = after - before
    ids = evaluator.dataset.item_ids

    def moved(items: Ints) -> list[Moved]:
        return [
            Moved(
                item_id=ids[int(item)],
                group=_group(evaluator, int(item)),
                training_count=int(evaluator.counts[item]),
                baseline=float(before[item]),
                value=float(after[item]),
                change=float(change[item]),
                title=_title(evaluator, int(item)),
            )
            for item in items
        ]

    gaining, losing = most_moved(change, MOVED_ITEMS)
    return Exposure(entry.name, moved(gaining), moved(losing), int((change > 0).sum()), int((change < 0).sum()))


def examples(evaluator: Evaluator, base: Entry, entry: Entry, number: int) -> list[Example]:
    """Users for whom most changes, with both lists."""
    if number < 1:
        return []
    metric = f"recall@{evaluator.protocol.k[-1]}"
    before, after = base.evaluations[0], entry.evaluations[0]
    values = [found.per_user[metric].to_numpy() for found in (before, after)]
    shared = shared_items(after.lists, before.lists)
    # A list against none shows nothing: such users only where no other is left.
    listed = np.asarray((before.lists >= 0).any(axis=1) & (after.lists >= 0).any(axis=1))
    rows = telling_users(values[1] - values[0], shared, number, listed)
    dataset, users = evaluator.dataset, evaluator.users[rows]
    relevant_user, relevant_item = np.divmod(evaluator.truth.relevant, dataset.n_items)
    history = np.bincount(dataset.train.user, minlength=dataset.n_users)
    return [
        Example(
            entry=entry.name,
            user_id=before.per_user[Column.USER][int(row)],
            relevant=dataset.item_ids.gather(relevant_item[relevant_user == user]).to_list(),
            history=int(history[user]),
            shared=int(shared[row]),
            metric=metric,
            baseline=float(values[0][row]),
            value=float(values[1][row]),
            baseline_list=_places(evaluator, before.lists[row], relevant_item[relevant_user == user]),
            entry_list=_places(evaluator, after.lists[row], relevant_item[relevant_user == user]),
        )
        for row, user in zip(rows, users, strict=True)
    ]


def _places(evaluator: Evaluator, items: Ints, relevant: Ints) -> list[Place]:
    taken = set(relevant.tolist())
    last = int(np.flatnonzero(items >= 0).max(initial=-1))
    return [
        Place(evaluator.dataset.item_ids[item], item in taken, _group(evaluator, item), _title(evaluator, item))
        if item >= 0
        else Place(None, hit=False, group=None)
        for item in items[: last + 1].tolist()
    ]


def _group(evaluator: Evaluator, item: int) -> str:
    return "popular" if evaluator.popular[item] else "niche"


def _title(evaluator: Evaluator, item: int) -> str | None:
    titles = evaluator.dataset.titles
    return None if titles is None else titles[item]
