"""Level and power of tests of "this point keeps at least so much of the baseline's accuracy", in real differences.

    python -m scripts.guarantee WORK_FOLDER [--draws 500] [--out FILE.csv]

WORK_FOLDER has the points that `scripts/measured_points.py` measured.  For several logs and pairs of a baseline and a
candidate, n users are drawn with replacement from the measured ones, of whom the truth is known: the candidate keeps
the share r.  The promise r is just broken, and may be confirmed in 5% of the draws (the level); the promise r − 0.02 is
kept, and should be confirmed often (the power).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import bdtr, stdtr
from scripts.measured_points import POWERS, read

from dpaa.debiasing._guarantee import p_value

OUT = Path("docs/results/guarantee.csv")
Floats = NDArray[np.float64]
CASES = ("coat-0", "world-1-0", "kuairec-s=0-0", "online-retail-2011-05-0", "health-0", "adressa-0")
CASES += ("electronic-popularity-0", "epinions-0")
CHANGES = ("fa-ir 0.2", "dial -0.05", "dial -0.2")
SIZES = (50, 100, 200, 500, 1_000, 2_000, 5_000, 20_000)
ALPHA, MARGIN, AT_ONCE = 0.05, 0.02, 2_000_000


def plain_t(one: Floats, other: Floats, share: float, _most: float) -> NDArray[np.bool_]:
    """Student's t of the differences, (draws,)."""
    difference = one - share * other
    error = difference.std(axis=1, ddof=1) / np.sqrt(one.shape[1])
    t = np.divide(difference.mean(axis=1), error, where=error > 0, out=np.full(len(one), -np.inf))
    return np.asarray(stdtr(one.shape[1] - 1, -t) <= ALPHA)


def ours(one: Floats, other: Floats, share: float, _most: float) -> NDArray[np.bool_]:
    """What `dpaa debias` does: the same with a pretended user."""
    return np.array([p_value(*pair, share) <= ALPHA for pair in zip(one, other, strict=True)])


def scaled(one: Floats, other: Floats, share: float, most: float) -> tuple[Floats, float]:
    """Differences in [0, 1], and what their mean is where the share is just not kept."""
    width = (1 + share) * most
    return (one - share * other + share * most) / width, share * most / width


def hoeffding_bentkus(one: Floats, other: Floats, share: float, most: float) -> NDArray[np.bool_]:
    """As in Learn-then-Test (Angelopoulos et al., 2021)."""
    values, bar = scaled(one, other, share, most)
    n, loss, limit = one.shape[1], 1 - values.mean(axis=1), 1 - bar
    low = np.minimum(loss, limit)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(low > 0, low * np.log(low / limit), 0.0) + (1 - low) * np.log((1 - low) / (1 - limit))
    return np.asarray(np.minimum(np.exp(-n * entropy), np.e * bdtr(np.ceil(n * loss), n, limit)) <= ALPHA)


def betting(one: Floats, other: Floats, share: float, most: float) -> NDArray[np.bool_]:
    """A gambler's capital in bets on each user in turn (Waudby-Smith & Ramdas, JRSS B 2024)."""
    values, bar = scaled(one, other, share, most)
    n = values.shape[1]
    seen = np.arange(2, n + 2)
    mean = (bar + np.cumsum(values, axis=1)) / seen
    spread = (0.01 + np.cumsum((values - mean) ** 2, axis=1)) / seen
    before = np.concatenate([np.full((len(values), 1), 0.01), spread[:, :-1]], axis=1)  # a bet knows the past alone
    bets = np.minimum(np.sqrt(2 * np.log(1 / ALPHA) / (n * before)), 0.75 / bar)
    return np.asarray(np.cumsum(np.log1p(bets * (values - bar)), axis=1).max(axis=1) >= np.log(1 / ALPHA))


TESTS: dict[str, Callable[[Floats, Floats, float, float], NDArray[np.bool_]]] = {
    "plain t": plain_t,
    "t with a pretended user": ours,
    "Hoeffding-Bentkus": hoeffding_bentkus,
    "betting": betting,
}


def pairs(work: Path) -> Iterator[tuple[dict[str, str | float], Floats, Floats, float]]:
    """What is drawn from: names, each user's accuracy with candidate and baseline, and the most it can be."""
    for case in (one for one in CASES if (work / f"{one}.npz").exists()):
        points = read(work / f"{case}.npz")
        names = points["names"].tolist()
        for power in (0.0, 0.5):
            accuracy = points["accuracy"][:, POWERS.index(power)].astype(np.float64)
            plain = [index for index, name in enumerate(names) if "," not in name]
            base, second = sorted(plain, key=lambda index: -accuracy[index].mean())[:2]
            changed = [names.index(f"{names[base]}, {change}") for change in CHANGES]
            for other in (second, *changed):
                about: dict[str, str | float] = {"case": case, "base": names[base], "candidate": names[other]}
                yield about | {"power_of_propensities": power}, accuracy[other], accuracy[base], accuracy.max()


def measured(work: Path, draws: int) -> Iterator[dict[str, str | float]]:
    """A row for each pair, number of users and test."""
    for about, one, other, most in pairs(work):
        ratio, differ = one.mean() / other.mean(), (one != other).mean()
        for n in SIZES:
            rng, counts = np.random.default_rng([33, n]), dict.fromkeys(TESTS, np.zeros(2))
            for start in range(0, draws, step := max(1, AT_ONCE // n)):
                rows = rng.integers(0, len(one), (min(step, draws - start), n))
                for name, test in TESTS.items():
                    sums = [test(one[rows], other[rows], share, most).sum() for share in (ratio, ratio - MARGIN)]
                    counts[name] = counts[name] + sums
            for name, (level, power) in counts.items():
                row = about | {"ratio": ratio, "users": n, "users_that_differ": differ * n, "test": name}
                yield row | {"level": level / draws, "power": power / draws}
        print(*about.values(), flush=True)


def main() -> None:
    """Simulate, write the table and print a summary."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("work", type=Path, metavar="WORK_FOLDER")
    options.add_argument("--draws", type=int, default=500)
    options.add_argument("--out", type=Path, default=OUT)
    given = options.parse_args()
    found = pl.DataFrame(list(measured(given.work, given.draws)))
    found.with_columns(pl.selectors.float().round_sig_figs(4)).write_csv(given.out)
    level, power = pl.col("level"), pl.col("power")
    few = level.filter(pl.col("users_that_differ") < 30).max().alias("worst where < 30 differ")
    table = found.group_by("test", "users", maintain_order=True).agg(
        level.median(), level.max().alias("worst level"), few, (level > 0.065).mean().alias("above 6.5%"), power.mean()
    )
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=120, float_precision=3, tbl_hide_dataframe_shape=True):
        print(table.sort("test", "users"))


if __name__ == "__main__":
    main()
