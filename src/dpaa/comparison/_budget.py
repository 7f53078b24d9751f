"""Training budgets of the sides of a comparison: unequal budgets make differences between methods hard to interpret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpaa.runs.model import Model


@dataclass(frozen=True)
class TrainingBudget:
    """Training budget of a run: the sides of a comparison should have equal ones."""

    epochs: int | None
    """At most; None for methods without epochs."""
    patience: int | None
    learning_rate: float | None
    trials: int
    """Of tuning."""
    best_epoch: int | None
    """None where there was no validation to choose it."""

    @classmethod
    def of_model(cls, model: Model) -> TrainingBudget:
        """Read the budget of a fitted or loaded model.

        Parameters
        ----------
        model : with or without a run folder

        Returns
        -------
        its epochs, patience, learning rate, trials and best epoch
        """
        training, tuning = model.entry("training"), model.entry("tuning")
        best = training.get("best_epoch") if training.get("best_valid_recall@20") is not None else None
        epochs, patience, rate = map(model.method.get_params().get, ("epochs", "patience", "learning_rate"))
        return cls(epochs, patience, rate, tuning.get("trials", 0), best)


def unfinished(name: str, runs: Sequence[TrainingBudget]) -> str | None:
    """One sentence where the best epoch of a run was the last one allowed.

    Parameters
    ----------
    name : of the method or entry
    runs : its budgets

    Returns
    -------
    the sentence, or None
    """
    last = [run.epochs for run in runs if run.epochs and run.best_epoch == run.epochs]
    remedy = f"training may not have converged; allow more epochs with --set epochs={2 * max(last)}" if last else ""
    return f"{name}: the best epoch was the last one allowed; {remedy}" if last else None


def budget_warnings(sides: Sequence[tuple[str, Sequence[TrainingBudget]]]) -> list[str]:
    """List notes on the training of a comparison: unequal budgets, and runs that may not have converged.

    Learning rates that were tuned in as many trials may differ: each side then has its own best.

    Parameters
    ----------
    sides : names and the budgets of their runs

    Returns
    -------
    sentences
    """
    first = {name: runs[0] for name, runs in sides if runs and runs[0].epochs is not None}
    given = [
        (run.epochs, run.patience, run.trials, None if run.trials else run.learning_rate) for run in first.values()
    ]
    warnings = [line for name, runs in sides if (line := unfinished(name, runs))]
    if all(budget == given[0] for budget in given):
        return warnings
    described = "; ".join(
        f"{name} up to {run.epochs} epochs with patience {run.patience} at learning rate {run.learning_rate}, tuned in "
        f"{run.trials} trials"
        for name, run in first.items()
    )
    return [f"unequal training budgets: {described}; give them equal budgets before comparing", *warnings]
