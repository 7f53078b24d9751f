"""Unequal training budgets: said where a fair reader would ask, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.comparison import TrainingBudget, budget_warnings, read_entries, unfinished
from dpaa.comparison.training_budget import cut_short, unequal
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
        {"a": trained(), "b": trained(1000, best=990)},  # the same allowance
        {"a": trained(), "b": trained(allowed=2000)},  # a larger allowance that nobody used
        {"a": trained(25, 25), "b": trained(25, 25, best=25)},
        {"a": trained(), "b": EASE, "c": MOST_POPULAR},  # no epochs to be unequal in
        {"a": trained(trials=30, rate=1e-2), "b": trained(trials=30)},  # each has its own best
        {"a": trained(trials=30), "b": TrainingBudget.of({"method": "ease", "ridge": 1.0}, {"tuning": {"trials": 30}})},
        {"a": trained(trials=30), "b": MOST_POPULAR},  # nothing to tune
        {"a": trained()},
        {},
    ],
)
def test_no_false_alarm(sides: dict[str, TrainingBudget]) -> None:
    assert told(**sides) is None


@pytest.mark.parametrize(
    ("sides", "says"),
    [
        ({"a": trained(25, 25), "b": trained()}, "a trained 25 of 25 epochs at learning rate 0.001; b trained 80 of"),
        ({"a": trained(), "b": trained(rate=0.01)}, "0.001; b trained 80 of 1,000 epochs at learning rate 0.01; train"),
        ({"a": trained(), "b": trained(patience=5)}, "a trained 80 of 1,000 epochs with patience 50 at"),
        ({"a": trained(), "b": trained(trials=30)}, ": a not tuned; b tuned in 30 trials; train and tune them alike"),
        ({"a": trained(trials=30, rate=0.01), "b": trained(trials=9)}, "at learning rate 0.01, tuned in 30 trials; b"),
    ],
)
def test_what_differs_is_told(sides: dict[str, TrainingBudget], says: str) -> None:
    found = told(**sides)
    assert found is not None
    assert found.startswith("unequal training budgets: ")
    assert says in found
    assert "\n" not in found


def test_a_best_epoch_that_was_the_last_one_allowed() -> None:
    assert unfinished("a", [trained(25, 25, best=25)]) == (
        "a: the best epoch was the last one allowed; it may not have finished learning; allow more with --set epochs=50"
    )
    assert unfinished("a", [trained(25, 25, best=24)]) is None
    assert unfinished("a", [trained(80, 1000, best=80)]) is None
    several = unfinished("a", [trained(25, 25, best=25), trained(25, 25, best=9)])
    assert several is not None
    assert "the best epoch of 1 of 2 runs was the last one allowed" in several


def test_a_limit_that_came_before_patience_ran_out_is_told_beside_others() -> None:
    assert cut_short("a", [trained(25, 25, best=20)]) == (
        "a: stopped by its limit of 25 epochs, not by its patience of 50; it might gain from more"
    )
    assert cut_short("a", [trained(80, 80, best=30)]) is None
    both = [("a", [trained(25, 25, best=20)]), ("b", [trained(25, 25, best=25)])]
    assert [line[:2] for line in budget_warnings(both)] == ["a:", "b:"]


@given(
    st.dictionaries(
        st.sampled_from(["epochs", "patience", "learning_rate", "method"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.none(), max_size=2),
    ),
    st.dictionaries(
        st.sampled_from(["training", "tuning"]),
        st.none()
        | st.integers()
        | st.dictionaries(
            st.sampled_from(["epochs", "best_epoch", "best_valid_recall@20", "trials"]),
            st.none()
            | st.integers()
            | st.floats()
            | st.sampled_from(["epochs", "x"])
            | st.lists(st.integers() | st.none()),
        ),
    ),
)
def test_untrusted_files_never_break_it(config: dict[str, Any], manifest: dict[str, Any]) -> None:
    found = TrainingBudget.of(config, manifest)
    budget_warnings([("a", [found, trained()]), ("b", [trained(25, 25)]), ("c", [found])])


def test_compare_says_it(small_world: Dataset, tmp_path: Path) -> None:
    small_world.write(tmp_path / "data")
    quick = {"embedding_size": 8, "layers": 1, "threads": 1}
    for name, settings in (("short", {"epochs": 2}), ("fast", {"epochs": 2, "learning_rate": 0.05})):
        fit_into(tmp_path / name, small_world, make_method(small_world, "lightgcn", quick | settings))
    _, entries = read_entries([tmp_path / "short", tmp_path / "fast"], tmp_path / "data")
    notes = [note for entry in entries for note in entry.notes]
    assert notes[0].startswith(
        "unequal training budgets: short trained 2 of 2 epochs at learning rate 0.001; fast trained 2 of 2"
    )
    manifest = json.loads((tmp_path / "short" / "manifest.json").read_text())
    assert manifest["tuning"] == {"trials": 0}


def test_what_is_counted_in_steps_is_compared_too() -> None:
    """Runs from before there were such settings had a constant rate, and patience in epochs alone."""
    config = {"method": "lightgcn", "epochs": 1000, "patience": 50, "learning_rate": 1e-3}
    steps = {"learning_rate_schedule": "inverse-sqrt", "warmup_steps": 100, "patience_steps": "auto"}
    new = TrainingBudget.of(config | steps, {"training": {"epochs": 80}})
    found = told(old=trained(), new=new)
    assert found is not None
    assert "old trained 80 of 1,000 epochs at learning rate 0.001, learning_rate_schedule constant" in found
    assert "learning_rate_schedule inverse-sqrt, warmup_steps 100, patience_steps auto; train them alike" in found
    assert "validation_steps" not in found  # the same on both sides
    assert told(a=new, b=new, ease=EASE) is None
    odd = TrainingBudget.of(config | {"warmup_steps": "\x1b[31m" + "9" * 5000}, {"training": {"epochs": 80}})
    said = told(a=odd, b=new)
    assert said is not None
    assert "\x1b" not in said
    assert len(said) < 500
