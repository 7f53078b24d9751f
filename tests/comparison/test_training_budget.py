"""Unequal training budgets: said where a fair reader would ask, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpaa.comparison import TrainingBudget, compare_entries, read_entries
from dpaa.comparison.training_budget import unequal
from dpaa.data.dataset import Dataset
from dpaa.runs.fit import fit_into, make_method


def trained(
    epochs: int = 80, allowed: int = 1000, rate: float = 1e-3, patience: int = 50, trials: int = 0, best: int = 30
) -> TrainingBudget:
    config = {"method": "lightgcn", "seed": 0, "epochs": allowed, "patience": patience, "learning_rate": rate}
    training = {"epochs": epochs, "best_epoch": best, "best_valid_recall@20": 0.1}
    return TrainingBudget.of(config, {"training": training, "tuning": {"trials": trials}})


EASE = TrainingBudget.of({"method": "ease", "seed": 0, "ridge": 100.0}, {})
MOST_POPULAR = TrainingBudget.of({"method": "most-popular", "seed": 0}, {})


def told(**sides: TrainingBudget) -> str | None:
    return unequal([(name, [one]) for name, one in sides.items()])


@pytest.mark.parametrize(
    "sides",
    [
        {"a": trained(), "b": trained(500, best=450)},  # early stopping at its own time
        {"a": trained(), "b": trained(allowed=2000)},  # a larger allowance that nobody used
        {"a": trained(), "b": EASE, "c": MOST_POPULAR},  # no epochs to be unequal in
        {"a": trained(trials=30, rate=1e-2), "b": trained(trials=30)},  # each has its own best
        {"a": trained(trials=30), "b": MOST_POPULAR},  # nothing to tune
    ],
)
def test_no_false_alarm(sides: dict[str, TrainingBudget]) -> None:
    assert told(**sides) is None


@pytest.mark.parametrize(
    ("sides", "says"),
    [
        ({"a": trained(25, 25), "b": trained()}, "a tuned in 0 trials, 25 of 25 epochs with patience 50 at"),
        ({"a": trained(), "b": trained(rate=0.01)}, "at learning rate 0.01; train"),
        ({"a": trained(), "b": trained(patience=5)}, "80 of 1000 epochs with patience 5 at"),
        ({"a": trained(), "b": trained(trials=30)}, "b tuned in 30 trials"),
    ],
)
def test_what_differs_is_told(sides: dict[str, TrainingBudget], says: str) -> None:
    found = told(**sides)
    assert found is not None
    assert found.startswith("unequal training budgets: ")
    assert says in found
    assert "\n" not in found


def test_compare_says_it(small_world: Dataset, tmp_path: Path) -> None:
    small_world.write(tmp_path / "data")
    quick = {"embedding_size": 8, "layers": 1, "threads": 1}
    for name, settings in (("short", {"epochs": 2}), ("fast", {"epochs": 2, "learning_rate": 0.05})):
        fit_into(tmp_path / name, small_world, make_method(small_world, "lightgcn", quick | settings))
    evaluator, entries = read_entries([tmp_path / "short", tmp_path / "fast"], tmp_path / "data")
    note = compare_entries(evaluator, entries).notes[0]
    assert note.startswith("unequal training budgets: short tuned in 0 trials, 2 of 2 epochs")
    manifest = json.loads((tmp_path / "short" / "manifest.json").read_text())
    assert manifest["tuning"] == {"trials": 0}
