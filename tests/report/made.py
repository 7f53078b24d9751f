"""Runs small enough to work out by hand: four users, five items, and lists and metrics as they are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpaa.data.dataset import Dataset
from dpaa.report._inputs import Family, Inputs, Run
from dpaa.report._partial import Partial
from dpaa.runs.fit import fit
from dpaa.runs.folder import RunFolder

TRAIN = {"user_id": [1, 1, 2, 2, 3, 3, 4, 4], "item_id": ["a", "b", "a", "c", "a", "b", "a", "d"]}
TEST = {"user_id": [1, 2, 3, 4], "item_id": ["c", "b", "d", "e"]}
QUICK: dict[str, dict[str, Any]] = {"lightgcn": {"embedding_size": 2, "layers": 1, "epochs": 1, "threads": 1}}


def made_family(name: str = "hand") -> Family:
    """Items a to e were used 4, 2, 1, 1 and 0 times: a, b and c are popular, and the top fifth, a, has half of all."""
    data = Dataset.from_frame(pl.DataFrame(TRAIN), test=pl.DataFrame(TEST), name=name)
    return Family(name, data.fingerprint, data, 2)


def add_run(
    family: Family,
    name: str,
    method: str = "ease",
    *,
    metrics: dict[str, float | None] | None = None,
    lists: Sequence[str] | None = None,
    history: Sequence[dict[str, Any]] = (),
    manifest: dict[str, Any] | None = None,
    groups: Any = None,
    **protocol: Any,
) -> Run:
    """A run of the family: its `lists` are items such as "cd", one for each user; without metrics it is unmeasured."""
    assert family.dataset is not None
    model = fit(family.dataset, method, **QUICK.get(method, {}))
    model = replace(model, manifest=model.manifest | (manifest or {}))
    content = {"metrics": metrics, "protocol": {"k": [2], "overlap": "drop"} | protocol, "groups": groups or {}}
    evaluation = None if metrics is None else Partial(content)
    run = Run(name, RunFolder(Path(name)), model, list(history), evaluation, family)
    if lists is not None:
        vars(run)["lists"] = np.array([["abcde".index(item) for item in one] for one in lists])
    family.runs.append(run)
    return run


def made_inputs(*families: Family) -> Inputs:
    return Inputs(list(families))
