"""Peak memory and seconds of the commands on large logs, each in a process of its own.

    python -m scripts.large_logs --out benchmarks/LARGE.md
    python -m scripts.large_logs --rows 100_000_000 --out benchmarks/LARGE_PIECES.md

20 million rows become a dataset (limit 4 GB); a dataset of 200,000 users, 50,000 items and 5 million training pairs is
trained on for one epoch, recommended from and evaluated (limit 2 GB each).  With `--rows`, instead: so many rows as a
partitioned folder of Parquet and as CSV become datasets with `--memory 1` (limit 1.5 GB).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
from benchmarks.timing import machine


def write_log(file: Path, rows: int, n_users: int, n_items: int, seed: int = 0) -> None:
    """A CSV log: users uniform, items by a power law, ratings 1 to 5, times ascending."""
    rng = np.random.default_rng(seed)
    weight = np.cumsum(np.arange(1, n_items + 1) ** -0.8)
    items = np.searchsorted(weight, rng.random(rows) * weight[-1])
    frame = {"user_id": rng.integers(0, n_users, rows), "item_id": items, "rating": rng.integers(1, 6, rows)}
    pl.DataFrame(frame | {"timestamp": np.arange(rows)}).write_csv(file)


def write_parts(folder: Path, rows: int, ending: str, parts: int = 100) -> None:
    """A log as files of a folder by day, as Spark writes them, or as one CSV file; made by DuckDB.

    Parameters
    ----------
    folder : where it is written
    rows : number of rows; a fiftieth as many users, uniform, and a five-hundredth as many items, skewed
    ending : `.parquet` or `.csv`
    parts : number of days
    """
    per_part = rows // parts
    query = (
        f"SELECT CAST(random() * {max(rows // 50, 10)} AS BIGINT) AS user_id, "
        f"CAST(pow(random(), 5) * {max(rows // 500, 10)} AS BIGINT) AS item_id, "
        "CAST(1 + floor(random() * 5) AS BIGINT) AS rating, {first} + i AS timestamp FROM range({n}) AS t(i)"
    )
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        if ending == ".csv":
            rows_of_csv = query.format(first=0, n=rows)
            connection.execute(f"COPY ({rows_of_csv}) TO '{folder / 'log.csv'}'")
            return
        for part in range(parts):
            place = folder / f"day={part:03}"
            place.mkdir(parents=True)
            rows_of_day = query.format(first=part * per_part, n=per_part)
            connection.execute(f"COPY ({rows_of_day}) TO '{place / 'part-0.parquet'}'")


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
    """Seconds and peak megabytes of a command; those of processors are told, for machines that do other things too."""
    began = time.monotonic()
    used = os.times()
    found = subprocess.run([sys.executable, "-c", COMMAND.format(file=str(file)), *arguments], check=False)
    if found.returncode:
        sys.exit(f"failed: {' '.join(arguments)}")
    now = os.times()
    spent = now.children_user + now.children_system - used.children_user - used.children_system
    print(f"{spent:.0f} s of processors", flush=True)
    return time.monotonic() - began, float(file.read_text())


def main() -> None:
    """Measure every line, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rows", type=int)
    chosen = parser.parse_args()
    rows = beyond_memory(chosen.rows) if chosen.rows else all_at_once()
    again = f" --rows {chosen.rows:_}" if chosen.rows else ""
    text = f"# Large logs\n\nMade by `python -m scripts.large_logs{again}`: {machine()}.\n\n"
    lines = [["what", "time", "peak memory", "within the limit"], ["---"] * 4, *rows]
    text += "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


def beyond_memory(n: int) -> list[list[str]]:
    """A log that the limit does not hold, by two splits."""
    rows = []
    for ending, split in ((".parquet", "random"), (".parquet", "temporal"), (".csv", "random")):
        with tempfile.TemporaryDirectory() as place:
            source = Path(place) / "log"
            source.mkdir()
            write_parts(source, n, ending)
            size = sum(file.stat().st_size for file in source.rglob("*") if file.is_file()) / 1e9
            words = [
                "data",
                "log",
                str(source),
                "--memory",
                "1",
                "--split",
                split,
                "--out",
                f"{place}/data",
            ]
            seconds, peak = measured(words, Path(place) / "peak")
            what = f"{n:,} rows of {ending[1:]} ({size:.1f} GB), split {split}, 1.5 GB"
            rows.append([what, f"{seconds:.0f} s", f"{peak:,.0f} MB", "yes" if peak <= 1500 else "NO"])
            print(" | ".join(rows[-1]), flush=True)
    return rows


def all_at_once() -> list[list[str]]:
    """Commands on logs and datasets that memory holds."""
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
    return rows


if __name__ == "__main__":
    main()
