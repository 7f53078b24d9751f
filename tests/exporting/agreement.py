"""How far the lists of an index are ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpaa.runs.model import Model

KAPPAS = (-0.5, 0.0, 0.5)


def lists_of(model: Model, k: int, kappa: float) -> dict[Any, list[Any]]:
    """User → our exact list."""
    made: dict[Any, list[Any]] = {user: [] for user in model.user_ids.to_list()}
    for user, item, *_ in model.recommend(k=k, popularity_dial=kappa).iter_rows():
        made[user].append(item)
    return made


def equal_lists(expected: Mapping[Any, Sequence[Any]], found: Mapping[Any, Sequence[Any]]) -> float:
    """The share of users with the same items in the same order."""
    return sum(list(found[user]) == list(listed) for user, listed in expected.items()) / len(expected)
