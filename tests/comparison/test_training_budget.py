"""Unequal training budgets: said where a fair reader would ask, and nowhere else."""

import pytest

from dpaa import Dataset, fit
from dpaa.comparison import TrainingBudget, budget_warnings


def trained(
    epochs: int = 1000, rate: float = 1e-3, patience: int = 50, trials: int = 0, best: int = 30
) -> TrainingBudget:
    return TrainingBudget(epochs, patience, rate, trials, best)


def warned(**sides: TrainingBudget) -> list[str]:
    return budget_warnings([(name, [one]) for name, one in sides.items()])


@pytest.mark.parametrize(
    "sides",
    [
        {"a": trained(), "b": trained(best=450)},  # early stopping at its own time
        {"a": trained(), "b": TrainingBudget(None, None, None, 0, None)},  # no epochs to be unequal in
        {"a": trained(trials=30, rate=1e-2), "b": trained(trials=30)},  # each has its own best
        {"a": trained()},
        {},
    ],
)
def test_no_false_alarm(sides: dict[str, TrainingBudget]) -> None:
    assert warned(**sides) == []


@pytest.mark.parametrize(
    ("sides", "says"),
    [
        ({"a": trained(25), "b": trained()}, "a up to 25 epochs with patience 50 at"),
        ({"a": trained(), "b": trained(rate=0.01)}, "at learning rate 0.01, tuned in 0 trials; give"),
        ({"a": trained(), "b": trained(patience=5)}, "up to 1000 epochs with patience 5 at"),
        ({"a": trained(), "b": trained(trials=30)}, "tuned in 30 trials; give"),
    ],
)
def test_what_differs_is_named(sides: dict[str, TrainingBudget], says: str) -> None:
    (warning,) = warned(**sides)
    assert warning.startswith("unequal training budgets: ")
    assert says in warning


def test_a_training_that_ended_too_early(small_world: Dataset) -> None:
    assert warned(a=trained(25, best=25)) == [
        "a: the best epoch was the last one allowed; training may not have converged; "
        "allow more epochs with --set epochs=50"
    ]
    model = fit(small_world, "lightgcn", embedding_size=4, layers=1, epochs=2, patience=50, threads=1)
    assert TrainingBudget.of_model(model).epochs == 2
    model.manifest["training"] = model.manifest["tuning"] = 7  # an untrusted file
    assert TrainingBudget.of_model(model) == TrainingBudget(2, 50, 1e-3, 0, None)
