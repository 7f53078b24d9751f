"""What is odd about a dataset, in words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import polars as pl

from dpaa._text import counted
from dpaa.data.columns import SPLITS, SplitName
from dpaa.data.pairs import Indices, Pairs, shared_keys


def lint(
    pairs: Mapping[SplitName, Pairs], user_ids: pl.Series, item_ids: pl.Series, candidates: Indices | None
) -> list[str]:
    """Sentences about what may surprise: overlapping splits, empty splits, users and items without training pairs."""
    found = empty_splits({name: len(part) for name, part in pairs.items()})
    for one, other in combinations(SPLITS, 2):
        both = shared_keys(pairs[one], pairs[other], len(item_ids))
        if len(both):
            user, item = divmod(int(both[0]), len(item_ids))
            effect = (
                f"`--overlap drop` neither ranks them nor counts them as relevant in {other}"
                if one == "train"
                else "`--mask-valid` takes them out of the test ranking"
            )
            such = f"user {user_ids[user]!r}, item {item_ids[item]!r}"
            found.append(f"{counted(len(both), 'pair is', 'pairs are')} in both {one} and {other} ({such}): {effect}")
    train, test = pairs["train"], pairs["test"]
    users, items = (train.user, test.user), (train.item, test.item)
    return found + untrained(user_ids, item_ids, users, items, candidates)


def empty_splits(sizes: Mapping[SplitName, int]) -> list[str]:
    """Splits without pairs."""
    found = []
    if not sizes["valid"]:
        found.append("the validation split is empty: early stopping and tuning are impossible")
    if not sizes["test"]:
        found.append("the test split is empty: nothing can be evaluated")
    return found


def untrained(
    user_ids: pl.Series,
    item_ids: pl.Series,
    users: tuple[Indices, Indices],
    items: tuple[Indices, Indices],
    candidates: Indices | None,
) -> list[str]:
    """Users and items, of training and of the test, of which the test asks without a training pair."""
    by_chance = "they are ranked by chance"
    found = _cold(user_ids, *users, "test users", "nothing was learned about them")
    found += [] if candidates is None else _cold(item_ids, items[0], candidates, "candidate items", by_chance)
    return found + _cold(item_ids, *items, "test items", by_chance)


def _cold(ids: pl.Series, trained: Indices, asked: Indices, what: str, effect: str) -> list[str]:
    """Users or items that something is asked about and that are not in training."""
    asked = np.unique(asked)
    cold = np.setdiff1d(asked, trained)
    if not len(cold):
        return []
    such = f"(such as {ids[int(cold[0])]!r})"
    return [f"{len(cold):,} of {len(asked):,} {what} have no training pair {such}: {effect}"]
