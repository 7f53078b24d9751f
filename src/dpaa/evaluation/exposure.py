"""Were the validation pairs seen at random, or by the same habits as the log?  It decides what tuning on them means.

A split of the log itself rewards whatever the log's exposure favoured: popularity chosen on it is popularity kept.
Pairs from random (or complete) exposure reward what people like.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaa.data.dataset import VALIDATION_EXPOSURE

if TYPE_CHECKING:
    from dpaa.data.dataset import Dataset

LOOKS_BIASED = 0.8
"""Tilt from which validation pairs of unknown origin are taken to come from the log's own exposure."""


@dataclass(frozen=True)
class ValidationExposure:
    """What is known of the validation pairs."""

    biased: bool
    known: bool
    """Whether the source says so; otherwise it is judged by the tilt."""
    tilt: float | None
    """How far validation pairs lean to popular items: 0 = as if items were drawn evenly, 1 = as training pairs do."""

    def in_words(self) -> str:
        """One sentence for people who are about to believe a choice made on it."""
        tilt = "" if self.tilt is None else f" (tilt to popular items {self.tilt:.2f} of training's)"
        if self.known and self.biased:
            return f"validation comes from the log's own exposure{tilt}: what is chosen on it favours popularity"
        if self.known:
            return f"validation comes from unbiased exposure{tilt}: what is chosen on it is what people like"
        judged = "the log's own exposure" if self.biased else "other exposure than the log"
        meaning = "a choice made on it favours popularity" if self.biased else "popularity can be judged on it"
        return f"the origin of the validation pairs is not known; they look like {judged}{tilt}: {meaning}"

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
    """`(mean_valid log(1 + d) − mean_items) / (mean_train log(1 + d) − mean_items)`.

    A training pair is treated as if it had been held out: its item's count goes without it.
    """
    if not len(data.valid):
        return None
    counts = np.bincount(data.train.item, minlength=data.n_items)
    allowed = slice(None) if data.candidates is None else data.candidates
    valid = data.valid.item if data.candidates is None else data.valid.item[np.isin(data.valid.item, data.candidates)]
    train = data.train.item if data.candidates is None else data.train.item[np.isin(data.train.item, data.candidates)]
    even = np.log1p(counts[allowed]).mean()
    span = np.log(counts[train]).mean() - even if len(train) else 0.0
    if span <= 0 or not len(valid):
        return None
    return float((np.log1p(counts[valid]).mean() - even) / span)
