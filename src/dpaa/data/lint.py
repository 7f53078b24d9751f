"""What is odd about a dataset, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from dpaa.data.columns import SPLITS, SplitName
from dpaa.data.pairs import Indices, Pairs, shared_keys


@dataclass(frozen=True)
class Splits:
    """What the linter needs of a dataset."""

    pairs: Mapping[SplitName, Pairs]
    user_ids: pl.Series
    item_ids: pl.Series
    candidates: Indices | None


def lint(dataset: Splits) -> list[str]:
    """Sentences about what may surprise: overlapping splits, empty splits, users and items without training pairs."""
    return [*_empty_splits(dataset), *_overlaps(dataset), *_cold_users(dataset), *_cold_items(dataset)]


def _empty_splits(dataset: Splits) -> list[str]:
    found = []
    if not len(dataset.pairs["valid"]):
        found.append("the validation split is empty: early stopping and tuning are impossible")
    if not len(dataset.pairs["test"]):
        found.append("the test split is empty: nothing can be evaluated")
    return found


def _overlaps(dataset: Splits) -> list[str]:
    found = []
    for one, other in combinations(SPLITS, 2):
        both = shared_keys(dataset.pairs[one], dataset.pairs[other], len(dataset.item_ids))
        if not len(both):
            continue
        user, item = (
            dataset.user_ids[int(both[0]) // len(dataset.item_ids)],
            dataset.item_ids[int(both[0]) % len(dataset.item_ids)],
        )
        effect = (
            f"`--overlap drop` neither ranks them nor counts them as relevant in {other}"
            if one == "train"
            else "`--mask-valid` takes them out of the test ranking"
        )
        found.append(f"{_pairs(len(both))} in both {one} and {other} (user {user!r}, item {item!r}): {effect}")
    return found


def _cold_users(dataset: Splits) -> list[str]:
    trained = np.bincount(dataset.pairs["train"].user, minlength=len(dataset.user_ids)) > 0
    tested = np.unique(dataset.pairs["test"].user)
    cold = tested[~trained[tested]]
    if not len(cold):
        return []
    return [
        f"{len(cold):,} of {len(tested):,} test users have no training pair "
        f"(such as {dataset.user_ids[int(cold[0])]!r}): nothing was learned about them"
    ]


def _cold_items(dataset: Splits) -> list[str]:
    trained = np.bincount(dataset.pairs["train"].item, minlength=len(dataset.item_ids)) > 0
    found = []
    groups = {"candidate": dataset.candidates, "test": np.unique(dataset.pairs["test"].item)}
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
