"""How often does a whole call of `dpaa debias` break its promise?  Rules on users drawn from those of known logs.

    python -m scripts.decision_level WORK_FOLDER [--draws 100] [--out FILE.csv]

WORK_FOLDER has the points that `scripts/measured_points.py` measured.  n users are drawn with replacement from the
measured validation users of a log, a rule chooses, and all measured users tell whether the choice
keeps the promise under both exposures: in at most 5% of the draws it should not.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from scripts.decision_rules import RULES, Chosen, chosen_by
from scripts.measured_points import POWERS, read

OUT = Path("docs/results/decision-level.csv")
CASES = ("coat-0", "world-1-0", "online-retail-2011-05-0", "health-0", "adressa-0")
SIZES, CHECKED, PROMISE = (
    (50, 100, 300, 1_000, 3_000),
    ("unknown", "unknown, one division", "unknown, a third chooses"),
    0.98,
)


def main() -> None:
    """Draw, choose and compare with the truth."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("work", type=Path, metavar="WORK_FOLDER")
    options.add_argument("--draws", type=int, default=100)
    options.add_argument("--out", type=Path, default=OUT)
    given = options.parse_args()
    rows = []
    for case in CASES:
        points = read(given.work / f"{case}.npz")
        users = points["accuracy"].shape[2]
        truth = points["accuracy"][:, [POWERS.index(0.0), POWERS.index(0.5)]].mean(axis=2, dtype=np.float64)
        niche = Chosen(points["niche"], points["accuracy"], 0, 0).mean_niche(np.arange(users))
        for n in (one for one in SIZES if one <= users):
            for rule in CHECKED:
                rng, kept, gained = np.random.default_rng([34, n]), [], []
                for draw in range(given.draws):
                    drawn = rng.integers(0, users, n)
                    sample = points | {key: points[key][..., drawn] for key in ("accuracy", "niche")}
                    base, chosen = chosen_by(sample, rule, RULES[rule], PROMISE, draw)
                    kept.append((truth[chosen] / truth[base]).min())
                    gained.append(niche[chosen] - niche[base] if chosen != base else np.nan)
                about = {"case": case, "users": n, "rule": rule, "broken": np.mean(np.array(kept) < PROMISE)}
                gain = {"niche_gain": np.nansum(gained) / given.draws, "least_kept": min(kept)}
                rows.append(about | {"moved": np.isfinite(gained).mean()} | gain)
                print(rows[-1], flush=True)
        pl.DataFrame(rows).with_columns(pl.selectors.float().round(4)).write_csv(given.out)


if __name__ == "__main__":
    main()
