"""A small simulated world with known preferences and a log with biased exposure.

Tastes. Users and items have random taste vectors of length 8, items an appeal of their own; both are standard normal.

    P(user u likes item i when shown) = sigmoid(-5.2 + 3 · (t_u · t_i) / √8 + 1.4 · appeal_i)

Log (training). Items are ranked by promotion = 0.53 · appeal + 0.85 · luck: what is promoted is only partly what is
good. Each user is shown 19% of the items, drawn without replacement with

    P(show i) ∝ (rank_i / n_items + 0.05) ^ -severity

so severity 0 shows everything alike, and the higher it is, the more the log repeats the promotion. Shown and liked is
a click, a training pair.

Publishers. Items belong to eight publishers of equal size, `p1` … `p8`, in the order of their promotion's rank with
uniform noise as wide as the ranks: p1 promotes most. Taste and appeal know nothing of them.

Experiment (validation, test). Every user-item pair is shown with the same probability, one in six, and liked or not
anew; pairs of the training split are left out. One third is validation, two thirds are test. This is what a recommender
should be measured on: it has tastes and appeal in it, but no promotion.

`write_example` writes the log that ships with the package: clicks of a simulated bookshop, and the books' titles
(`scripts/example_log.py` made it).
"""

import gzip
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dpaa._io import own_folder, resolve_path, write_files
from dpaa.data.dataset import Dataset
from dpaa.data.ids import Column, encode
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.errors import InputError

TASTE_SIZE = 8
BASE = -5.2
TASTE_STRENGTH = 3.0
APPEAL_STRENGTH = 1.4
LUCK = 0.85
FLATNESS = 0.05
SHOWN_SHARE = 0.19
ASKED_SHARE = 1 / 6
PUBLISHERS = 8
MOST_CELLS = 50_000_000
"""The truth is kept as a whole matrix; larger worlds would not fit into memory."""


@dataclass(frozen=True, eq=False)
class _World:
    """A simulated world: the truth and the dataset drawn from it."""

    affinity: npt.NDArray[np.float32]
    """P(like when shown), in the order of the dataset's indices. (n_users, n_items)"""
    appeal: npt.NDArray[np.float64]
    """How much an item is liked by everyone. (n_items,)"""
    exposure: npt.NDArray[np.float64]
    """How likely the log shows an item, next to the others; the mean is 1. (n_items,)"""
    dataset: Dataset
    """The dataset; users and items without interactions are in neither it nor the truth above."""
    publishers: pl.DataFrame
    """`item_id, publisher` of all items."""


def simulate(users: int = 2000, items: int = 1500, severity: float = 1.0, seed: int = 0) -> Dataset:
    """Simulate the dataset of a world; with the default sizes about 60,000 training pairs.

    Parameters
    ----------
    users, items, severity, seed : as in `simulate_world`

    Returns
    -------
    the dataset
    """
    return simulate_world(users, items, severity, seed).dataset


def simulate_world(users: int = 2000, items: int = 1500, severity: float = 1.0, seed: int = 0) -> _World:
    """Simulate a world and keep its truth.

    Parameters
    ----------
    users, items : how many
    severity : how much the log favours promoted items, from 0 (all alike) to 10
    seed : of all draws

    Returns
    -------
    the world: its dataset, and the affinities and exposure behind it
    """
    if users < 2 or items < 2 or users * items > MOST_CELLS:
        size = f"{users:,} users × {items:,} items"
        raise InputError(f"a world needs at least 2 users and 2 items and at most {MOST_CELLS:,} pairs, got {size}")
    if not 0 <= severity <= 10:
        raise InputError(f"severity must be between 0 (uniform exposure) and 10, got {severity:g}")
    rng = np.random.default_rng(seed)
    user_taste = rng.standard_normal((users, TASTE_SIZE))
    item_taste = rng.standard_normal((items, TASTE_SIZE))
    appeal = rng.standard_normal(items)
    agreement = user_taste @ item_taste.T / np.sqrt(TASTE_SIZE)  # (users, items)
    affinity = 1 / (1 + np.exp(-(BASE + TASTE_STRENGTH * agreement + APPEAL_STRENGTH * appeal)))

    promotion = np.sqrt(1 - LUCK**2) * appeal + LUCK * rng.standard_normal(items)
    rank = np.empty(items)
    rank[np.argsort(-promotion)] = np.arange(1, items + 1)
    log_exposure = -severity * np.log(rank / items + FLATNESS)
    shown = _draw(log_exposure, users, max(1, round(SHOWN_SHARE * items)), rng)
    clicked = shown & (rng.random(shown.shape) < affinity)

    questioned = (rng.random(shown.shape) < ASKED_SHARE) & ~clicked
    liked = questioned & (rng.random(shown.shape) < affinity)
    for_valid = rng.random(shown.shape) < 1 / 3

    user_ids, item_ids = _names("u", users), _names("i", items)
    parts = {"train": clicked, "valid": liked & for_valid, "test": liked & ~for_valid}
    frames: dict[Any, pl.DataFrame] = {}
    for split, pairs in parts.items():
        user, item = np.nonzero(pairs)
        frames[split] = pl.DataFrame({Column.USER: user_ids.gather(user), Column.ITEM: item_ids.gather(item)})
    dataset = Dataset.of(
        frames,
        name="demo",
        about={
            "source": f"simulated world, {users} users, {items} items, severity {severity:g}",
            "positive": "clicked when shown",
            "split": "biased log for training; of uniformly random exposure one third validation, two thirds test",
            "seed": seed,
            VALIDATION_EXPOSURE: "unbiased",
        },
    )
    # A generator of its own: that worlds got publishers has changed none of the draws above.
    noisy = rank / items + np.random.default_rng([seed, 1]).random(items)
    house = np.empty(items, dtype=np.int64)
    house[np.argsort(noisy)] = np.arange(items) * PUBLISHERS // items + 1
    publishers = pl.DataFrame({Column.ITEM: item_ids, "publisher": [f"p{number}" for number in house]})
    exposure = np.exp(log_exposure - log_exposure.max())
    rows, columns = encode(dataset.user_ids, user_ids), encode(dataset.item_ids, item_ids)
    liking = affinity[np.ix_(rows, columns)].astype(np.float32)
    return _World(liking, appeal[columns], (exposure / exposure.mean())[columns], dataset, publishers)


def _draw(log_weight: npt.NDArray[np.float64], users: int, n: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """For each user n items without replacement, P ∝ weight: the n largest of log weight + Gumbel noise."""
    noisy = log_weight + rng.gumbel(size=(users, len(log_weight)))
    first = np.argpartition(-noisy, n - 1, axis=1)[:, :n]
    drawn = np.zeros(noisy.shape, dtype=np.bool_)
    np.put_along_axis(drawn, first, values=True, axis=1)
    return drawn


def _names(letter: str, n: int) -> pl.Series:
    """`u0001` …: as many digits as the last one needs, so that ids sort in the order of the world."""
    digits = max(4, len(str(n)))
    return pl.Series([f"{letter}{number:0{digits}d}" for number in range(1, n + 1)])


CLICKS, TITLES = "clicks.csv", "titles.csv"
REMEDY = "choose another folder with --out"


def example_files() -> dict[str, bytes]:
    """Read the clicks and the titles of the example, by file name."""
    folder = resources.files("dpaa.data").joinpath("example")
    packed = folder.joinpath(f"{CLICKS}.gz").read_bytes()
    return {CLICKS: gzip.decompress(packed), TITLES: folder.joinpath(TITLES).read_bytes()}


def write_example(folder: str | Path, overwrite: bool = False) -> list[Path]:
    """Write the clicks and the titles of the example into a folder.

    Parameters
    ----------
    folder : made if need be
    overwrite : replace files that are there

    Returns
    -------
    paths of the files
    """
    target, files = resolve_path(folder), example_files()
    if target.is_file() or (not overwrite and any((target / name).exists() for name in files)):
        raise InputError(f"{folder} is a file, or its {CLICKS} already exists; pass --overwrite or {REMEDY}")
    write_files(own_folder(target, REMEDY), files, REMEDY)
    return [Path(folder) / name for name in files]
