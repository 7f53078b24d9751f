"""How far the lists of an export are the model's own."""

from typing import Any

from dpaa.runs.model import Model

KAPPAS = (-0.5, 0.0, 0.5)


def lists_of(model: Model, k: int, kappa: float) -> dict[Any, list[Any]]:
    """User → our exact list."""
    lists: dict[Any, list[Any]] = {user: [] for user in model.user_ids.to_list()}
    for user, item, *_ in model.recommend(k=k, popularity_dial=kappa).iter_rows():
        lists[user].append(item)
    return lists


def equal_lists(expected: dict[Any, list[Any]], found: dict[Any, list[Any]]) -> float:
    """The share of users with the same items in the same order."""
    return sum(found[user] == listed for user, listed in expected.items()) / len(expected)
