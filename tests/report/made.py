"""Runs small enough to work out by hand: four users, five items, and lists and metrics as they are given."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpaa import Dataset, fit
from dpaa.report._inputs import Colours, Document, Family, Inputs, Measured, Run

TRAIN = {"user_id": [1, 1, 2, 2, 3, 3, 4, 4], "item_id": ["a", "b", "a", "c", "a", "b", "a", "d"]}
QUICK: dict[str, dict[str, Any]] = {"lightgcn": {"embedding_size": 2, "layers": 1, "epochs": 1, "threads": 1}}


def runs_of(folder: Path) -> list[Path]:
    """The runs of `dpaa demo`."""
    return [folder / "runs" / name for name in ("most-popular", "lightgcn", "dpaa")]


def made_family(name: str = "hand") -> Family:
    """Items a to d were used 4, 2, 1 and 1 times, e only in the test: a, b and c are popular, and the top fifth, a,
    has half of all.
    """
    test = pl.DataFrame({"user_id": [1, 2, 3, 4], "item_id": ["c", "b", "d", "e"]})
    data = Dataset.from_frame(pl.DataFrame(TRAIN), test=test, name=name)
    return Family(name, data.fingerprint, data, 2, Colours())


def add_run(
    family: Family,
    name: str,
    method: str = "ease",
    *,
    metrics: dict[str, float | None] | None = None,
    exposure: Sequence[int] | None = None,
) -> Run:
    """A run of the family; `exposure` counts the lists that hold items a to e; without metrics it is unmeasured."""
    model = fit(family.source, method, **QUICK.get(method, {}))
    protocol = {"split": "test", "k": [2], "overlap": "drop", "mask_valid": False}
    protocol |= {"candidates": 5, "users": 4, "relevant": 4}
    content = {"metrics": metrics, "protocol": protocol, "groups": {}}
    measured = None if metrics is None else Measured.model_validate(content)
    run = Run(name, Path(name), model, [], measured, family)
    if exposure is not None:
        vars(run)["exposure"] = np.array(exposure)
    family.runs.append(run)
    return run


def made_inputs(*families: Family, documents: Sequence[Document] = ()) -> Inputs:
    return Inputs(list(families), list(documents))
