"""Lists against the log: by hand, against a slow twin, and laws."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given

from dpaa.auditing.audit import audit
from dpaa.data.dataset import Dataset
from dpaa.data.sources.world import simulate
from dpaa.evaluation.evaluator import Evaluator
from tests.auditing.examples import LISTS, LOG, logs


def test_lists_against_histories_by_hand() -> None:
    found = audit(LOG, LISTS)
    recs = found.recommendations
    assert recs is not None
    assert (recs.users, recs.users_without, recs.recommendations, recs.longest_list) == (3, 2, 6, 2)
    assert recs.coverage == pytest.approx(4 / 5)
    assert recs.gini == pytest.approx(1 / 3)  # 0, 1, 1, 2, 2: 10 over 5 · 6
    assert recs.head_share == pytest.approx(2 / 6)
    # u1 took A, B, C (8/3) and gets D, E (1); u5 took E (1), gets A, B (3.5); u3 took A (4), gets B, A (3.5)
    assert recs.arp_history == pytest.approx((8 / 3 + 1 + 4) / 3)
    assert recs.arp == pytest.approx((1 + 3.5 + 3.5) / 3)
    assert recs.popularity_lift == pytest.approx((-5 / 8 + 2.5 - 1 / 8) / 3)
    assert recs.amplified_users == pytest.approx(1 / 3)
    assert recs.aplt == pytest.approx(1 / 3)
    assert recs.aplt_history == pytest.approx(1 / 3)
    # head A, middle B and C, tail D and E: nothing in common for u1 and u5; u3 has (0, 0, 1) and gets (0, ½, ½)
    divergence = (0.5 * np.log2(2) + 0.5 * np.log2(2 / 3) + np.log2(4 / 3)) / 2
    assert recs.upd == pytest.approx((1 + 1 + np.sqrt(divergence)) / 3)
    assert recs.deciles == pytest.approx([0, 0, 1 / 6, 0, 1 / 6, 0, 2 / 6, 0, 2 / 6, 0])
    assert recs.outside_deciles == 0
    assert [(item.item_id, item.recommendations) for item in recs.winners] == [("D", 1), ("E", 1), ("B", 2)]
    assert [(item.item_id, item.group) for item in recs.losers] == [("C", "popular"), ("A", "popular")]
    assert recs.losers[1].interaction_share == pytest.approx(0.4)
    assert recs.losers[1].recommendation_share == pytest.approx(2 / 6)
    assert [(shift.taste, shift.users) for shift in recs.tastes] == [("niche", 1), ("diverse", 0), ("blockbuster", 2)]
    assert recs.tastes[0].popularity_lift == pytest.approx(2.5)
    assert np.isnan(recs.tastes[1].popularity_lift)
    rows = recs.per_user.select("user_id", "taste", "list_length", "popularity_lift@3").rows()
    assert rows == [("u1", "blockbuster", 2, -0.625), ("u3", "blockbuster", 2, -0.125), ("u5", "niche", 2, 2.5)]
    said = " ".join(found.notes)
    for part in ("1 user is not in the data", "1 item is not in the data", "2 users of the log have no list"):
        assert part in said


def test_k_cuts_lists() -> None:
    recs = audit(LOG, LISTS, k=1).recommendations
    assert recs is not None
    assert (recs.recommendations, recs.longest_list) == (3, 1)
    assert recs.coverage == pytest.approx(3 / 5)


def test_candidates_and_newcomers() -> None:
    data = Dataset.from_frame(LOG, test={"user_id": ["new"], "item_id": ["A"]}, candidates=["A", "B", "C", "D", "X"])
    found = audit(data, {"user_id": ["u1", "u1", "new"], "item_id": ["E", "X", "A"], "rank": [1, 2, 1]})
    recs = found.recommendations
    assert recs is not None
    assert (found.log.items, found.log.items_without, found.log.users) == (5, 1, 5)
    assert recs.coverage == pytest.approx(2 / 5)  # X and A; E is no candidate
    assert recs.gini == pytest.approx(3 / 5)  # 0, 0, 0, 1, 1
    assert recs.outside_deciles == pytest.approx(1 / 3)
    assert (recs.users, recs.users_without) == (2, 4)
    assert recs.popularity_lift == pytest.approx(0.5 / (8 / 3) - 1)  # u1: E 1, X 0; "new" has no history
    assert recs.per_user["popularity_lift@2"].to_list()[0] is None
    assert recs.per_user["taste"].to_list()[0] is None
    said = " ".join(found.notes)
    assert "1 user with a list has no history" in said
    assert "1 recommendation is of an item that is no candidate" in said


def test_lists_are_called_as_evaluate_calls_them() -> None:
    """The same lists of the same users: the same names, and the same numbers under them."""
    data = simulate(users=60, items=40, seed=1)
    evaluator = Evaluator(data, 5)
    lists = np.argsort(np.random.default_rng(0).random((len(evaluator.users), data.n_items)), axis=1)[:, :5]
    rows = [
        (data.user_ids[int(user)], data.item_ids[int(item)], rank)
        for user, items in zip(evaluator.users, lists, strict=True)
        for rank, item in enumerate(items, 1)
    ]
    numbers = audit(data, pl.DataFrame(rows, schema=["user_id", "item_id", "rank"], orient="row")).numbers
    metrics = evaluator.evaluate_lists(lists).metrics
    shared = {"coverage@5", "gini@5", "head_share@5", "arp@5", "popularity_lift@5", "aplt@5", "upd@5"}
    assert shared == set(numbers) & set(metrics)
    assert {name: numbers[name] for name in shared} == pytest.approx({name: metrics[name] for name in shared})


def slow_lists(pairs: list[tuple[int, int]], lists: dict[int, list[int]]) -> dict[str, float]:
    """Straight from the definitions, one user at a time."""
    count: dict[int, int] = {}
    history: dict[int, list[int]] = {}
    for user, item in pairs:
        count[item] = count.get(item, 0) + 1
        history.setdefault(user, []).append(item)
    popular: set[int] = set()
    for item in sorted(count, key=lambda item: (-count[item], item)):
        if sum(count[known] for known in popular) < 0.8 * len(pairs):
            popular.add(item)
    lifts, shares, before = [], [], []
    for user, items in lists.items():
        of_list = sum(count[item] for item in items) / len(items)
        of_history = sum(count[item] for item in history[user]) / len(history[user])
        lifts.append((of_list - of_history) / of_history)
        shares.append(sum(item not in popular for item in items) / len(items))
        before.append(sum(item not in popular for item in history[user]) / len(history[user]))
    shown = [item for items in lists.values() for item in items]
    longest = max(len(items) for items in lists.values())
    return {
        f"popularity_lift@{longest}": sum(lifts) / len(lifts),
        f"amplified_users@{longest}": sum(lift > 0 for lift in lifts) / len(lifts),
        f"aplt@{longest}": sum(shares) / len(shares),
        f"aplt_history@{longest}": sum(before) / len(before),
        f"coverage@{longest}": len(set(shown)) / len(count),
        "log_items_for_80": len(popular),
    }


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_a_slow_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = simulate(users=60, items=40, seed=seed)
    pairs = list(zip(data.train.user.tolist(), data.train.item.tolist(), strict=True))
    taken = sorted({item for _, item in pairs})
    users = sorted({user for user, _ in pairs})
    lists = {user: rng.permutation(taken)[: rng.integers(1, 9)].tolist() for user in users[::2]}
    rows = [(user, item, rank) for user, items in lists.items() for rank, item in enumerate(items, start=1)]
    log = pl.DataFrame(pairs, schema=["user_id", "item_id"], orient="row")
    recs = pl.DataFrame(rows, schema=["user_id", "item_id", "rank"], orient="row").sample(
        fraction=1, shuffle=True, seed=seed
    )
    numbers = audit(log, recs).numbers
    expected = slow_lists(pairs, lists)
    assert {name: numbers[name] for name in expected} == pytest.approx(expected)


@given(logs())
def test_lists_that_are_the_histories_change_nothing(log: pl.DataFrame) -> None:
    found = audit(log, log.unique(["user_id", "item_id"]).select("user_id", "item_id"))
    recs = found.recommendations
    assert recs is not None
    assert recs.popularity_lift == pytest.approx(0)
    assert recs.amplified_users == 0
    assert recs.upd == pytest.approx(0, abs=1e-7)
    assert recs.aplt == pytest.approx(recs.aplt_history)
    assert recs.deciles == pytest.approx(found.log.deciles)
    assert recs.gini == pytest.approx(found.log.log_gini)
    assert recs.winners == []
    assert recs.losers == []
    assert recs.users_without == 0
