"""A slice of the grid of scripts/compare_level_and_power.py: level, power, and interval against p."""

from itertools import pairwise

import pytest

grid = pytest.importorskip("scripts.compare_level_and_power", reason="scripts are not part of this copy")


def point(question: str, seeds: int, noise: str, users_spread: float, seeds_spread: float) -> object:
    effect = 0.0 if question == "level" else 1.0
    return grid.Point(question, 100, (seeds, seeds), noise, users_spread, (seeds_spread, seeds_spread), effect)


@pytest.mark.parametrize(
    ("seeds", "noise"), [(1, "run"), *((seeds, noise) for seeds in (2, 3, 5) for noise in ("run", "side"))]
)
def test_the_level_is_kept(seeds: int, noise: str) -> None:
    """Of 2,000 draws a share of .05 varies by ± .015 (three standard errors)."""
    for ratio in (0.0,) if seeds == 1 else (0.03, 0.1, 1.0):
        found = grid.measure(point("level", seeds, noise, 1.0, ratio), 2000)
        assert 0.031 <= found.below_05 <= 0.071, ratio
        assert found.below_01 <= 0.025
        assert found.disagreements == 0


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_power_never_falls_as_users_spread_falls(seeds: int) -> None:
    for ratio in (0.0,) if seeds == 1 else (0.0, 0.1, 1.0):
        found = [grid.measure(point("power", seeds, "run", spread, ratio * spread), 500) for spread in grid.SPREADS]
        powers = [one.below_05 for one in found]
        assert all(more >= less - 0.01 for less, more in pairwise(powers)), ratio
        assert powers[-1] == 1.0
        assert not any(one.disagreements for one in found)
