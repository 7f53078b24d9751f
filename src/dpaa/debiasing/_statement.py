"""Baseline and choice on the same held-out users: gain, cost, and who gains or loses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaa._text import four_digits
from dpaa.comparison.statistics import crossed_t
from dpaa.data.ids import Floats
from dpaa.debiasing._choice import DIVISIONS
from dpaa.debiasing._points import Candidate, Goal, Rows
from dpaa.evaluation.bias import TASTES
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import at_k
from dpaa.methods.base import Method

SHARES = ("recall", "ndcg", "coverage", "aplt", "hit", "precision")
"""Metrics that are shown as percentages."""
GROUPS = (*(f"{taste}-tastes" for taste in TASTES), "warm-users", "cold-users")


def moved(key: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """Format a metric before and after, shares as percentages and other values with four digits."""
    name = key.partition("@")[0]
    form = four_digits if name not in SHARES else ("{:.4f}" if name == "ndcg" else "{:.1%}").format
    return f"{form(before[key])} → {form(after[key])}"


@dataclass(frozen=True, eq=False)
class Statement:
    """The baseline and the choice on the same users.

    Parameters
    ----------
    users : how many
    folds : of all divisions, each measured with the choice made without it; 0 where all users chose
    agreeing : folds without which the choice is the same
    k : length of the lists
    before, after : metrics of the baseline and of the choice, by the names of `evaluate`
    intervals : metric → 95% interval of the change, of metrics that are means over users
    better, worse : shares of the users whose NDCG rises and falls
    """

    users: int
    folds: int
    agreeing: int
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
        return moved(at_k(metric, self.k), self.before, self.after)

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

    def measured_on(self) -> str:
        """Name the users and their part in the choice.

        Returns
        -------
        such as `on 1,887 held-out validation users (21 of 25 folds select this point)`
        """
        if not self.folds:
            return f"on {self.users:,} validation users, the same that it was selected on"
        agree = f"{self.agreeing} of {self.folds} folds select this point"
        return f"on {self.users:,} held-out validation users ({agree})"

    def sentences(self) -> list[str]:
        """Describe what changes for whom.

        Returns
        -------
        plain sentences
        """
        same = 1 - self.better - self.worse
        lines = [
            f"{self.better:.0%} of these users get a more accurate list, {self.worse:.0%} a less accurate one, "
            f"{same:.0%} an equally accurate one",
            f"coverage@{self.k} {self.moved('coverage')}, mean popularity of the lists (arp) {self.moved('arp')}",
        ]
        groups = [name for name in GROUPS if np.isfinite(self.before.get(f"ndcg@{self.k}/{name}", np.nan))]
        if groups:
            changes = ", ".join(f"{name.replace('-', ' ')} {self.moved(f'ndcg/{name}')}" for name in groups)
            lines.append(f"NDCG@{self.k} by group of users: {changes}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Describe the statement for `frontier.json`.

        Returns
        -------
        plain data
        """
        shares = {"better": self.better, "worse": self.worse}
        intervals = {name: list(ends) for name, ends in self.intervals.items()}
        users = {"users": self.users, "folds": self.folds, "agreeing": self.agreeing}
        sides = {"base": dict(self.before), "chosen": dict(self.after)}
        return users | sides | shares | {"change_intervals": intervals}


def state(
    evaluator: Evaluator,
    folds: Sequence[Rows],
    methods: Mapping[str, Method],
    base: Candidate,
    chosen: Candidate,
    picks: Sequence[Candidate] = (),
) -> Statement:
    """Measure the baseline and the choice.

    Parameters
    ----------
    evaluator : of the validation split
    folds : rows of its users
    methods : by the candidates' names of models
    base, chosen : what is compared
    picks : what was chosen without each fold, to be measured on it; without them `chosen` is measured on everybody

    Returns
    -------
    Statement
    """
    k, before = evaluator.protocol.k[-1], evaluator.evaluate(methods[base.model], base.kappa, base.reranker)
    lists = {
        pick: evaluator.lists(methods[pick.model], pick.kappa, pick.reranker)
        for pick in dict.fromkeys(picks or [chosen])
    }
    divisions, size = [lists[chosen]] if not picks else [], len(folds) // DIVISIONS
    for first in range(0, len(picks), size):
        divisions.append(np.empty((len(evaluator.users), k), np.int32))
        for fold, pick in zip(folds[first : first + size], picks[first : first + size], strict=True):
            divisions[-1][fold] = lists[pick][fold]
    afters = [evaluator.evaluate_lists(one) for one in divisions]
    metrics = {name: float(np.mean([one.metrics[name] for one in afters])) for name in before.metrics}
    changes = {
        name: [one.per_user[name].to_numpy() - before.per_user[name].to_numpy() for one in afters]
        for name in (f"ndcg@{k}", f"recall@{k}", f"recall@{k}/niche", f"recall@{k}/popular", f"aplt@{k}")
    }
    intervals = {name: _interval(np.mean(change, axis=0)) for name, change in changes.items()}
    ndcg, agreeing = np.array(changes[f"ndcg@{k}"]), sum(pick == chosen for pick in picks)
    shares = float((ndcg > 0).mean()), float((ndcg < 0).mean())
    return Statement(len(evaluator.users), len(picks), agreeing, k, before.metrics, metrics, intervals, *shares)


def _interval(change: Floats) -> tuple[float, float]:
    """95% interval of a mean over users with a value."""
    known = change[np.isfinite(change)]
    if len(known) < 2:
        return float("nan"), float("nan")
    _, low, high, _ = crossed_t(known[:, None], np.zeros((len(known), 1)))
    return float(low), float(high)
