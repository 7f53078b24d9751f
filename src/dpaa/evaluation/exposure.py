"""Were the validation pairs seen at random, or by the same habits as the log?  It decides what tuning on them means.

A split of the log itself rewards whatever the log's exposure favoured: popularity chosen on it is popularity kept.
Pairs from random (or complete) exposure reward what people like.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpaa.data.dataset import Dataset
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.evaluation.bias import among

LOOKS_BIASED = 0.8
"""Tilt from which validation pairs of unknown origin are taken to come from the log's own exposure.

A part of a log has about 1; liked pairs from random exposure had 0.2 to 0.5 where the log was biased at all.
"""
ENOUGH = 3.0
"""Standard errors of a mean over the validation pairs that the lean of training must exceed."""


@dataclass(frozen=True)
class ValidationExposure:
    """What is known of the validation pairs."""

    biased: bool
    known: bool
    """Whether the source says so; otherwise it is judged by the tilt."""
    tilt: float | None
    """How far validation pairs lean to popular items: 0 = as if items were drawn evenly, 1 = as training pairs do;
    None where it cannot be told."""

    def in_words(self) -> str:
        """One sentence for people who are about to believe a choice made on it."""
        tilt = "" if self.tilt is None else f" (tilt to popular items {self.tilt:.2f} of training's)"
        if self.known and self.biased:
            return f"validation comes from the log's own exposure{tilt}: what is chosen on it favours popularity"
        if self.known:
            return f"validation comes from unbiased exposure{tilt}: what is chosen on it is what people like"
        if self.tilt is None:
            return (
                "the origin of the validation pairs is not known and cannot be seen from them: take it that what is "
                "chosen on them favours popularity"
            )
        judged = "come from the log's own exposure" if self.biased else "come from other exposure than the log"
        meaning = "what is chosen on them favours popularity" if self.biased else "popularity can be judged on them"
        return f"the origin of the validation pairs is not known; they look as if they {judged}{tilt}: {meaning}"

    def as_json(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self) | {"in_words": self.in_words()}


def validation_exposure(data: Dataset) -> ValidationExposure:
    """What the source says, else what the pairs look like."""
    tilt = _tilt(data)
    said = data.about.get(VALIDATION_EXPOSURE)
    if said in ("biased", "unbiased"):
        return ValidationExposure(said == "biased", True, tilt)
    return ValidationExposure(tilt is None or tilt >= LOOKS_BIASED, False, tilt)


def _tilt(data: Dataset) -> float | None:
    """`(mean_valid log(1 + d) − mean_items) / (mean_train log(1 + d) − mean_items)`, over candidates.

    A training pair is treated as if it had been held out: its item's count goes without it, as that of a validation
    pair does.  So a random part of the log itself has a tilt of 1, up to chance.  Validation pairs that are also in
    training are left out, as they are where settings are chosen.  None where training pairs lean so little to popular
    items that so few validation pairs could not tell.
    """
    n_items = data.n_items
    allowed = among(n_items, data.candidates)
    fresh = ~np.isin(data.valid.keys(n_items), data.train.keys(n_items))
    valid, train = data.valid.item[fresh & allowed[data.valid.item]], data.train.item[allowed[data.train.item]]
    if not len(valid) or not len(train):
        return None
    counts = np.bincount(data.train.item, minlength=n_items)
    logs = np.log1p(counts)
    even = logs[allowed].mean()
    span = np.log(counts[train]).mean() - even
    if span <= ENOUGH * logs[allowed].std() / np.sqrt(len(valid)):
        return None
    return float((logs[valid].mean() - even) / span)
