"""Peak memory and seconds of the commands on large logs, each in a process of its own.

    python -m scripts.large_logs --out benchmarks/LARGE.md

20 million rows become a dataset (limit 4 GB); a dataset of 200,000 users, 50,000 items and 5 million training pairs is
trained on for one epoch, recommended from and evaluated (limit 2 GB each).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from benchmarks.timing import machine

from dpaa.reproduction.tables import markdown


def write_log(file: Path, rows: int, n_users: int, n_items: int, seed: int = 0) -> None:
    """A CSV log: users uniform, items by a power law, ratings 1 to 5, times ascending."""
    rng = np.random.default_rng(seed)
    weight = np.cumsum(np.arange(1, n_items + 1) ** -0.8)
    items = np.searchsorted(weight, rng.random(rows) * weight[-1])
    frame = {"user_id": rng.integers(0, n_users, rows), "item_id": items, "rating": rng.integers(1, 6, rows)}
    pl.DataFrame(frame | {"timestamp": np.arange(rows)}).write_csv(file)


COMMAND = """
import sys
from benchmarks.timing import peak_megabytes
from dpaa.cli import main
try:
    main()
finally:
    open({file!r}, "w").write(str(peak_megabytes()))
"""


def measured(arguments: list[str], file: Path) -> tuple[float, float]:
    """Seconds and peak megabytes of a command."""
    began = time.monotonic()
    found = subprocess.run([sys.executable, "-c", COMMAND.format(file=str(file)), *arguments], check=False)
    if found.returncode:
        sys.exit(f"failed: {' '.join(arguments)}")
    return time.monotonic() - began, float(file.read_text())


def main() -> None:
    """Measure every line, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        steps = [
            ("20 million rows of CSV, 4 GB", "data log {0}/big.csv --out {0}/big --positive rating>=2", 4000),
            (
                "6.6 million rows to 5.7 million training pairs",
                "data log {0}/mid.csv --out {0}/mid --valid 0.01 --test 0.1",
                4000,
            ),
            (
                "one epoch on 5.7 million pairs, D 64, L 3, batch auto",
                "train {0}/mid --out {0}/run --set epochs=1 --set batch_size=auto",
                None,
            ),
            ("recommend 200,000 users × 50,000 items, 2 GB", "recommend {0}/run --k 20 --out {0}/recs.parquet", 2000),
            ("evaluate the same, 2 GB", "evaluate {0}/run", 2000),
        ]
        write_log(folder / "big.csv", 20_000_000, 500_000, 100_000)
        write_log(folder / "mid.csv", 6_600_000, 200_000, 50_000)
        for title, command, limit in steps:
            seconds, peak = measured(command.format(folder).split(), folder / "peak")
            within = "" if limit is None else ("yes" if peak <= limit else "NO")
            rows.append([title, f"{seconds:.0f} s", f"{peak:,.0f} MB", within])
            print(" | ".join(rows[-1]), flush=True)
    text = f"# Large logs\n\nMade by `python -m scripts.large_logs`: {machine()}.\n\n"
    text += markdown(["what", "time", "peak memory", "within the limit"], rows)
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
