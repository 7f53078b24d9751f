"""Datasets made from others: with a known severity of bias, or with a sample of randomised exposure for training.

Severity.  Unbiased validation and test, and a training log that repeats the popular.  Input: a log in which exposure
was (nearly) complete, such as KuaiRec's small matrix.
1. All pairs are shuffled: 10% validation, 20% test, 70% pool.
2. Minimum exposure: every item of the pool gives one of its pool pairs, chosen at random, to the training set.
3. Items are ranked by pool count (descending, ties by lower index); `P(rank) ∝ rank^(−severity)`.
4. Each user draws `round(0.2 · pool pairs of the user)` items, at least one, with replacement from the own pool items,
   with `P` renormalised over them.
5. Training set = union of 2 and 4, so it shrinks as severity grows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from dpaa.data.dataset import ABOUT_FILE, Dataset, read_dataset
from dpaa.data.ids import IDS, SPLITS, Column, Ints, SplitName, distinct_ids, encode
from dpaa.data.inputs import open_log
from dpaa.data.log import ColumnNames, PositiveRule, Reading, read_log
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.splits import random_share
from dpaa.errors import InputError

VALID_SHARE, TEST_SHARE, DRAWN_SHARE = 0.1, 0.2, 0.2


def read_pairs(
    sources: Sequence[str | Path],
    *,
    columns: ColumnNames | None = None,
    positive: str | None = None,
    file_format: str | None = None,
) -> tuple[pl.DataFrame, list[str]]:
    """Read the distinct pairs of some files, or of all splits of a prepared dataset.

    Parameters
    ----------
    sources : files, or one dataset
    columns, positive, file_format : of files, as in `dpaa data log`

    Returns
    -------
    sorted `user_id, item_id`, and notes
    """
    if len(sources) == 1 and (Path(sources[0]) / ABOUT_FILE).exists():
        return distinct_pairs(read_dataset(sources[0])), []
    rule = PositiveRule.parse(positive) if positive else None
    log = read_log(open_log(sources, file_format), columns, rule, Reading(may_drop=False), once=True)
    return log.frame.select(IDS), list(log.notes)


def distinct_pairs(data: Dataset, splits: Sequence[SplitName] = SPLITS) -> pl.DataFrame:
    """Pairs of some splits, each once: sorted `user_id, item_id`."""
    return pl.concat([data.frame(split).select(IDS) for split in splits]).unique().sort(IDS)


def with_severity(
    pairs: pl.DataFrame, severity: float, seed: int = 0, name: str = "severity", notes: Iterable[str] = ()
) -> Dataset:
    """Make a dataset of one severity.

    Parameters
    ----------
    pairs : `user_id, item_id` of (nearly) complete exposure
    severity : from 0 (no bias) up
    seed : the same gives the same validation, test and pool for every severity
    name : of the dataset
    notes : about the source

    Returns
    -------
    the dataset
    """
    if not np.isfinite(severity) or severity < 0:
        raise InputError(f"severity must be a number from 0 (no bias) up, got {severity:g}")
    users, items = distinct_ids([pairs[Column.USER]]), distinct_ids([pairs[Column.ITEM]])
    user, item = encode(pairs[Column.USER], users), encode(pairs[Column.ITEM], items)
    split_rng, draw_rng = (np.random.default_rng([seed, stream]) for stream in (0, 1))
    order = split_rng.permutation(len(pairs))
    n_valid, n_test = round(VALID_SHARE * len(pairs)), round(TEST_SHARE * len(pairs))
    valid, test, pool = order[:n_valid], order[n_valid : n_valid + n_test], order[n_valid + n_test :]
    train = _biased(user[pool], item[pool], len(items), severity, draw_rng)
    missed = f"{len(pool) - len(train):,} of the {len(pool):,} pairs of the training pool"
    return Dataset.of(
        {"train": pairs[np.sort(pool[train])], "valid": pairs[np.sort(valid)], "test": pairs[np.sort(test)]},
        name=name,
        about={
            "source": f"{len(pairs):,} pairs of {len(users):,} users and {len(items):,} items, biased with a severity",
            "severity": severity,
            "positive": "as in the source",
            "split": f"shuffled: {VALID_SHARE:.0%} validation, {TEST_SHARE:.0%} test; training drawn from the rest "
            "with P ∝ rank^-severity, and every item at least once",
            "seed": seed,
            VALIDATION_EXPOSURE: "unbiased",
        },
        notes=[*notes, f"{missed} were not drawn and are left out"],
    )


def _biased(user: Ints, item: Ints, n_items: int, severity: float, rng: np.random.Generator) -> Ints:
    """Positions in the pool that make up the training set, ascending and distinct."""
    seen_once = np.unique(item, return_index=True)[1]  # the pool is in random order, so the first is a random one
    counts = np.bincount(item, minlength=n_items)
    rank = np.empty(n_items)
    rank[np.argsort(-counts, kind="stable")] = np.arange(1, n_items + 1)
    by_user = np.argsort(user, kind="stable")
    owner = user[by_user]
    first = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
    owned = np.diff(np.append(first, len(owner)))
    log_weight = -severity * np.log(rank[item[by_user]])
    best = np.repeat(np.maximum.reduceat(log_weight, first), owned)
    weight = np.exp(log_weight - best)  # the user's best item weighs 1: nothing underflows that could be drawn
    total = np.add.reduceat(weight, first)
    start = np.repeat(np.arange(len(first), dtype=np.float64), owned)
    # Each user owns the unit interval [u, u + 1): one search answers all draws.
    within = np.cumsum(weight) - np.repeat(np.cumsum(total) - total, owned)
    ends = start + np.minimum(within / np.repeat(total, owned), 1.0)
    draws = np.maximum(np.rint(DRAWN_SHARE * owned).astype(int), 1)
    wanted = np.repeat(np.arange(len(first)), draws) + rng.random(draws.sum())
    slot = np.searchsorted(ends, wanted, side="right")
    slot = np.minimum(slot, np.repeat(first + owned - 1, draws))
    return np.union1d(seen_once, by_user[slot])


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
    divided = Dataset.of(
        {"train": data.frame("train"), "valid": valid.filter(~chosen), "test": data.frame("test")},
        name=f"{data.name}-randomised",
        candidates=data.candidate_ids,
        about=data.about | {"randomised": f"{share:.0%} of validation, seed {seed}"},
        notes=[f"{int(chosen.sum()):,} of the {len(valid):,} validation pairs are set aside for training"],
        randomised=valid.filter(chosen).select(IDS),
    )
    return replace(divided, attributes=data.attributes)
