"""What is odd about a dataset, in words."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dpaa.data.dataset import Dataset, SplitName


def lint(dataset: Dataset) -> list[str]:
    """Sentences about what may surprise: overlapping splits, empty splits, users and items without training pairs."""
    return [*_empty_splits(dataset), *_overlaps(dataset), *_cold_users(dataset), *_cold_items(dataset)]


def _empty_splits(dataset: Dataset) -> list[str]:
    found = []
    if not len(dataset.valid):
        found.append("the validation split is empty: early stopping and tuning are impossible")
    if not len(dataset.test):
        found.append("the test split is empty: nothing can be evaluated")
    return found


def _overlaps(dataset: Dataset) -> list[str]:
    found = []
    splits: tuple[SplitName, ...] = ("train", "valid", "test")
    for one, other in combinations(splits, 2):
        both = dataset.overlap(one, other)
        if not len(both):
            continue
        user, item = dataset.user_ids[int(both[0]) // dataset.n_items], dataset.item_ids[int(both[0]) % dataset.n_items]
        effect = (
            f"`--overlap drop` neither ranks them nor counts them as relevant in {other}"
            if one == "train"
            else "`--mask-valid` takes them out of the test ranking"
        )
        found.append(f"{_pairs(len(both))} in both {one} and {other} (user {user!r}, item {item!r}): {effect}")
    return found


def _cold_users(dataset: Dataset) -> list[str]:
    trained = np.bincount(dataset.train.user, minlength=dataset.n_users) > 0
    tested = np.unique(dataset.test.user)
    cold = tested[~trained[tested]]
    if not len(cold):
        return []
    return [
        f"{len(cold):,} of {len(tested):,} test users have no training pair "
        f"(such as {dataset.user_ids[int(cold[0])]!r}): nothing was learned about them"
    ]


def _cold_items(dataset: Dataset) -> list[str]:
    trained = np.bincount(dataset.train.item, minlength=dataset.n_items) > 0
    found = []
    groups = {"candidate": dataset.candidates, "test": np.unique(dataset.test.item)}
    for word, items in groups.items():
        if items is None or trained[items].all():
            continue
        cold = items[~trained[items]]
        found.append(
            f"{len(cold):,} of {len(items):,} {word} items have no training pair "
            f"(such as {dataset.item_ids[int(cold[0])]!r}): they are ranked by chance"
        )
    return found


def _pairs(number: int) -> str:
    return "1 pair is" if number == 1 else f"{number:,} pairs are"
