"""Models, frames of recommendations or their files held against one another, in Python: `dpaa.compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpaa.comparison.compare import Choices
from dpaa.comparison.compare import compare as hold_against
from dpaa.comparison.entry import Entry
from dpaa.comparison.result import Comparison
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_type
from dpaa.evaluation.evaluator import Evaluation, Evaluator, Overlap
from dpaa.evaluation.recommendations import read_recommendations
from dpaa.runs.measure import measured
from dpaa.runs.model import Model


def compare(
    data: Dataset,
    entries: Mapping[str, Any],
    *,
    k: int = 20,
    overlap: Overlap = "drop",
    mask_valid: bool = False,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
    **choices: Any,
) -> Comparison:
    """Several recommenders on the test split of a dataset: deltas, intervals and corrected p-values.

    `entries`: name → a model, several models of one method (trained with different seeds), or recommendations (a file
    or a frame).  The others are held against `baseline`, the first unless named; further choices as in
    `dpaa.comparison.compare.Choices`.
    """
    need_type(data, Dataset, "data", "read one with dpaa.read_dataset or make one with dpaa.Dataset.from_frame")
    if not isinstance(entries, Mapping) or len(entries) < 2:
        raise InputError('entries must name at least two models or lists, such as {"old": old, "new": new}')
    evaluator = Evaluator(data, k, "test", overlap, mask_valid)
    made = [_entry(str(name), given, evaluator) for name, given in entries.items()]
    return hold_against(evaluator, made, Choices(baseline, tuple(metrics), **choices))


def _entry(name: str, given: Any, evaluator: Evaluator) -> Entry:
    models = list(given) if isinstance(given, list | tuple) else [given]
    if not models:
        raise InputError(f"entry {name!r} is empty; give a model, several, or recommendations")
    if not all(isinstance(one, Model) for one in models):
        if len(models) > 1:
            raise InputError(f"entry {name!r} has several parts that are not all models; give one file or frame")
        return Entry(name, "file", (name,), (_of_lists(models[0], evaluator),))
    found = [measured(one, evaluator) for one in models]
    seeds = tuple(int(one.method.seed) for one in models)
    sources = tuple(name if len(models) == 1 else f"{name} (seed {seed})" for seed in seeds)
    return Entry(name, "run", sources, tuple(map(_small, found)), seeds)


def _of_lists(given: Any, evaluator: Evaluator) -> Evaluation:
    data, k = evaluator.dataset, evaluator.protocol.k[-1]
    lists = read_recommendations(Path(given) if isinstance(given, str) else given, data.user_ids, data.item_ids, k)
    return _small(evaluator.evaluate_recommendations(lists))


def _small(found: Evaluation) -> Evaluation:
    return replace(found, lists=found.lists.astype(np.int32))
