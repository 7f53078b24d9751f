"""Which of several numbers is the best, by the direction that the table of metrics gives."""

from __future__ import annotations

from dpaa.evaluation.metrics import explain

__all__ = ["best_of", "explain"]


def best_of(metric: str, values: dict[str, float]) -> set[str]:
    """The names with the best value, as shown with four digits; none where a name has no direction."""
    known = explain(metric)
    if known is None or len(values) < 2:
        return set()
    distance = {"high": lambda value: -value, "low": lambda value: value, "zero": abs}[known.better]
    rounded = {name: distance(round(value, 4)) for name, value in values.items()}
    found = {name for name, value in rounded.items() if value == min(rounded.values())}
    return found if len(found) < len(values) else set()
