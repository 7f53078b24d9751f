"""The popularity dial as its definition reads, in float64, one user and one item after the other."""

import math

import numpy as np


def slow_dial(scores: np.ndarray, counts: np.ndarray, kappa: float) -> np.ndarray:
    """`score + κ · sd_u · log(1 + d_i) / sd(log(1 + d))`; `scores` are (users, all items)."""
    logs = [math.log(1.0 + float(count)) for count in counts]
    spread = deviation(logs)
    turned = np.empty(scores.shape, dtype=np.float64)
    for user, row in enumerate(scores):
        own = deviation([float(score) for score in row])
        for item, score in enumerate(row):
            popularity = logs[item] / spread if spread > 0 else 0.0
            turned[user, item] = float(score) + kappa * own * popularity
    return turned


def deviation(values: list[float]) -> float:
    """About the mean, over n; 0 where all are equal."""
    if min(values) == max(values):
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
