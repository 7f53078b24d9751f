"""Exposure for those who make the items: a floor per group, and re-rankers by a column, on held-out users.

    python scripts/group_exposure.py [LOG.csv.gz] [--out docs/results/group-exposure.csv]

In the simulated world groups are publishers.  LOG is the Online Retail log (UCI); its groups are the quarters of the
items by median price.  Lists are EASE's for the users of the test split; nothing was chosen on it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import polars as pl

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.data.sources.world import simulate_world
from dpaa.evaluation.evaluator import Evaluator
from dpaa.ranking.reranker import parse_reranker
from dpaa.runs.measure import measured

K = 20
TRIED = (
    *("none", "xquad,strength=0.3", "xquad,strength=0.6", "steck,strength=0.5", "calibrated-popularity,strength=0.9"),
    *("fairrec,strength=0.5", "fairrec,strength=0.8", "fairrec,strength=1"),
)


def shop(log: Path) -> Dataset:
    """Who bought what, and the items' bands of price."""
    rows = pl.read_csv(log, infer_schema_length=0).filter(pl.col("CustomerID").str.len_chars() > 0)
    rows = rows.with_columns(pl.col("Quantity", "UnitPrice").cast(pl.Float64)).filter(pl.col("Quantity") > 0)
    pairs = rows.select(user_id="CustomerID", item_id="StockCode").unique(maintain_order=True)
    price = rows.group_by("StockCode", maintain_order=True).agg(pl.col("UnitPrice").median())
    quarter = np.searchsorted(np.quantile(price["UnitPrice"], [0.25, 0.5, 0.75]), price["UnitPrice"])
    names = np.array(["1 cheap", "2", "3", "4 dear"])[quarter]
    items = pl.DataFrame({"item_id": price["StockCode"], "group": names})
    return Dataset.from_frame(pairs, split="random", name="online-retail", items=items)


def main() -> None:
    """Measure every re-ranker on every source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, default=Path("docs/results/group-exposure.csv"))
    given = parser.parse_args()
    world = simulate_world()
    sources = {"world": world.dataset.with_items(world.publishers.rename({"publisher": "group"}))}
    if given.log is not None:
        sources["online-retail"] = shop(given.log)
    rows = []
    for source, data in sources.items():
        model, evaluator = dpaa.fit(data, "ease"), Evaluator(data, K, group_by="group")
        masks = np.stack(list(evaluator.truth.groups.values()))
        worst = None
        for text in (*TRIED, "fa-ir,strength=0.2"):
            by = f",by=group={worst}" if text.startswith("fa-ir") else ",by=group"
            reranker = None if text == "none" else parse_reranker(text + by)
            began = time.process_time()
            found = measured(model, evaluator, rerank=reranker)
            seconds = time.process_time() - began
            places = np.array([mask[found.lists[found.lists >= 0]].sum() for mask in masks])
            share = float(text.partition("=")[2]) if text.startswith("fairrec") else 0.0
            floor = int(share * len(found.lists) * K / len(masks))
            ratios = {name: found.metrics[f"exposure@{K}/{name}"] for name in evaluator.truth.groups}
            worst = worst or min(ratios, key=lambda name: ratios[name]).partition("=")[2]
            row = {"source": source, "reranker": text if text == "none" else text + by, "users": len(found.lists)}
            for name in ("ndcg", "exposure", "exposure_of_catalogue", "exposure_loss", "coverage", "arp"):
                key = f"{name}@{K}/group" if name.startswith("exposure") else f"{name}@{K}"
                row[key] = round(found.metrics[key], 5)
            row |= {"floor": floor, "fewest_places": int(places.min()), "below_floor": int((places < floor).sum())}
            rows.append(row | {"cpu_seconds": round(seconds, 1)})
            print(rows[-1], flush=True)
    pl.DataFrame(rows).write_csv(given.out)


if __name__ == "__main__":
    main()
