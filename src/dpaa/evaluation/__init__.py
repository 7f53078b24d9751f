"""Trained method in, numbers out; or anybody's lists in: `measure` (arrays), `read_recommendations` (a file).

from dpaa.evaluation import measure, read_recommendations
found = measure(lists, relevant, counts, history=history)
found.metrics["ndcg@20"], found.metrics["gini@20"]
"""

from __future__ import annotations

from typing import Any

from dpaa.evaluation.evaluator import Evaluation, Evaluator
from dpaa.evaluation.recommendations import Recommendations, read_recommendations
from dpaa.evaluation.suite import Measured, measure

_HOME = {
    "Evaluation": "evaluator",
    "Evaluator": "evaluator",
    "Measured": "suite",
    "Recommendations": "recommendations",
    "measure": "suite",
    "read_recommendations": "recommendations",
}
"""Public name → module; imported when first used, since the evaluator needs torch and arrays do not."""

__all__ = ["Evaluation", "Evaluator", "Measured", "Recommendations", "measure", "read_recommendations"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dpaa.evaluation' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"dpaa.evaluation.{_HOME[name]}"), name)
