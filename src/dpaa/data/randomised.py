"""A sample of randomised exposure for training, set aside from validation that comes from such exposure."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.splits import random_share
from dpaa.errors import InputError


def with_randomised(data: Dataset, share: float = 0.5, seed: int = 0) -> Dataset:
    """Set a share of the validation pairs, drawn at random, aside as the sample of randomised exposure.

    Parameters
    ----------
    data : a dataset whose validation comes from such exposure, as that of Coat, KuaiRec and the demo world does
    share : of the validation pairs; the rest stays validation, so that nothing is chosen on what was trained on
    seed : of the draw

    Returns
    -------
    a dataset with `randomised`
    """
    if not 0 < share < 1:
        raise InputError(f"share must be between 0 and 1, got {share:g}")
    if data.randomised is not None:
        raise InputError(f"{data.name} carries randomised pairs already; take the dataset it was made from")
    if data.about.get(VALIDATION_EXPOSURE) == "biased":
        why = "comes from the log's own exposure, which is not random"
        raise InputError(f"validation of {data.name} {why}; give random pairs with `dpaa data splits`")
    valid, chosen = data.frame("valid"), pl.Series(random_share(len(data.valid), share, seed))
    if chosen.all() or not chosen.any():
        raise InputError(f"{data.name} has {len(data.valid)} validation pairs, too few to share; give more of them")
    about = {key: value for key, value in data.about.items() if key != "counts"}
    made = Dataset.of(
        {"train": data.frame("train"), "valid": valid.filter(~chosen), "test": data.frame("test")},
        name=f"{data.name}-randomised",
        candidates=None if data.candidates is None else data.item_ids.gather(data.candidates),
        about=about | {"randomised": f"{share:.0%} of validation, seed {seed}"},
        notes=[f"{int(chosen.sum()):,} of the {len(valid):,} validation pairs are set aside for training"],
        randomised=valid.filter(chosen).select(Column.USER, Column.ITEM),
    )
    return replace(made, attributes=data.attributes)
