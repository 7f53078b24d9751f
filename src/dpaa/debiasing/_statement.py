"""What a choice changes, and for whom: both sides measured on the same held-out users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaa.comparison.statistics import crossed_t
from dpaa.debiasing._points import Candidate, Floats, Goal, Rows
from dpaa.evaluation.bias import TASTES
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods.base import Method

SHARES = ("recall", "ndcg", "coverage", "aplt", "hit", "precision")
"""Metrics that are shown as percentages."""
GROUPS = (*(f"{taste}-tastes" for taste in TASTES), "warm-users", "cold-users")


@dataclass(frozen=True, eq=False)
class Statement:
    """The baseline and the choice on users who took no part in choosing the baseline, the points and their order.

    Parameters
    ----------
    users : how many
    k : length of the lists
    before, after : metrics of the baseline and of the choice, by the names of `evaluate`
    intervals : metric → 95% interval of the change, of metrics that are means over users
    better, worse : shares of the users whose NDCG rises and falls
    """

    users: int
    k: int
    before: Mapping[str, float]
    after: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    better: float
    worse: float

    def moved(self, metric: str) -> str:
        """Format a metric before and after.

        Parameters
        ----------
        metric : by its name without `@k`, such as `recall/niche`

        Returns
        -------
        such as `0.7% → 5.8%`; values that are no shares with four digits
        """
        name, _, group = metric.partition("/")
        key = f"{name}@{self.k}{'/' if group else ''}{group}"
        form = ".1%" if name in SHARES and name != "ndcg" else ".4f" if name == "ndcg" else ".4g"
        return f"{self.before[key]:{form}} → {self.after[key]:{form}}"

    def headline(self, goals: Sequence[Goal]) -> str:
        """Describe gain and cost in a line.

        Parameters
        ----------
        goals : what the lists should gain

        Returns
        -------
        such as `niche-recall 0.7% → 5.8%, popular-item recall 22.0% → 18.1%, NDCG@20 0.0820 → 0.0803`
        """
        gains = [f"{goal.name} {self.moved(goal.key(self.k).replace(f'@{self.k}', ''))}" for goal in goals]
        costs = [f"popular-item recall {self.moved('recall/popular')}", f"NDCG@{self.k} {self.moved('ndcg')}"]
        return ", ".join(gains + costs)

    def sentences(self) -> list[str]:
        """Describe what changes for whom.

        Returns
        -------
        plain sentences
        """
        same = 1 - self.better - self.worse
        lines = [
            f"{self.better:.0%} of these users get a more accurate list, {self.worse:.0%} a less accurate one, "
            f"{same:.0%} one as accurate as before",
            f"coverage@{self.k} {self.moved('coverage')}, mean popularity of what is shown (arp) {self.moved('arp')}",
        ]
        groups = [name for name in GROUPS if np.isfinite(self.before.get(f"ndcg@{self.k}/{name}", np.nan))]
        if groups:
            told = ", ".join(f"{name.replace('-', ' ')} {self.moved(f'ndcg/{name}')}" for name in groups)
            lines.append(f"NDCG@{self.k} by group of users: {told}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Describe the statement for `frontier.json`.

        Returns
        -------
        plain data
        """
        shares = {"better": self.better, "worse": self.worse}
        intervals = {name: list(ends) for name, ends in self.intervals.items()}
        return {"users": self.users, "base": dict(self.before), "chosen": dict(self.after), **shares} | {
            "change_intervals": intervals
        }


def state(evaluator: Evaluator, rows: Rows, sides: Sequence[tuple[Method, Candidate]]) -> Statement:
    """Measure two candidates on some users.

    Parameters
    ----------
    evaluator : of the validation split
    rows : of the users
    sides : method and candidate of the baseline and of the choice

    Returns
    -------
    Statement
    """
    held_out = evaluator.of_rows(np.sort(rows))
    before, after = (held_out.evaluate(method, one.kappa, one.reranker) for method, one in sides)
    k, intervals = evaluator.protocol.k[-1], {}
    for name in (f"ndcg@{k}", f"recall@{k}", f"recall@{k}/niche", f"recall@{k}/popular", f"aplt@{k}"):
        pair = [one.per_user[name].to_numpy() for one in (after, before)]
        intervals[name] = _interval(*(values[np.isfinite(pair[0]) & np.isfinite(pair[1])] for values in pair))
    change = after.per_user[f"ndcg@{k}"].to_numpy() - before.per_user[f"ndcg@{k}"].to_numpy()
    shares = float((change > 0).mean()), float((change < 0).mean())
    return Statement(len(rows), k, before.metrics, after.metrics, intervals, *shares)


def _interval(one: Floats, other: Floats) -> tuple[float, float]:
    """95% interval of a difference of means over the same users."""
    if len(one) < 2:
        return float("nan"), float("nan")
    _, low, high, _ = crossed_t(one[:, None], other[:, None])
    return float(low), float(high)
