"""Off-policy estimates for a test split with the log's bias: relevant pairs are weighted by inverse propensity.

A pair is in the split only if its user met the item; popular items are met more often.  With the propensity p_i, the
relative chance that item i was met, the weight `1/p_i` gives the rarely met their due.  Propensities are a guess from
training counts, `p_i = max(floor, (count_i / largest count)^power)`: the numbers below are estimates under that guess
and no substitute for a split with random exposure.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from dpaa.data.dataset import Dataset
from dpaa.data.ids import Array, Floats, Mask
from dpaa.data.pairs import positions_within
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.errors import InputError
from dpaa.evaluation.bias import among
from dpaa.evaluation.context import GroundTruth

POWER = 0.5
"""Saito et al., WSDM 2020."""
FLOOR = 0.01
"""No pair weighs more than 1/floor pairs with the most popular item."""
FEW_PAIRS = 100
"""Effective sample size below which an estimate is mostly noise."""
LARGE_SHARE = 0.1
"""Share of clipped or unseen pairs above which the guessed propensities are not to be trusted."""


@dataclass(frozen=True)
class OffPolicy:
    """Estimates and how far to trust them."""

    metrics: dict[str, float]
    """`snips_recall@k`, `snips_ndcg@k`, `stratified_recall@k`."""
    power: float
    floor: float
    pairs: int
    """Relevant pairs."""
    effective_sample_size: float
    """`(Σ w)² / Σ w²`: as many pairs of equal weight would be as noisy."""
    clipped_share: float
    """Share of the pairs whose propensity was raised to the floor."""
    unseen_share: float
    """Share of the pairs whose item never occurs in training: counted as if it occurred once."""
    warnings: list[str]
    """Why the estimates cannot be trusted; empty where nothing speaks against them but the guess itself."""


def propensities(counts: Array, power: float = POWER, floor: float = FLOOR) -> tuple[Floats, Mask]:
    """`max(floor, (count / largest count)^power)`, an item that never occurs as if once.

    Parameters
    ----------
    counts : (n_items,) training counts
    power : 0 makes all alike, so that estimates are the plain metrics
    floor : smallest propensity

    Returns
    -------
    (n_items,) propensities, and (n_items,) which of them were raised to the floor
    """
    if not 0.0 <= power <= 3.0 or not 0.0 < floor <= 1.0:
        raise InputError(
            f"the power of propensities must be 0 to 3, their floor above 0 and up to 1, got {power!r} and {floor!r}"
        )
    raw = (np.maximum(counts, 1.0) / max(float(np.max(counts)), 1.0)) ** power
    return np.maximum(raw, floor), raw < floor


def fitted_power(counts: Array, liked: Array) -> float:
    """Fit the power of propensities to liked pairs of randomised exposure.

    Training pairs come about as exposure × taste, these pairs as taste alone.  Where exposure is `count^power`, an item
    that is in training has a number of these pairs in proportion to `count^(1 − power)`; the exponent that makes the
    pairs at hand most likely solves `mean of log count over the pairs = mean of log count, weighted by count^exponent`.

    Parameters
    ----------
    counts : (n_items,) training counts
    liked : (pairs,) items of the pairs

    Returns
    -------
    the power, from 0 (the log's exposure was even) to 1.5
    """
    logs = np.log(counts[counts > 0].astype(np.float64))
    seen = counts[liked]
    seen = np.log(seen[seen > 0].astype(np.float64))
    if not len(seen) or np.ptp(logs) == 0:
        raise InputError("no pair of randomised exposure has an item that is in training; give more of them")

    def excess(exponent: float) -> float:
        weight = np.exp(exponent * (logs - logs.max()))  # relative to the largest: cannot overflow
        return float((weight * logs).sum() / weight.sum() - seen.mean())

    low, high = -0.5, 1.0
    # No root in between: the pairs are most likely at one of the ends.
    if excess(low) >= 0 or excess(high) <= 0:
        return 1.5 if excess(low) >= 0 else 0.0
    return float(np.clip(1.0 - brentq(excess, low, high), 0.0, 1.5))


def off_policy(
    truth: GroundTruth, lists: Array, cuts: tuple[int, ...], *, power: float = POWER, floor: float = FLOOR
) -> OffPolicy:
    """Estimate recall and NDCG of lists; each estimate is in [0, 1], higher is better.

    - `snips_recall`: self-normalised inverse-propensity recall `mean_u Σ_hits w / Σ_relevant w` (Yang et al., 2018).
    - `stratified_recall`: `Σ_u Σ_hits w / Σ_u Σ_relevant w`, so that users with many rare relevant items count for more
      (Steck, RecSys 2011).
    - `snips_ndcg`: `mean_u Σ_hits w/log2(rank + 1)` over the same sum for the user's best list of k, heaviest first.

    Parameters
    ----------
    truth : what the lists are measured against
    lists : (rows, largest k)
    cuts : values of k
    power, floor : of the propensities

    Returns
    -------
    OffPolicy
    """
    propensity, raised = propensities(truth.counts, power, floor)
    weight = 1.0 / propensity
    row, item = truth.relevant_pairs
    n_rows = len(truth.users)
    total = np.bincount(row, weight[item], minlength=n_rows).astype(np.float64)
    counted = total > 0
    gained = np.where(truth.among(lists, truth.relevant), weight[lists], 0.0)
    metrics: dict[str, float] = {}
    for k in cuts:
        discount = 1.0 / np.log2(np.arange(k) + 2.0)
        hit_weight = gained[counted, :k].sum(axis=1)
        metrics[f"snips_recall@{k}"] = float(np.mean(hit_weight / total[counted]))
        best = best_gain(row, weight[item], discount, n_rows)[counted]
        metrics[f"snips_ndcg@{k}"] = float(np.mean(gained[counted, :k] @ discount / best))
        metrics[f"stratified_recall@{k}"] = float(hit_weight.sum() / total[counted].sum())
    weights = weight[item]
    size = float(weights.sum() ** 2 / (weights**2).sum())
    clipped, unseen = float(raised[item].mean()), float((truth.counts[item] == 0).mean())
    warnings = []
    if size < max(FEW_PAIRS, LARGE_SHARE * len(item)):
        few = f"effective sample size {size:,.0f} of {len(item):,} pairs"
        warnings.append(f"a few rare pairs dominate the estimates ({few}): use a smaller power or a higher floor")
    if max(clipped, unseen) > LARGE_SHARE:
        below = f"{clipped:.0%} of the pairs have a propensity below the floor of {floor:g}"
        warnings.append(f"{below}, {unseen:.0%} an item that never occurs in training: their weights are guesses")
    return OffPolicy(metrics, power, floor, len(item), size, clipped, unseen, warnings)


def best_gain(row: Array, weight: Floats, discount: Floats, n_rows: int) -> Floats:
    """`Σ_j w_(j) discount_j` over each row's heaviest pairs, as many as there are discounts.

    Parameters
    ----------
    row, weight : (pairs,) row and weight of each relevant pair
    discount : (k,)
    n_rows : number of rows

    Returns
    -------
    (n_rows,)
    """
    order = np.lexsort((-weight, row))
    rank = positions_within(np.bincount(row, minlength=n_rows))
    within = rank < len(discount)
    gain = weight[order][within] * discount[rank[within]]
    return np.bincount(row[order][within], gain, minlength=n_rows).astype(np.float64)


LOOKS_BIASED = 0.8
"""Tilt from which validation pairs of unknown origin are taken to come from the log's own exposure.

A part of a log has about 1; liked pairs from random exposure had 0.2 to 0.5 where the log was biased at all.
"""
ENOUGH = 3.0
"""Standard errors of a mean over the validation pairs that the lean of training must exceed."""


@dataclass(frozen=True)
class ValidationExposure:
    """Whether validation pairs come from biased or unbiased exposure."""

    biased: bool
    known: bool
    """Whether the source says so; otherwise it is judged by the tilt."""
    tilt: float | None
    """How far validation pairs lean to popular items: 0 = as if items were drawn evenly, 1 = as training pairs do;
    None where it cannot be estimated."""

    def in_words(self) -> str:
        """Describe in one sentence how far a choice made on these pairs can be trusted."""
        origin = "comes from" if self.known else "seems to come from"
        exposure = "the log's own exposure" if self.biased else "unbiased exposure"
        tilt = "" if self.tilt is None else f" (tilt to popular items {self.tilt:.2f} of training's)"
        meaning = "selection on it favours popularity" if self.biased else "popularity can be judged on it"
        return f"validation {origin} {exposure}{tilt}: {meaning}"

    def as_json(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self) | {"in_words": self.in_words()}


def validation_exposure(data: Dataset) -> ValidationExposure:
    """Determine whether validation pairs are as biased as the log, from the source or else from their tilt."""
    tilt, stated = _tilt(data), data.about.get(VALIDATION_EXPOSURE)
    if stated in ("biased", "unbiased"):
        return ValidationExposure(stated == "biased", True, tilt)
    return ValidationExposure(tilt is None or tilt >= LOOKS_BIASED, False, tilt)


def _tilt(data: Dataset) -> float | None:
    """`(mean_valid log(1 + d) − mean_items) / (mean_train log(1 + d) − mean_items)`, over candidates.

    A training pair is treated as if it had been held out: its item's count goes without it, as that of a validation
    pair does.  So a random part of the log itself has a tilt of 1, up to chance.  Validation pairs that are also in
    training are left out, as they are where hyperparameters are chosen.  None where training pairs lean so little to
    popular items that so few validation pairs could not tell.
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
