"""What is chosen on validation, and what it is worth on test: one record for each cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from scripts.frontier.lists import SWEPT, TRAINED, Cell, K, Store, candidates

from dpaa.comparison.statistics import crossed_t
from dpaa.debiasing._points import Accuracy, Goal, Point, measure, parse_goals, user_folds
from dpaa.debiasing.choice import Chooser, relative_change
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.offpolicy import FLOOR, POWER

KEEPS = (0.99, 0.98, 0.95)
CONFIDENCES = (0.95, 0.5)
GOALS = ("niche-recall", "coverage")
BASES = ("best", "lightgcn")
FRONTIER, METHODS = "frontier", "trained methods"
"""Who is chosen from: all points of `dpaa debias`, or the paper's trained debiasing methods as they are.

Both against the same base, by the same rules."""
SHOWN = {
    "ndcg": "ndcg@20",
    "recall": "recall@20",
    "niche": "recall@20/niche",
    "coverage": "coverage@20",
    "arp": "arp@20",
}
POWERS = {"ips-0.75": 0.75, "ips-1": 1.0}
"""Inverse propensity with more power than the usual."""
NAIVE = "none"
"""In place of a confidence: the best point whose estimate is within the promise, without any confirmation."""


@dataclass(frozen=True)
class Measured:
    """All points of a cell on one split."""

    store: Store
    cell: Cell
    evaluator: Evaluator
    split: str

    @cached_property
    def accuracies(self) -> dict[str, Accuracy]:
        """The estimates; on test the log's exposure plays no part, so that one is enough."""
        truth = self.evaluator.truth
        made = {"logged": Accuracy(truth, K)}
        if self.cell.biased and self.split == "valid":
            made["ips"] = Accuracy(truth, K, "ips", POWER, FLOOR)
            made |= {name: Accuracy(truth, K, "ips", power, FLOOR) for name, power in POWERS.items()}
            made["balanced"] = Accuracy(truth, K, "balanced")
        return made

    def points(self, models: Sequence[str], goals: tuple[Goal, ...]) -> list[Point]:
        """In the order of `candidates` of each model."""
        folds = user_folds(len(self.evaluator.users), self.cell.seed) if self.split == "valid" else ()
        found: list[Point] = []
        for model in models:
            lists = self.store.read(self.cell, model)[self.split]
            for candidate, of_users in zip(
                candidates(model), lists, strict=False
            ):  # others have their plain point only
                at = self.evaluator.truth.context(of_users.astype(np.int32))
                values = {name: one.of(at) for name, one in self.accuracies.items()}
                found.append(measure(candidate, at, cast("Any", values), goals, folds))
        return found


def judge(store: Store, cell: Cell, others: Sequence[str]) -> dict[str, Any]:
    """The record of a cell: plain points of all models, and all choices; `others` have lists but are not swept."""
    data = cell.dataset(store.sources)
    sides = {
        split: Measured(store, cell, Evaluator(data, K, cast("Any", split), "drop"), split)
        for split in ("valid", "test")
    }
    both = parse_goals(GOALS)
    points = {split: side.points(SWEPT, both) for split, side in sides.items()}
    plain = {split: side.points(others, both) for split, side in sides.items()}
    accuracies = sides["valid"].accuracies
    return {
        "cell": cell.name,
        "data": cell.data,
        "seed": cell.seed,
        "biased": cell.biased,
        "swept": list(SWEPT),
        "users": {split: len(side.evaluator.users) for split, side in sides.items()},
        "pairs": {"train": len(data.train), "valid": len(data.valid), "test": len(data.test)},
        "effective": {name: one.effective_sample_size for name, one in accuracies.items()},
        "plain": _plain(points, plain),
        "choices": [row for place, goal in enumerate(both) for row in _choices(cell, points, plain, goal, place)],
        "dominated": [row for place, goal in enumerate(both) for row in _dominated(points, plain, goal, place)],
        "line": _line(points, both[0], 0) if others else [],
    }


def _shown(point: Point) -> dict[str, float]:
    return {name: round(point.metrics[key], 5) for name, key in SHOWN.items()}


def _plain(points: dict[str, list[Point]], plain: dict[str, list[Point]]) -> dict[str, Any]:
    """Every model as it is, on both splits."""
    pairs = zip(points["valid"] + plain["valid"], points["test"] + plain["test"], strict=True)
    return {
        one.candidate.model: {"valid": _shown(one), "test": _shown(other)}
        for one, other in pairs
        if one.candidate.plain
    }


def _with(points: Sequence[Point], goal: Goal, place: int) -> list[Point]:
    """The same points for one goal."""
    return [
        replace(
            one,
            goals=(goal,),
            per_user=(one.per_user[place],),
            values=(one.values[place],),
            outside=tuple((values[place],) for values in one.outside),
        )
        for one in points
    ]


def _choices(
    cell: Cell, points: dict[str, list[Point]], plain: dict[str, list[Point]], goal: Goal, place: int
) -> Iterator[dict[str, Any]]:
    """Each estimate, baseline, share to keep and confidence; of the trained methods where the best base is kept."""
    sides = {split: _with(points[split] + plain[split], goal, place) for split in ("valid", "test")}
    valid, test = sides["valid"], sides["test"]
    n = len(points["valid"])
    as_they_are = [place for place, point in enumerate(valid[:n]) if point.candidate.plain]
    methods = [place for place, one in enumerate(valid) if one.candidate.plain and one.candidate.model in TRAINED]
    truth = np.array([point.accuracy_of("logged") for point in test])
    score = np.array([point.values[0] for point in test])
    best_plain = max(truth[as_they_are])
    complete = {valid[one].candidate.model for one in methods} == set(TRAINED)
    for estimate in cast("Any", tuple(valid[0].accuracy)):
        for wanted in BASES:
            named = [one for one in as_they_are if wanted in ("best", valid[one].candidate.model)]
            base = max(named, key=lambda one: (valid[one].accuracy_of(estimate), -one))
            pools = {FRONTIER: list(range(n))}
            if complete and wanted == BASES[0]:
                pools[METHODS] = list(dict.fromkeys([base, *methods]))
            for keep in KEEPS:
                allowed = np.flatnonzero(truth[:n] >= keep * truth[base])
                oracle = int(allowed[np.argmax(score[:n][allowed])])
                for confidence in (*CONFIDENCES, NAIVE):
                    for name, pool in pools.items():
                        sure = 0.5 if confidence == NAIVE else confidence
                        chooser = Chooser(
                            [valid[one] for one in pool],
                            pool.index(base),
                            estimate,
                            user_folds(len(valid[0].accuracy[estimate]), cell.seed),
                            cast("float", sure),
                        )
                        found, told = _naive(chooser, keep) if confidence == NAIVE else _confirmed(chooser, keep)
                        chosen = pool[found]
                        yield {
                            "goal": goal.name,
                            "of": name,
                            "estimate": estimate,
                            "base_is": wanted,
                            "keep": keep,
                            "confidence": confidence,
                            "base": valid[base].candidate.name,
                            "chosen": valid[chosen].candidate.name,
                            "oracle": test[oracle].candidate.name,
                            **told,
                            "base_to_best_plain": truth[base] / best_plain,
                            **_on_test(test[chosen], test[base], keep),
                            "oracle_accuracy": truth[oracle] / truth[base] - 1,
                            "goal_of": {"base": score[base], "chosen": score[chosen], "oracle": score[oracle]},
                            "valid": {"base": _shown(valid[base]), "chosen": _shown(valid[chosen])},
                            "test": {"base": _shown(test[base]), "chosen": _shown(test[chosen])},
                        }


def _confirmed(chooser: Chooser, keep: float) -> tuple[int, dict[str, Any]]:
    chosen, found = chooser.within(keep)
    change = found.change
    told = [change.estimate, change.low, change.high]
    return chosen, {"certainty": found.certainty, "valid_change": told}


def _naive(chooser: Chooser, keep: float) -> tuple[int, dict[str, Any]]:
    accuracy, score = chooser.accuracies(), chooser.scores()
    allowed = np.flatnonzero(accuracy >= keep * accuracy[chooser.base])
    chosen = int(allowed[np.argmax(score[allowed])])
    change = chooser.change(chosen)
    return chosen, {"certainty": None, "valid_change": [change.estimate, change.low, change.high]}


def _on_test(chosen: Point, base: Point, keep: float) -> dict[str, Any]:
    """Change of accuracy with its 95 % interval, whether the promise held, and whether it is surely broken (95 %)."""
    one, other = (point.accuracy["logged"] for point in (chosen, base))
    change = relative_change(one, other)
    high = crossed_t(one[:, None], other[:, None], keep, 0.9)[2]
    return {
        "test_change": [change.estimate, change.low, change.high],
        "held": bool(one.mean() >= keep * other.mean() - 1e-12),
        "surely_broken": bool(high < 0),
    }


def _line(points: dict[str, list[Point]], goal: Goal, place: int) -> list[dict[str, Any]]:
    """The frontier, which is found on validation, from the most accurate point on: what its points are on both."""
    valid, test = (_with(points[split], goal, place) for split in ("valid", "test"))
    base = next(place for place, point in enumerate(valid) if point.candidate.plain)
    return [
        {
            "name": valid[spot].candidate.name,
            "valid": [valid[spot].accuracy_of("logged"), valid[spot].values[0]],
            "test": [test[spot].accuracy_of("logged"), test[spot].values[0]],
        }
        for spot in Chooser(valid, base, "logged", ()).frontier()
    ]


def _dominated(
    points: dict[str, list[Point]], plain: dict[str, list[Point]], goal: Goal, place: int
) -> Iterator[dict[str, Any]]:
    """For each model as it is: the point that validation would take instead, and both on test."""
    swept = _with(points["valid"], goal, place)
    base = max(
        (one for one, point in enumerate(swept) if point.candidate.plain),
        key=lambda one: swept[one].accuracy_of("logged"),
    )
    chooser = Chooser(swept, base, "logged", ())
    accuracy, score, line = chooser.accuracies(), chooser.scores(), chooser.frontier()
    valid, test = points["valid"] + plain["valid"], points["test"] + plain["test"]
    for one, other in zip(valid, test, strict=True):
        if one.candidate.plain:
            mine, value = one.accuracy_of("logged"), one.values[place]
            above = [
                spot for spot in line if accuracy[spot] >= mine and swept[spot].candidate.name != one.candidate.name
            ]
            instead = max(above, key=lambda spot: score[spot], default=None)
            row: dict[str, Any] = {"goal": goal.name, "model": one.candidate.model, "instead": None}
            if instead is not None:
                there = test[instead]
                row |= {
                    "instead": there.candidate.name,
                    "dominated_valid": bool(score[instead] >= value),
                    "accuracy_ratio": there.accuracy_of("logged") / max(other.accuracy_of("logged"), 1e-12),
                    "goal_test": [other.values[place], there.values[place]],
                    "dominated_test": bool(
                        there.accuracy_of("logged") >= other.accuracy_of("logged")
                        and there.values[place] >= other.values[place]
                    ),
                }
            yield row
