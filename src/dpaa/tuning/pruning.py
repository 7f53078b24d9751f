"""Which trials are given up: those worse than the median of the others that learn as fast.

A small learning rate is slow at first, whatever it comes to in the end: held against large ones after a few epochs,
nearly all of its trials would be pruned.  So a trial is only compared with finished ones of about its learning rate,
within a factor of `ALIKE`; where the rate is not searched, with all.
"""

from __future__ import annotations

import math
import statistics

from dpaa.tuning.storage import optuna

RATE = "learning_rate"
ALIKE = 2.0
"""Learning rates up to this factor apart are compared."""


class SameRatePruner(optuna.pruners.BasePruner):
    """The median rule among trials of one learning rate."""

    def __init__(self, startup: int, prune_after: int) -> None:
        self.startup = startup
        """Finished trials of this learning rate before any is pruned."""
        self.prune_after = prune_after
        """Epochs before a trial may be pruned."""

    def prune(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        """Whether the trial's best value so far is below the median of the others' at the same epoch."""
        epoch = trial.last_step
        if epoch is None or epoch < self.prune_after:
            return False
        finished = (optuna.trial.TrialState.COMPLETE,)
        others = [one for one in study.get_trials(deepcopy=False, states=finished) if _alike(one, trial)]
        if len(others) < self.startup:
            return False
        reached = [one.intermediate_values[epoch] for one in others if epoch in one.intermediate_values]
        known = [value for value in reached if not math.isnan(value)]
        best = max((value for value in trial.intermediate_values.values() if not math.isnan(value)), default=math.nan)
        return bool(known) and not best >= statistics.median(known)


def _alike(one: optuna.trial.FrozenTrial, other: optuna.trial.FrozenTrial) -> bool:
    rates = [float(trial.params[RATE]) for trial in (one, other) if RATE in trial.params]
    return len(rates) != 1 and (not rates or max(rates) <= ALIKE * min(rates))
