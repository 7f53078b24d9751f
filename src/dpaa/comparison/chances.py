"""What a run was given to learn with: epochs, learning rate, tuning.  Sides of a comparison should have had the same.

Early stopping at different epochs is no inequality: what counts is what was allowed, and that only where it was used
up.  Learning rates that were tuned in as many trials on every side may differ: each side then has its own best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaa._text import counted, printable
from dpaa.methods.graph_method import EARLIER_DEFAULTS
from dpaa.runs.model import Model

NOT_TUNED = {"method", "seed", "threads", "device", "kernel"}
"""What a config has that nobody tunes."""
LONGEST_VALUE = 20
"""Characters of a setting's value that are told."""


@dataclass(frozen=True)
class Chances:
    """Of one run.  The files it is read from may be a stranger's: what is not there, or odd, is None."""

    epochs: int | None
    """Trained in all; None for methods without epochs."""
    allowed: int | None
    patience: int | None
    rates: tuple[float, ...]
    """The smallest and the largest learning rate in use; of the parts of an assembled method where it has any."""
    trials: int | None
    """Settings tried before these were taken: 0 where nobody tuned, None where there is nothing to tune."""
    allows_more: str | None
    """Where the best epoch was the last one allowed: a setting that allows more, such as `epochs=50`."""
    best_epoch: int | None = None
    """That is kept; None where there was no validation to choose it, or the method is made of several trainings."""
    schedule: tuple[tuple[str, str], ...] = ()
    """How the rate moves and when training stops, counted in steps: settings and their values."""

    @classmethod
    def of(cls, config: Mapping[str, Any], manifest: Mapping[str, Any]) -> Chances:
        """From what `config.json` and `manifest.json` hold."""
        training, tuning = (_object(manifest, name) for name in ("training", "tuning"))
        allowed, rate = (_number(config.get(name)) for name in ("epochs", "learning_rate"))
        limited = allowed is not None and training.get("best_epoch") == allowed
        by_validation = training.get("best_valid_recall@20") is not None  # without it the last epoch is always kept
        return cls(
            epochs=None if allowed is None else _whole(training.get("epochs")),
            allowed=_whole(allowed),
            patience=_whole(config.get("patience")),
            rates=() if rate is None else (rate, rate),
            trials=(_whole(tuning.get("trials")) or 0) if set(config) - NOT_TUNED else None,
            allows_more=f"epochs={2 * allowed:g}" if by_validation and limited and allowed else None,
            best_epoch=_whole(training.get("best_epoch")) if by_validation else None,
            schedule=() if allowed is None else _schedule(config),
        )

    @classmethod
    def of_model(cls, model: Model) -> Chances:
        """Of a fitted or loaded model."""
        return cls.of(model.method.get_params(), model.manifest)

    @property
    def given(self) -> tuple[object, ...]:
        """What was the same for runs of one side: all but how it went."""
        return self.allowed, self.patience, self.rates, self.trials, self.schedule

    @property
    def used_up(self) -> bool:
        """Whether all epochs that were allowed were trained."""
        return self.epochs is not None and self.allowed is not None and self.epochs >= self.allowed

    @property
    def cut_short(self) -> bool:
        """Whether the limit came before patience ran out."""
        if not self.used_up or self.best_epoch is None or self.patience is None:
            return False
        return (self.epochs or 0) - self.best_epoch < self.patience


def unequal(sides: Sequence[tuple[str, Sequence[Chances]]]) -> str | None:
    """One sentence where sides (a name and its runs, of one method with one group of settings) had unequal budgets."""
    first = {name: runs[0] for name, runs in sides if runs}
    learning = [one for one in first.values() if one.epochs is not None]
    trials = {one.trials for one in first.values() if one.trials is not None}
    by_tuning = len(trials) > 1
    by_epochs = len({one.allowed for one in learning}) > 1 and any(run.used_up for _, runs in sides for run in runs)
    by_patience = len({one.patience for one in learning}) > 1 and not all(one.used_up for one in learning)
    by_rate = len({one.rates for one in learning}) > 1 and (by_tuning or trials == {0})
    schedules = [dict(one.schedule) for one in learning if one.schedule]
    by_schedule = [name for name in EARLIER_DEFAULTS if len({one.get(name) for one in schedules}) > 1]
    if not (by_tuning or by_epochs or by_patience or by_rate or by_schedule):
        return None
    told = []
    for name, runs in sides:
        words = []
        if runs and runs[0].epochs is not None and (by_epochs or by_patience or by_rate or by_schedule):
            words.append(_trained(runs, by_patience))
            words += [f"{name} {value}" for name, value in runs[0].schedule if name in by_schedule]
        if runs and runs[0].trials is not None and by_tuning:
            tried = runs[0].trials
            words.append(f"tuned in {counted(tried, 'trial', 'trials')}" if tried else "not tuned")
        if words:
            told.append(f"{name} {', '.join(words)}")
    remedy = "train and tune" if by_tuning else "train"
    return f"unequal training budgets: {'; '.join(told)}; {remedy} them alike before comparing"


def unfinished(name: str, runs: Sequence[Chances]) -> str | None:
    """One sentence where the best epoch of a run was the last one allowed."""
    more = next((run.allows_more for run in runs if run.allows_more is not None), None)
    if more is None:
        return None
    number = sum(run.allows_more is not None for run in runs)
    whose = f" of {number} of {len(runs)} runs" if len(runs) > 1 else ""
    what = "part" if runs[0].best_epoch is None else "epoch"  # a method made of several trainings keeps one of them
    return (
        f"{name}: the best {what}{whose} was the last one allowed; it may not have finished learning; allow more with "
        f"--set {more}"
    )


def cut_short(name: str, runs: Sequence[Chances]) -> str | None:
    """One sentence where the limit ended a run that was still within its patience; weaker than `unfinished`."""
    cut = [run for run in runs if run.cut_short]
    if not cut:
        return None
    return (
        f"{name}: stopped by its limit of {counted(cut[0].allowed or 0, 'epoch', 'epochs')}, not by its patience of "
        f"{cut[0].patience}; it might gain from more"
    )


def warnings(sides: Sequence[tuple[str, Sequence[Chances]]]) -> list[str]:
    """What to know of all sides of a comparison: unequal budgets first, then who may not have finished learning."""
    found = [unequal(sides), *(unfinished(name, runs) or cut_short(name, runs) for name, runs in sides)]
    return [sentence for sentence in found if sentence is not None]


def _trained(runs: Sequence[Chances], with_patience: bool) -> str:
    """`trained 60 to 80 of 1,000 epochs at learning rate 0.001 to 0.005`."""
    one = runs[0]
    epochs = sorted(run.epochs for run in runs if run.epochs is not None)
    trained = f"{epochs[0]:,}" if epochs[0] == epochs[-1] else f"{epochs[0]:,} to {epochs[-1]:,}"
    allowed = "" if one.allowed is None else f" of {one.allowed:,}"
    patience = f" with patience {one.patience}" if with_patience and one.patience is not None else ""
    rates = " to ".join(f"{rate:g}" for rate in dict.fromkeys(one.rates))
    return f"trained {trained}{allowed} epochs{patience}{f' at learning rate {rates}' if rates else ''}"


def _schedule(config: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Runs that were made before there were these settings had what they replaced."""
    return tuple((name, _told(config.get(name, usual))) for name, usual in EARLIER_DEFAULTS.items())


def _told(value: object) -> str:
    found = _number(value)
    return printable(str(value))[:LONGEST_VALUE] if found is None else f"{found:g}"


def _object(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = content.get(name)
    return found if isinstance(found, dict) else {}


def _number(value: object) -> float | None:
    ok = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if ok else None  # type: ignore[arg-type]


def _whole(value: object) -> int | None:
    found = _number(value)
    return None if found is None or found < 0 else int(found)
