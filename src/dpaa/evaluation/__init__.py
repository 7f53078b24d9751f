"""Trained method in, numbers out; or anybody's lists in: `measure` (arrays), `read_recommendations` (a file).

from dpaa.evaluation import measure, read_recommendations
found = measure(lists, relevant, counts, history=history)
found.metrics["ndcg@20"], found.metrics["gini@20"]
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dpaa.evaluation.metrics import Measured, measure
from dpaa.evaluation.recommendations import Recommendations, read_recommendations

__all__ = ["Evaluation", "Evaluator", "Measured", "Recommendations", "measure", "read_recommendations"]


def __getattr__(name: str) -> Any:
    if name in ("Evaluation", "Evaluator"):  # they need torch; arrays and files do not
        return getattr(import_module("dpaa.evaluation.evaluator"), name)
    raise AttributeError(f"module 'dpaa.evaluation' has no attribute {name!r}")
