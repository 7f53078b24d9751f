"""What is compared: a recommender, as one or several runs of it measured on one test split."""

from __future__ import annotations

from dataclasses import dataclass

from dpaa.evaluation.evaluator import Evaluation


@dataclass(frozen=True, eq=False)
class Entry:
    """One recommender: a file, or the runs of one method that differ in their seed."""

    name: str
    kind: str
    """`run` or `file`."""
    sources: tuple[str, ...]
    """Where each of the evaluations comes from."""
    evaluations: tuple[Evaluation, ...]
    seeds: tuple[int, ...] = ()
    """Of runs."""
    notes: tuple[str, ...] = ()
    """What to know of it, beside the others, before believing the comparison."""
