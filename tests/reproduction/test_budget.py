"""What a budget says, and which tuned severity is the nearest."""

from __future__ import annotations

from dpaa.reproduction.budget import BUDGETS, nearest


def test_other_severities_take_the_nearest_tuned_setting() -> None:
    tuning = BUDGETS["standard"].tuning
    assert tuning is not None
    assert [nearest(s, tuning.severities) for s in range(10)] == [0, 0, 0, 5, 5, 5, 5, 5, 9, 9]


def test_budgets_are_what_they_say() -> None:
    quick, standard = BUDGETS["quick"], BUDGETS["standard"]
    assert (quick.severities, quick.seeds, quick.settings) == ((0, 5, 9), 1, {"embedding_size": 64, "epochs": 100})
    assert (standard.seeds, standard.coat_seeds, standard.as_printed_severities) == (3, 10, (0, 5, 9))
    assert all("most-popular" in budget.rows and "dpaa-as-printed" in budget.rows for budget in BUDGETS.values())
