"""Validation recall@20 of item-knn and svd-gcn for candidate values of their hyperparameters: what chose the defaults.

    python scripts/closed_form_defaults.py gowalla=gowalla/train.txt coat=data/coat … > FILE.csv

Each data set is a file with a line `user item item …` per user, or a folder of `dpaa data`; of its training pairs a
tenth of each user's is held out, and 5,000 users are measured.  The default has the largest mean share of the best.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import torch

import dpaa


def held_out(path: Path) -> dpaa.Dataset:
    """The training pairs; every tenth, users one after another and each user's in random order, is held out."""
    if path.is_dir():
        pairs = dpaa.read_dataset(path).frame("train").select("user_id", "item_id")
    else:
        lines = [(user, items) for user, *items in map(str.split, path.read_text(encoding="utf-8").splitlines())]
        pairs = pl.DataFrame(lines, ["user_id", "item_id"], orient="row").explode("item_id").drop_nulls()
    pairs = pairs.sample(fraction=1, shuffle=True, seed=0).sort("user_id", maintain_order=True)
    valid = pairs.gather_every(10, 9)
    some = valid["user_id"].unique(maintain_order=True)
    valid = valid.filter(pl.col("user_id").is_in(some.sample(min(5000, len(some)), seed=0).implode()))
    return dpaa.Dataset.from_frame(pairs.filter(pl.int_range(pl.len()) % 10 < 9), valid=valid)


def candidates(data: dpaa.Dataset) -> Iterator[tuple[str, dpaa.Model]]:
    """Hyperparameters, and a model with them; fewer neighbours and fewer vectors are the first of many."""
    model = dpaa.fit(data, "item-knn", neighbours=200)
    made: Any = model.method
    weight, neighbour = made.weight, made.neighbour
    for k in (20, 50, 75, 100, 200):
        made.weigh(weight[:, :k], neighbour[:, :k])
        yield f"item-knn,neighbours={k}", model
    model = dpaa.fit(data, "svd-gcn", rank=480, emphasis=0.0, degree_shift=4.0)
    made = model.method
    plain, values = (made.user_embedding, made.item_embedding), made.singular_values
    for k, emphasis in product((30, 60, 120, 240, 480), (2.0, 3.0, 4.0)):
        made.user_embedding, made.item_embedding = (side[:, :k] * (emphasis * values[:k]).exp() for side in plain)
        yield f"svd-gcn,rank={k} emphasis={emphasis:g} degree_shift=4", model


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("data,method,hyperparameters,recall@20")
    for name, _, place in (text.partition("=") for text in sys.argv[1:]):
        data = held_out(Path(place))
        for candidate, model in candidates(data):
            recall = dpaa.evaluate(model, data, split="valid").metrics["recall@20"]
            print(f"{name},{candidate},{recall:.4f}", flush=True)
