"""A sample of randomised exposure for training, set aside from validation that comes from such exposure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from dpaa.data.columns import SPLITS, Column, SplitName
from dpaa.data.dataset import Dataset
from dpaa.data.lint import lint
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.splits import random_global
from dpaa.errors import InputError


def with_randomised(data: Dataset, share: float = 0.5, seed: int = 0) -> Dataset:
    """The same with a share of the validation pairs, drawn at random, as its sample of randomised exposure.

    Validation must come from such exposure, as that of Coat, KuaiRec and the demo world does; the rest of it stays
    validation, so that nothing is chosen on what was trained on.
    """
    if not 0 < share < 1:
        raise InputError(f"share must be between 0 and 1, got {share:g}")
    if data.randomised is not None:
        raise InputError(f"{data.name} carries randomised pairs already; take the dataset it was made from")
    if data.about.get(VALIDATION_EXPOSURE) == "biased":
        raise InputError(
            f"validation of {data.name} comes from the log's own exposure, which is not random; use a dataset whose "
            "validation is, or give such pairs as validation with `dpaa data splits`"
        )
    chosen = pl.Series(random_global(len(data.valid), share, 0.0, np.random.default_rng(seed)) == 1, dtype=pl.Boolean)
    if chosen.all() or not chosen.any():
        raise InputError(f"{data.name} has {len(data.valid)} validation pairs, too few to share; give more of them")
    valid = data.frame("valid")
    frames: dict[SplitName, pl.DataFrame] = {
        "train": data.frame("train"),
        "valid": valid.filter(~chosen),
        "test": data.frame("test"),
    }
    odd = lint({split: data.split(split) for split in SPLITS}, data.user_ids, data.item_ids, data.candidates)
    kept = [note for note in data.notes if note not in odd]  # those of the splits are made anew
    made = Dataset.of(
        frames,
        name=f"{data.name}-randomised",
        candidates=None if data.candidates is None else data.item_ids.gather(data.candidates),
        about={key: value for key, value in data.about.items() if key != "counts"}
        | {"randomised": f"{share:.0%} of validation, seed {seed}"},
        notes=[*kept, f"{int(chosen.sum()):,} of the {len(valid):,} validation pairs are set aside for training"],
        randomised=valid.filter(chosen).select(Column.USER, Column.ITEM),
    )
    return replace(made, attributes=data.attributes)
