"""The popularity dial of a finished run: κ chosen on validation, for an objective."""

from __future__ import annotations

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.evaluation.dial_curve import DialCurve, Objective, dial_curve
from dpaa.evaluation.evaluator import Evaluator
from dpaa.runs.model import Model

K = 20
"""Length of the lists κ is chosen by, as at the end of training."""


def choose_dial(model: Model, data: Dataset, objective: str) -> DialCurve:
    """Draw the curve on validation anew, what this objective chooses in force; the test split is not opened."""
    Objective.parse(objective)
    model.check_trained_on(data, "choose κ on the dataset it was trained on")
    if not len(data.valid):
        raise InputError(
            f"dataset {data.name} has no validation pairs to choose κ on; give the popularity dial a number"
        )
    return dial_curve(model.method, Evaluator(data, K, "valid", "drop"), objective).in_force()
