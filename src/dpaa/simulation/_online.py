"""`dpaa plan`: how many users and days an online test needs, from the variance over users measured offline.

Users are split at random into two halves, one per recommender, and the means are compared by a two-sided z test.  With
σ² the variances of the metric over users, both measured offline, each half needs

    n = (z_{1−α/2} + z_{power})² (σ²_A + σ²_B) / δ²

users with a value to detect a difference of δ.  Users without a value (for example without a relevant niche item) are
part of the test but carry no information, so the total is n divided by the share of users with a value.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpaa._text import finite
from dpaa.comparison import Entry, full_name, per_user_values
from dpaa.errors import InputError, need_whole

PLANNED = ("ndcg", "recall/niche", "aplt")
"""Metrics that are planned for unless others are named: the loss, and the gain."""


@dataclass(frozen=True)
class Need:
    """Users and days that the test of one metric needs."""

    metric: str
    one: float
    other: float
    detected: float
    """The difference that is to be seen, `detect` times the first recommender's mean."""
    users: float
    """In both halves together, to see that; NaN where it is 0."""
    users_promised: float
    """To see the difference that was measured offline."""
    days: int | None = None
    days_promised: int | None = None


@dataclass(frozen=True)
class Plan:
    """Users and days of an online test.

    Parameters
    ----------
    names : of the two recommenders
    needs : one per metric
    detect, power, confidence, users_per_day : as given
    """

    names: tuple[str, str]
    needs: tuple[Need, ...]
    detect: float
    power: float
    confidence: float
    users_per_day: int | None

    def as_json(self) -> dict[str, Any]:
        """Describe the plan for `--json`.

        Returns
        -------
        its fields
        """
        return dict(finite(asdict(self)))


def users_needed(variance: float, difference: float, power: float, confidence: float) -> float:
    """Users of each half that a two-sided z test needs.

    Parameters
    ----------
    variance : σ²_A + σ²_B, over users
    difference : between the means
    power : probability to see it
    confidence : 1 − the probability to see a difference that is not there

    Returns
    -------
    users, not rounded; NaN where the difference is 0
    """
    quantiles = float(ndtri((1 + confidence) / 2) + ndtri(power))
    return quantiles**2 * variance / difference**2 if difference else float("nan")


def plan(
    entries: Sequence[Entry],
    *,
    k: int,
    detect: float = 0.01,
    metrics: Sequence[str] = PLANNED,
    power: float = 0.8,
    confidence: float = 0.95,
    users_per_day: int | None = None,
) -> Plan:
    """Plan an online test of two recommenders from their offline evaluations.

    Parameters
    ----------
    entries : the recommender in production and the new one, from `dpaa.comparison.read_entries`
    k : length of the lists
    detect : smallest relative difference that is to be seen; 0.01 is 1% of the first one's mean
    metrics : means over users, with or without @k
    power : probability to see it, if it is there
    confidence : of the two-sided test
    users_per_day : new users who enter the test each day, for the number of days

    Returns
    -------
    Plan
    """
    if len(entries) != 2:
        raise InputError(f"a test has two recommenders, got {len(entries)}; name two runs of different methods")
    for name, value, low in (("detect", detect, 0.0), ("power", power, 0.5), ("confidence", confidence, 0.5)):
        if not low < value < 1:
            raise InputError(f"{name} must be between {low:g} and 1, got {value:g}")
    if users_per_day is not None:
        need_whole(users_per_day, "users per day")
    first, second = (entry.evaluations[0] for entry in entries)
    needs = []
    for name in (full_name(metric, k, list(first.metrics)) for metric in metrics):
        values = per_user_values(first, name), per_user_values(second, name)
        if values[0] is None or values[1] is None:
            raise InputError(f"{name} is not a mean over users, so no test can be planned; choose e.g. ndcg")
        one, other = (each[~np.isnan(each)] for each in values if each is not None)
        if min(len(one), len(other)) < 2:
            raise InputError(f"{name} has a value for fewer than two users; choose another metric")
        variance, known = float(one.var(ddof=1) + other.var(ddof=1)), min(len(one), len(other)) / len(first.per_user)
        # Relative to the recommender in production, whose mean is known before the test.
        wanted = detect * abs(float(one.mean()))
        means = float(one.mean()), float(other.mean())
        both = (users_needed(variance, each, power, confidence) for each in (wanted, means[1] - means[0]))
        users = [2 * each / known for each in both]
        days = (None if math.isnan(each) else max(1, math.ceil(each / (users_per_day or math.inf))) for each in users)
        needs.append(Need(name, *means, wanted, users[0], users[1], *(days if users_per_day else ())))
    return Plan((entries[0].name, entries[1].name), tuple(needs), detect, power, confidence, users_per_day)
