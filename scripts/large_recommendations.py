"""Seconds and peak memory of `dpaa compare` and `dpaa audit` on 5 million recommendations.

    python -m scripts.large_recommendations --out benchmarks/LARGE_RECOMMENDATIONS.md

250,000 users and 50,000 items.  Two files of 10 places a user, one CSV and one Parquet, are compared; one file of 20
places is audited.  Each command runs in a process of its own (limit 2 GB each).  With --keep DIR the files stay there.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from benchmarks.timing import machine
from scripts.large_logs import measured, write_log

from dpaa.reproduction.tables import markdown

N_USERS, N_ITEMS, LOG_ROWS = 250_000, 50_000, 5_000_000


def write_recommendations(file: Path, places: int, skew: float, seed: int) -> None:
    """Lists of distinct items for every user, drawn by a power law of the item's number and put in order of score.

    A stretch of the numbers line is walked with steps that never come back, so that no item comes twice.
    """
    rng = np.random.default_rng(seed)
    start = (rng.random(N_USERS) ** skew * (N_ITEMS // 2)).astype(np.int64)
    steps = rng.integers(1, N_ITEMS // (2 * places), (N_USERS, places))
    items = start[:, None] + np.cumsum(steps, axis=1) - 1
    frame = pl.DataFrame(
        {
            "user_id": np.repeat(np.arange(N_USERS), places),
            "item_id": items.ravel(),
            "score": np.tile(np.linspace(1, 0.1, places), N_USERS),
        }
    )
    if file.suffix == ".csv":
        frame.write_csv(file)
    else:
        frame.with_columns(pl.col("score").rank("dense", descending=True).alias("rank")).write_parquet(file)


def main() -> None:
    """Make the files, measure every line, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = chosen.keep or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        write_log(folder / "log.csv", LOG_ROWS, N_USERS, N_ITEMS)
        write_recommendations(folder / "old.csv", 10, 8.0, 1)
        write_recommendations(folder / "new.parquet", 10, 4.0, 2)
        write_recommendations(folder / "whole.parquet", 20, 8.0, 3)
        prepare = "data log {0}/log.csv --out {0}/data --valid 0.01 --test 0.1 --overwrite"
        compare = "compare {0}/old.csv {0}/new.parquet --dataset {0}/data --k 10"
        steps = [
            ("prepare a log of 5 million rows", prepare, 4000),
            ("compare two files, 5 million recommendations together, 2,000 resamples", compare, 2000),
            ("audit one file of 5 million recommendations", "audit {0}/data --recs {0}/whole.parquet", 2000),
        ]
        rows = []
        for title, command, limit in steps:
            seconds, peak = measured(command.format(folder).split(), folder / "peak")
            rows.append([title, f"{seconds:.0f} s", f"{peak:,.0f} MB", "yes" if peak <= limit else "NO"])
            print(" | ".join(rows[-1]), flush=True)
    text = f"# Large recommendation files\n\nMade by `python -m scripts.large_recommendations`: {machine()}.\n\n"
    text += markdown(["what", "time", "peak memory", "within the limit"], rows)
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
