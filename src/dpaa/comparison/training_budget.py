"""What a run was given to learn with: epochs, learning rate, tuning.  Sides of a comparison should have had the same.

Early stopping at different epochs is no inequality: what counts is what was allowed, and that only where it was used
up.  Learning rates that were tuned in as many trials on every side may differ: each side then has its own best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaa.runs.model import Model

NOT_TUNED = {"method", "seed", "threads", "device", "kernel"}
"""What a config has that nobody tunes."""


@dataclass(frozen=True)
class TrainingBudget:
    """Of one run.  The files it is read from may be untrusted: what is not there, or odd, is None."""

    epochs: int | None
    """Trained in all; None for methods without epochs."""
    allowed: int | None
    patience: int | None
    learning_rate: float | None
    trials: int | None
    """Of tuning; 0 where nothing was tuned, None where there is nothing to tune."""
    best_epoch: int | None = None
    """That is kept; None where there was no validation to choose it."""

    @classmethod
    def of(cls, config: Mapping[str, Any], manifest: Mapping[str, Any]) -> TrainingBudget:
        """From the content of `config.json` and `manifest.json`."""
        parts = (manifest.get(name) for name in ("training", "tuning"))
        training, tuning = (part if isinstance(part, dict) else {} for part in parts)
        allowed = _whole(config.get("epochs"))
        rate = config.get("learning_rate")
        # Without validation the last epoch is always kept.
        by_validation = training.get("best_valid_recall@20") is not None
        return cls(
            epochs=None if allowed is None else _whole(training.get("epochs")),
            allowed=allowed,
            patience=_whole(config.get("patience")),
            learning_rate=rate if isinstance(rate, float) else None,
            trials=(_whole(tuning.get("trials")) or 0) if set(config) - NOT_TUNED else None,
            best_epoch=_whole(training.get("best_epoch")) if by_validation else None,
        )

    @classmethod
    def of_model(cls, model: Model) -> TrainingBudget:
        """Of a fitted or loaded model."""
        return cls.of(model.method.get_params(), model.manifest)

    @property
    def given(self) -> tuple[object, ...]:
        """What is the same for runs of one side: all but how training went."""
        return self.allowed, self.patience, self.learning_rate, self.trials

    @property
    def used_up(self) -> bool:
        """Whether all epochs that were allowed were trained."""
        return self.epochs is not None and self.allowed is not None and self.epochs >= self.allowed


Sides = Sequence[tuple[str, Sequence[TrainingBudget]]]
"""Names and their runs, each of one method with one group of hyperparameters."""


def unequal(sides: Sides) -> str | None:
    """One sentence where sides had unequal budgets."""
    first = {name: runs[0] for name, runs in sides if runs}
    trained = [one for one in first.values() if one.epochs is not None]
    trials = {one.trials for one in first.values() if one.trials is not None}
    tuned_alike = len(trials) == 1 and trials != {0}
    differs = (
        len(trials) > 1
        or (len({one.allowed for one in trained}) > 1 and any(run.used_up for _, runs in sides for run in runs))
        or (len({one.patience for one in trained}) > 1 and not all(one.used_up for one in trained))
        or (len({one.learning_rate for one in trained}) > 1 and not tuned_alike)
    )
    described = "; ".join(
        f"{name} tuned in {one.trials} trials"
        + (f", {one.epochs} of {one.allowed} epochs" if one in trained else "")
        + (f" with patience {one.patience} at learning rate {one.learning_rate}" if one in trained else "")
        for name, one in first.items()
        if one.trials is not None
    )
    return f"unequal training budgets: {described}; train and tune them alike before comparing" if differs else None


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
    last = next((run for run in runs if run.allowed and run.best_epoch == run.allowed), None)
    if last is None:
        return None
    return (
        f"{name}: the best epoch was the last one allowed; it may not have finished learning; allow more with "
        f"--set epochs={2 * (last.allowed or 0)}"
    )


def budget_warnings(sides: Sides) -> list[str]:
    """What to know of all sides of a comparison: unequal budgets first, then who may not have finished learning."""
    sentences = [unequal(sides), *(unfinished(name, runs) for name, runs in sides)]
    return [sentence for sentence in sentences if sentence is not None]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1e15 else None
