"""Simulated level and power of `dpaa compare`: how often it says "different" of what is the same, and of what is not.

    python scripts/compare_level_and_power.py [--out FILE.csv] [--simulations N] [--minutes M]

Two methods of 1, 2, 3 or 5 seeds a side are measured on the same users.  A value is

    effect of the method + luck of the run (spread of seeds) + chance of the user (spread of users)

all normal, the effect 0 for the level and 1 for the power.  The chance of a user is drawn anew for each run ("run"), or
is the same for all runs of a side ("side"); "recall" is a world of fractions with many ties and zeros instead.  The
points of a grid that differ in spreads alone share their random numbers: differences between them are no luck.

Each point becomes one line of the CSV as soon as it is done; a call takes up where the last one ended, and gives up
after `--minutes` with what there is.  For every draw the interval is held
against p; for some of each point the functions that take many problems at once are held against `compare_means`.
"""

from __future__ import annotations

import argparse
import csv
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpaa.comparison.statistics import Contrast, compare_means, crossed_t, runs_differ

Floats = NDArray[np.float64]

OUT = Path("docs/results/compare-level-and-power.csv")
SPREADS = (100.0, 10.0, 1.0, 0.1, 0.01)
"""Of users, as multiples of the effect."""
FINE_SPREADS = (100.0, 30.0, 10.0, 5.0, 3.0, 2.0, 1.0, 0.5, 0.3, 0.1, 0.01)
SEED_SPREADS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""As multiples of the users' spread."""
FIXED_SEED_SPREADS = (0.1, 0.2, 0.3, 0.5, 1.0)
"""As multiples of the effect."""
SEEDS = (2, 3, 5)
NOISES = ("run", "side")
BATCH = 500
CHECKED = 2
"""Draws of each batch that are held against `compare_means`."""
SHARES = {"level": 1.0, "unequal": 0.5, "beside": 0.5, "power": 0.125, "fixed": 0.125}
"""Of the simulations asked for; points of a power curve share their random numbers and need fewer."""


@dataclass(frozen=True)
class Point:
    """One point of the grid."""

    question: str
    """level, power, fixed (power, spread of seeds fixed), unequal (level, of spreads) or beside (level, of numbers)."""
    users: int
    seeds: tuple[int, int]
    noise: str
    users_spread: float
    seeds_spread: tuple[float, float]
    """Of the runs of each side, in units of the effect."""
    effect: float

    @property
    def random_seed(self) -> list[int]:
        """The same for points that differ in spreads and effect alone."""
        return [15, zlib.crc32(f"{self.users} {self.seeds} {self.noise}".encode())]


@dataclass(frozen=True)
class Found:
    """What is counted."""

    simulations: int
    below_05: float
    below_01: float
    below_004: float
    """Shares of p below .05, .01 and .004; the last is what Holm asks of the first of twelve tests."""
    disagreements: int
    """Draws with p < .05 whose interval holds 0, or the other way round."""
    checked: int
    """Draws held against `compare_means`."""


def points() -> Iterator[Point]:
    """All of the grid."""
    alike = [((seeds, seeds), noise) for seeds in SEEDS for noise in NOISES]
    for question, spread, effect in [("level", 1.0, 0.0), *(("power", spread, 1.0) for spread in SPREADS)]:
        yield Point(question, 200, (1, 1), "run", spread, (0.0, 0.0), effect)
        for (seeds, noise), ratio in product(alike, SEED_SPREADS):
            yield Point(question, 200, seeds, noise, spread, (ratio * spread, ratio * spread), effect)
    for (seeds, noise), luck, spread in product(alike, FIXED_SEED_SPREADS, FINE_SPREADS):
        yield Point("fixed", 200, seeds, noise, spread, (luck, luck), 1.0)
    yield from other_levels(alike)


def other_levels(alike: list[tuple[tuple[int, int], str]]) -> Iterator[Point]:
    """Levels with other numbers of users, of other values, and where the sides are not alike."""
    for users in (30, 549):
        yield Point("level", users, (1, 1), "run", 1.0, (0.0, 0.0), 0.0)
        for (seeds, noise), ratio in product(alike, (0.0, 0.1, 0.3, 1.0)):
            yield Point("level", users, seeds, noise, 1.0, (ratio, ratio), 0.0)
    for users in (30, 200):
        yield Point("level", users, (1, 1), "recall", 1.0, (0.0, 0.0), 0.0)
        for number, luck in product(SEEDS, (0.0, 0.02, 0.1)):
            yield Point("level", users, (number, number), "recall", 1.0, (luck, luck), 0.0)
    for (seeds, noise), ratio, share in product(alike, (0.1, 0.3, 1.0), (0.5, 0.1)):
        yield Point("unequal", 200, seeds, noise, 1.0, (ratio, share * ratio), 0.0)
    for seeds, noise, ratio in product(((2, 1), (3, 1), (5, 1), (3, 2), (5, 2)), NOISES, (0.0, 0.03, 0.1, 0.3, 1.0)):
        yield Point("beside", 200, seeds, noise, 1.0, (ratio, ratio if seeds[1] > 1 else 0.0), 0.0)


def measure(point: Point, simulations: int) -> Found:
    """Draw the point's worlds and test each."""
    rng = np.random.default_rng(point.random_seed)
    counts, disagreements, checked = np.zeros(3), 0, 0
    for first in range(0, simulations, BATCH):
        one, other = worlds(point, min(BATCH, simulations - first), rng)
        low, high, p = tested(one, other, first)
        counts += [(p < level).sum() for level in (0.05, 0.01, 0.004)]
        disagreements += int(((p < 0.05) != ((low > 0) | (high < 0))).sum())
        checked += check(one, other, (low, high, p), first)
        if not point.effect and not first:
            check_units(one, other, p)
    below_05, below_01, below_004 = (counts / simulations).tolist()
    return Found(simulations, below_05, below_01, below_004, disagreements, checked)


def worlds(point: Point, number: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Values of both sides, (number, users, runs) each."""
    if point.noise == "recall":
        return recall_worlds(point, number, rng)
    sides = []
    for runs, seeds_spread in zip(point.seeds, point.seeds_spread, strict=True):
        luck = rng.standard_normal((number, 1, runs))
        chance = rng.standard_normal((number, point.users, 1 if point.noise == "side" else runs))
        sides.append(point.users_spread * chance + seeds_spread * luck)
    return sides[0] + point.effect, sides[1]


def recall_worlds(point: Point, number: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Recall of 1 to 5 relevant items, found by a taste both sides share, of one seventh on average; luck moves it."""
    relevant = rng.integers(1, 6, (number, point.users, 1))
    taste = rng.beta(1, 6, (number, point.users, 1))
    sides = []
    for runs, luck in zip(point.seeds, point.seeds_spread, strict=True):
        chance = np.clip(taste + luck * rng.standard_normal((number, 1, runs)), 0, 1)
        sides.append(rng.binomial(relevant, chance) / relevant)
    return sides[0], sides[1]


def tested(one: Floats, other: Floats, seed: int) -> tuple[Floats, Floats, Floats]:
    """Ends of the interval and p of each world."""
    if runs_differ(one).any() or runs_differ(other).any():
        _, low, high, p = crossed_t(one, other)
        return low, high, p
    values = np.concatenate([one[..., 0], other[..., 0]]).T  # (users, 2 · worlds)
    contrasts = [Contrast((place,), (place + len(one),)) for place in range(len(one))]
    found = compare_means(values, contrasts, seed=seed)  # worlds of a batch share their coins
    low, high, p = np.array([(each.low, each.high, each.p) for each in found]).T
    return low, high, p


def check(one: Floats, other: Floats, found: tuple[Floats, Floats, Floats], seed: int) -> int:
    """Some worlds again, one by one as `dpaa compare` does it.  Returns how many."""
    taken = np.random.default_rng(seed).choice(len(one), min(CHECKED, len(one)), replace=False)
    runs = one.shape[-1]
    contrast = Contrast(tuple(range(runs)), tuple(range(runs, runs + other.shape[-1])))
    for place in taken:
        alone = compare_means(np.concatenate([one[place], other[place]], axis=1), [contrast], seed=seed)[0]
        at_once = [numbers[place] for numbers in found]
        np.testing.assert_allclose([alone.low, alone.high, alone.p], at_once, rtol=1e-9, atol=1e-300)
    return len(taken)


def check_units(one: Floats, other: Floats, p: Floats) -> None:
    """Values in other units have the same p: the level at one users' spread is the level at all."""
    for spread in SPREADS:
        np.testing.assert_allclose(tested(spread * one, spread * other, 0)[2], p, rtol=1e-6)


def measured(file: Path) -> dict[Point, Found]:
    """What a file already has."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as lines:
        return dict(_parsed(line) for line in csv.DictReader(lines))


def _line(point: Point, found: Found) -> dict[str, object]:
    """One line of the CSV; pairs as 2+2."""
    whole = {**asdict(point), **asdict(found)}
    return {name: "+".join(map(str, value)) if isinstance(value, tuple) else value for name, value in whole.items()}


def _parsed(line: dict[str, str]) -> tuple[Point, Found]:
    one, other = line["seeds"].split("+")
    spread, other_spread = line["seeds_spread"].split("+")
    point = Point(
        line["question"],
        int(line["users"]),
        (int(one), int(other)),
        line["noise"],
        float(line["users_spread"]),
        (float(spread), float(other_spread)),
        float(line["effect"]),
    )
    below_05, below_01, below_004 = (float(line[name]) for name in ("below_05", "below_01", "below_004"))
    counts = (int(line[name]) for name in ("disagreements", "checked"))
    return point, Found(int(line["simulations"]), below_05, below_01, below_004, *counts)


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--simulations", type=int, default=40_000, help="for a level; fewer for the rest")
    parser.add_argument("--minutes", type=float, default=60)
    asked = parser.parse_args()
    end = time.monotonic() + 60 * asked.minutes
    grid, done = list(points()), measured(asked.out)
    names = [field.name for kind in (Point, Found) for field in fields(kind)]
    if not done:
        with asked.out.open("w", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, names, lineterminator="\n").writeheader()
    for point in grid:
        simulations = int(asked.simulations * SHARES[point.question])
        if point in done and done[point].simulations >= simulations:
            continue
        if time.monotonic() > end:
            print(f"{sum(point in done for point in grid)} of {len(grid)} points are done; call again for the rest")
            break
        done[point] = measure(point, simulations)
        with asked.out.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, names, lineterminator="\n").writerow(_line(point, done[point]))


if __name__ == "__main__":
    main()
