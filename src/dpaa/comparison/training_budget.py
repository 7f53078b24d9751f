"""What a run was given to learn with: epochs, learning rate, tuning.  Sides of a comparison should have had the same.

Early stopping at different epochs is no inequality: what counts is what was allowed, and that only where it was used
up.  Learning rates that were tuned in as many trials on every side may differ: each side then has its own best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaa._text import counted, printable
from dpaa.methods.graph_method import EARLIER_DEFAULTS
from dpaa.runs.model import Model

NOT_TUNED = {"method", "seed", "threads", "device", "kernel"}
"""What a config has that nobody tunes."""
LONGEST_VALUE = 20
"""Characters of a hyperparameter's value that are shown."""


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
    schedule: tuple[tuple[str, str], ...] = ()
    """How the rate moves and when training stops, counted in steps: hyperparameters and their values."""

    @classmethod
    def of(cls, config: Mapping[str, Any], manifest: Mapping[str, Any]) -> TrainingBudget:
        """From the content of `config.json` and `manifest.json`."""
        parts = (manifest.get(name) for name in ("training", "tuning"))
        training, tuning = (part if isinstance(part, dict) else {} for part in parts)
        allowed = _whole(config.get("epochs"))
        # Without validation the last epoch is always kept.
        by_validation = training.get("best_valid_recall@20") is not None
        # Runs from before there were these hyperparameters had what they replaced.
        schedule = tuple((name, _shown(config.get(name, usual))) for name, usual in EARLIER_DEFAULTS.items())
        return cls(
            epochs=None if allowed is None else _whole(training.get("epochs")),
            allowed=allowed,
            patience=_whole(config.get("patience")),
            learning_rate=_number(config.get("learning_rate")),
            trials=(_whole(tuning.get("trials")) or 0) if set(config) - NOT_TUNED else None,
            best_epoch=_whole(training.get("best_epoch")) if by_validation else None,
            schedule=() if allowed is None else schedule,
        )

    @classmethod
    def of_model(cls, model: Model) -> TrainingBudget:
        """Of a fitted or loaded model."""
        return cls.of(model.method.get_params(), model.manifest)

    @property
    def given(self) -> tuple[object, ...]:
        """What is the same for runs of one side: all but how training went."""
        return self.allowed, self.patience, self.learning_rate, self.trials, self.schedule

    @property
    def used_up(self) -> bool:
        """Whether all epochs that were allowed were trained."""
        return self.epochs is not None and self.allowed is not None and self.epochs >= self.allowed

    @property
    def best_was_last(self) -> bool:
        """Whether the best epoch was the last one allowed."""
        return bool(self.allowed) and self.best_epoch == self.allowed

    @property
    def cut_short(self) -> bool:
        """Whether the limit came before patience ran out."""
        if not self.used_up or self.best_epoch is None or self.patience is None:
            return False
        return (self.epochs or 0) - self.best_epoch < self.patience


Sides = Sequence[tuple[str, Sequence[TrainingBudget]]]
"""Names and their runs, each of one method with one group of hyperparameters."""


def unequal(sides: Sides) -> str | None:
    """One sentence where sides had unequal budgets."""
    first = {name: runs[0] for name, runs in sides if runs}
    learning = [one for one in first.values() if one.epochs is not None]
    trials = {one.trials for one in first.values() if one.trials is not None}
    by_tuning = len(trials) > 1
    by_epochs = len({one.allowed for one in learning}) > 1 and any(run.used_up for _, runs in sides for run in runs)
    by_patience = len({one.patience for one in learning}) > 1 and not all(one.used_up for one in learning)
    by_rate = len({one.learning_rate for one in learning}) > 1 and (by_tuning or trials == {0})
    schedules = [dict(one.schedule) for one in learning if one.schedule]
    by_schedule = [name for name in EARLIER_DEFAULTS if len({one.get(name) for one in schedules}) > 1]
    by_training = bool(by_epochs or by_patience or by_rate or by_schedule)
    if not (by_tuning or by_training):
        return None
    described = []
    for name, runs in sides:
        words = []
        if runs and runs[0].epochs is not None and by_training:
            words.append(_trained(runs, by_patience))
            words += [f"{key} {value}" for key, value in runs[0].schedule if key in by_schedule]
        if runs and runs[0].trials is not None and by_tuning:
            tried = runs[0].trials
            words.append(f"tuned in {counted(tried, 'trial', 'trials')}" if tried else "not tuned")
        if words:
            described.append(f"{name} {', '.join(words)}")
    remedy = "train and tune" if by_tuning else "train"
    return f"unequal training budgets: {'; '.join(described)}; {remedy} them alike before comparing"


def unfinished(name: str, runs: Sequence[TrainingBudget]) -> str | None:
    """One sentence where the best epoch of a run was the last one allowed."""
    last = [run for run in runs if run.best_was_last]
    if not last:
        return None
    whose = f" of {len(last)} of {len(runs)} runs" if len(runs) > 1 else ""
    return (
        f"{name}: the best epoch{whose} was the last one allowed; it may not have finished learning; allow more with "
        f"--set epochs={2 * (last[0].allowed or 0)}"
    )


def cut_short(name: str, runs: Sequence[TrainingBudget]) -> str | None:
    """One sentence where the limit ended a run that was still within its patience; weaker than `unfinished`."""
    cut = next((run for run in runs if run.cut_short), None)
    if cut is None:
        return None
    return (
        f"{name}: stopped by its limit of {counted(cut.allowed or 0, 'epoch', 'epochs')}, not by its patience of "
        f"{cut.patience}; it might gain from more"
    )


def budget_warnings(sides: Sides) -> list[str]:
    """What to know of all sides of a comparison: unequal budgets first, then who may not have finished learning."""

    def sentences() -> Iterator[str | None]:
        yield unequal(sides)
        yield from (unfinished(name, runs) or cut_short(name, runs) for name, runs in sides)

    return [sentence for sentence in sentences() if sentence is not None]


def _trained(runs: Sequence[TrainingBudget], with_patience: bool) -> str:
    """`trained 60 to 80 of 1,000 epochs with patience 50 at learning rate 0.001`."""
    one, epochs = runs[0], sorted(run.epochs for run in runs if run.epochs is not None)
    trained = " to ".join(f"{number:,}" for number in dict.fromkeys((epochs[0], epochs[-1])))
    allowed = "" if one.allowed is None else f" of {one.allowed:,}"
    patience = f" with patience {one.patience}" if with_patience and one.patience is not None else ""
    rate = "" if one.learning_rate is None else f" at learning rate {one.learning_rate:g}"
    return f"trained {trained}{allowed} epochs{patience}{rate}"


def _shown(value: object) -> str:
    number = _number(value)
    return printable(str(value))[:LONGEST_VALUE] if number is None else f"{number:g}"


def _number(value: object) -> float | None:
    ok = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if ok else None  # type: ignore[arg-type]


def _whole(value: object) -> int | None:
    number = _number(value)
    return None if number is None or number < 0 else int(number)
