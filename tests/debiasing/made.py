"""Choosers and ground truths from plain numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaa.debiasing._choice import DIVISIONS, FOLDS, Chooser, divide
from dpaa.debiasing._points import Candidate, Point
from dpaa.evaluation.context import GroundTruth


def chooser(accuracies: Sequence[Any], scores: Sequence[float], base: int = 0, seed: int = 0) -> Chooser:
    """The points' accuracies by user, or by estimate and user, and scores for the goal, higher is better."""
    accuracy = [np.atleast_2d(np.asarray(one, dtype=np.float32)) for one in accuracies]
    folds = divide(accuracy[0].shape[1], seed)
    return Chooser(accuracy, np.tile(np.array(scores, dtype=np.float64), (len(folds) + 1, 1)), folds, base)


def made_point(accuracy: Any, *values: float, name: str = "m", kappa: float = 0.0, **metrics: float) -> Point:
    """Users' accuracies, and one value for each goal, the same for any users."""
    per_user = np.atleast_2d(np.asarray(accuracy, dtype=np.float32))
    return Point(Candidate(name, None, kappa), per_user, (values,) * (DIVISIONS * FOLDS + 1), metrics)


def truth_of(relevant: list[set[int]], counts: Any) -> GroundTruth:
    """Users 0, 1 … with these relevant items."""
    n, counts = len(relevant), np.asarray(counts)
    keys = sorted(row * len(counts) + item for row, items in enumerate(relevant) for item in items)
    return GroundTruth(np.arange(n), n, counts, np.array(keys, dtype=np.int64))
