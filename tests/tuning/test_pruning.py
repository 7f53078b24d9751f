"""A trial is only held against those that learn as fast."""

from __future__ import annotations

from collections.abc import Sequence

import optuna

from dpaa.tuning.pruning import SameRatePruner

RATES = optuna.distributions.FloatDistribution(1e-5, 1.0)


def trial(rate: float | None, values: Sequence[float], state: str = "COMPLETE") -> optuna.trial.FrozenTrial:
    params = {} if rate is None else {"learning_rate": rate}
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState[state],
        params=params,
        distributions=dict.fromkeys(params, RATES),
        intermediate_values=dict(enumerate(values, start=1)),
        value=max(values) if state == "COMPLETE" else None,
    )


def pruned(others: Sequence[optuna.trial.FrozenTrial], one: optuna.trial.FrozenTrial, startup: int = 2) -> bool:
    study = optuna.create_study(direction="maximize")
    study.add_trials(others)
    return SameRatePruner(startup, prune_after=2).prune(study, one)


def test_below_the_median_of_its_rate_it_is_pruned() -> None:
    others = [trial(1e-2, [0.1, 0.3]), trial(1e-2, [0.2, 0.4]), trial(1e-2, [0.3, 0.5])]
    assert pruned(others, trial(1e-2, [0.1, 0.2], "RUNNING"))
    assert not pruned(others, trial(1e-2, [0.1, 0.4], "RUNNING"))
    assert not pruned(others, trial(1e-2, [0.45, 0.1], "RUNNING")), "its best so far counts"
    assert not pruned(others, trial(1e-2, [0.0], "RUNNING")), "not before its time"
    assert not pruned(others, trial(1e-2, [0.0, 0.0], "RUNNING"), startup=4)


def test_fast_learners_do_not_prune_slow_ones() -> None:
    fast = [trial(1e-2, [0.4, 0.5]) for _ in range(5)]
    slow = trial(1e-4, [0.0, 0.01], "RUNNING")
    assert not pruned(fast, slow)
    assert pruned([*fast, trial(1.5e-4, [0.1, 0.2]), trial(1e-4, [0.1, 0.2])], slow)


def test_where_the_rate_is_not_searched_all_are_compared() -> None:
    others = [trial(None, [0.1, 0.3]), trial(None, [0.2, 0.4])]
    assert pruned(others, trial(None, [0.1, 0.1], "RUNNING"))
