"""Does tonight's training beat yesterday's run?  A shop's log, month by month, each month a night.

    python scripts/nights.py LOG.csv.gz [--method lightgcn] [--seeds 3] [--out docs/results/nights.csv]

LOG is the Online Retail log (UCI): rows without a customer and returns are left out.  The first three months are
history; each later month is appended (split by time, 10% validation, 10% test), and three models are measured on the
newest test pairs: yesterday's run (the previous night's warm start), a cold start and a warm start.  A line is written
when it is known: the same call continues where it was stopped.
"""

from __future__ import annotations

import argparse
import csv
import time
from datetime import datetime
from pathlib import Path

import polars as pl
import torch

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.data.splits import SplitRule

HISTORY = 3
COLUMNS = ("night", "seed", "model", "users", "cold_users", "ndcg@20", "warm", "cold", "coverage@20", "cpu_seconds")


def interactions(log: Path) -> pl.DataFrame:
    """`user_id, item_id, timestamp` of every purchase by a known customer."""
    rows = pl.read_csv(log, infer_schema_length=0)
    bought = rows.filter(pl.col("CustomerID").str.len_chars() > 0, pl.col("Quantity").cast(pl.Float64) > 0)
    return bought.select(
        pl.col("CustomerID").alias("user_id"),
        pl.col("StockCode").alias("item_id"),
        pl.col("InvoiceDate").str.to_datetime().alias("timestamp"),
    )


def months(frame: pl.DataFrame) -> list[tuple[datetime, pl.DataFrame]]:
    """The log by calendar month."""
    month = pl.col("timestamp").dt.truncate("1mo").alias("month")
    parts = frame.with_columns(month).partition_by("month", as_dict=True, include_key=False)
    return [(key[0], parts[key]) for key in sorted(parts)]


def line(night: str, seed: int, name: str, model: dpaa.Model, data: Dataset, seconds: float) -> dict[str, object]:
    """One model on the newest test pairs."""
    found = dpaa.evaluate(model, data)
    numbers = [found.metrics[key] for key in ("ndcg@20", "ndcg@20/warm-users", "ndcg@20/cold-users", "coverage@20")]
    head = (night, seed, name, found.protocol.users, found.protocol.cold_users)
    return dict(zip(COLUMNS, (*head, *(round(number, 5) for number in numbers), round(seconds, 1)), strict=True))


def trained(data: Dataset, **how: object) -> tuple[dpaa.Model, float]:
    """A model and the processor seconds it took."""
    began = time.process_time()
    model = dpaa.fit(data, threads=1, **how)  # type: ignore[arg-type]
    return model, time.process_time() - began


def main() -> None:
    """Measure what is missing."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("log", type=Path)
    asked.add_argument("--method", default="lightgcn")
    asked.add_argument("--seeds", type=int, default=3)
    asked.add_argument("--out", type=Path, default=Path("docs/results/nights.csv"))
    given = asked.parse_args()
    torch.set_num_threads(1)
    done = {(row["night"], row["seed"]) for row in csv.DictReader(given.out.open())} if given.out.exists() else set()
    parts = months(interactions(given.log))
    for seed in range(given.seeds):
        first = pl.concat([part for _, part in parts[:HISTORY]])
        data = Dataset.from_frame(first, split=SplitRule("temporal", valid=0.1, test=0.1), name="shop")
        live, _ = trained(data, method=given.method, seed=seed)
        for month, rows in parts[HISTORY:]:
            night, data = f"{month:%Y-%m}", data.append(rows)
            warm, warm_seconds = trained(data, warm_start=live)
            if (night, str(seed)) not in done:
                cold, cold_seconds = trained(data, method=given.method, seed=seed)
                lines = [
                    line(night, seed, "yesterday's run", live, data, 0.0),
                    line(night, seed, "cold start", cold, data, cold_seconds),
                    line(night, seed, "warm start", warm, data, warm_seconds),
                    line(night, seed, "most-popular", dpaa.fit(data, "most-popular"), data, 0.0),
                ]
                new = not given.out.exists() or not given.out.stat().st_size
                with given.out.open("a", newline="", encoding="utf-8") as file:
                    table = csv.DictWriter(file, COLUMNS)
                    if new:
                        table.writeheader()
                    table.writerows(lines)
                for one in lines:
                    print(*one.values(), flush=True)
            live = warm


if __name__ == "__main__":
    main()
