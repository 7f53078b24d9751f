"""Hyperparameters chosen on validation: `tune.tune` for one method, `benchmark.benchmark` for many.

Both need Optuna, an extra, and are imported from their modules; the names below do not.
"""

from dpaa.tuning.processes import in_pool, stop_requested
from dpaa.tuning.space import search_space
from dpaa.tuning.trial import Trial, TuningGoal, trials_behind

__all__ = ["Trial", "TuningGoal", "in_pool", "search_space", "stop_requested", "trials_behind"]
