"""Points and choosers from plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaa.debiasing._points import FOLDS, Candidate, Goal, Point, user_folds
from dpaa.debiasing.choice import Chooser
from dpaa.evaluation.context import GroundTruth


def made_point(
    accuracy: Any, *scores: float, goals: Sequence[str] = ("aplt",), name: str = "m", kappa: float = 0.0
) -> Point:
    """Users' accuracies, and one value for each goal, the same for all users."""
    values = np.asarray(accuracy, dtype=np.float64)
    return Point(
        Candidate(name, None, kappa),
        {"logged": values},
        tuple(Goal.parse(goal) for goal in goals),
        per_user=tuple(np.full(len(values), score) for score in scores),
        values=scores,
        outside=(scores,) * FOLDS,
        metrics={},
    )


def chooser(
    accuracies: Sequence[Any], scores: Sequence[float], base: int = 0, confidence: float = 0.95, seed: int = 0
) -> Chooser:
    """The points' accuracies by user and scores for the goal, higher is better."""
    points = [
        made_point(accuracy, score, kappa=float(-place))
        for place, (accuracy, score) in enumerate(zip(accuracies, scores, strict=True))
    ]
    return Chooser(points, base, "logged", user_folds(len(points[0].accuracy["logged"]), seed), confidence)


def truth_of(relevant: list[set[int]], counts: Any, **more: Any) -> GroundTruth:
    """Users 0, 1 … with these relevant items."""
    n, counts = len(relevant), np.asarray(counts)
    keys = sorted(row * len(counts) + item for row, items in enumerate(relevant) for item in items)
    return GroundTruth(np.arange(n), n, counts, np.array(keys, dtype=np.int64), **more)
