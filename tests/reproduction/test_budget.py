"""What a budget says, and which tuned severity is the nearest."""

from __future__ import annotations

from dpaa.methods import find_method
from dpaa.reproduction.budget import BUDGETS, TuningPerSetting, nearest
from dpaa.tuning.space import search_space


def test_other_severities_take_the_nearest_tuned_setting() -> None:
    tuning = BUDGETS["standard"].tuning
    assert tuning is not None
    assert [nearest(s, tuning.severities) for s in range(10)] == [0, 0, 0, 5, 5, 5, 5, 5, 9, 9]


def test_budgets_are_what_they_say() -> None:
    quick, standard = BUDGETS["quick"], BUDGETS["standard"]
    assert (quick.severities, quick.seeds, quick.settings) == ((0, 5, 9), 1, {"embedding_size": 64, "epochs": 100})
    assert (standard.seeds, standard.coat_seeds, standard.as_printed_severities) == (3, 10, (0, 5, 9))
    assert all("most-popular" in budget.rows and "dpaa-as-printed" in budget.rows for budget in BUDGETS.values())


def test_in_standard_2_who_has_more_to_choose_gets_more_trials() -> None:
    tuning = BUDGETS["standard-2"].tuning
    assert isinstance(tuning, TuningPerSetting)
    fixed = ("learning_rate", "layers")
    free = {
        name: len(search_space(find_method(name), tuning.space, dict.fromkeys(fixed, 0), {}))
        for name in ("lightgcn", "dpaa", "ips")
    }
    assert {name: tuning.trials_of(n) for name, n in free.items()} == {"lightgcn": 4, "dpaa": 24, "ips": 8}
    space = search_space(find_method("dpaa"), tuning.space, dict.fromkeys(fixed, 0), {})
    assert all(0.0 in tuple(space[name]) for name in ("layer_emphasis", "initial_residual", "half_trust_shift"))  # type: ignore[arg-type]
    assert tuning.prune_after == 0
    assert tuning.severities == (5,)
