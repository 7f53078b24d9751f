"""The defaults of LightGCN, of its softmax and of other methods beside previous ones, on data of many sizes.

    python scripts/default_training.py DATA_FOLDER [--data coat health …] [--training default …] [--seeds 5]

DATA_FOLDER has coat/, kuairec/paper-split/ and benchmarks/ (lists of train and test pairs; a tenth of each user's
training pairs is held out for validation).  Every training is a line of docs/results/default-training.csv, written when
it ends: the same call continues where it was stopped.  Test is measured once, with the epoch that validation chose.
"""

from __future__ import annotations

import argparse
import csv
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.data.sources.published import coat
from dpaa.data.sources.severity import read_pairs, with_severity
from dpaa.data.sources.world import simulate
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods import find_method
from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.runs.fit import fit_method, make_method

DATA = ("coat", "s=0", "s=5", "demo", "health", "electronic", "epinions")
LONG = PAPER_TRAINING | {"patience": 100, "patience_steps": 1500}
PREVIOUS = {
    "learning_rate": 1e-2,
    "learning_rate_schedule": "inverse-sqrt",
    "warmup_steps": 100,
    "patience": 15,
    "patience_steps": 50,
    "minimum_steps": 150,
}
PREVIOUS_SSM = {
    "temperature": 0.1,
    "negatives": "batch",
    "n_negatives": 128,
    "learning_rate": 1e-3,
    "sampler": "user-uniform",
    "patience": 50,
}
TRAININGS: dict[str, tuple[str, dict[str, Any]]] = {
    "long": ("lightgcn", LONG),
    "previous default": ("lightgcn", PREVIOUS),
    "default": ("lightgcn", {}),
    "ssm previous default": ("ssm", PREVIOUS_SSM),
    "ssm default": ("ssm", {}),
} | {name: (name, {}) for name in ("item-knn", "ease", "turbo-cf", "gf-cf", "als", "ultragcn")}
SHORTER = {"demo": 50, "electronic": 50, "epinions": 50}
"""Epochs of patience of the long training where an epoch has many steps."""
COLUMNS = ("data", "training", "seed", "epochs", "best_epoch", "valid_recall@20", "recall@20", "ndcg@20", "cpu_seconds")
HELD_OUT = 0.1


@cache
def dataset(name: str, folder: Path) -> Dataset:
    """By its name."""
    if name == "demo":
        return simulate()
    if name == "coat":
        return coat(folder / "coat")
    if name.startswith("s="):
        pairs, _ = read_pairs([str(folder / "kuairec" / "paper-split" / f"{part}.txt") for part in ("valid", "test")])
        return with_severity(pairs, float(name.removeprefix("s=")))
    train, test = (_lists(folder / "benchmarks" / name / f"{part}.txt") for part in ("train", "test"))
    held_out = pl.Series(_held_out(train["user_id"].to_numpy()))
    return Dataset.from_frame(train.filter(~held_out), valid=train.filter(held_out), test=test, name=name)


def _lists(file: Path) -> pl.DataFrame:
    rows = [[int(word) for word in line.split()] for line in file.read_text().splitlines()]
    pairs = sorted((row[0], item) for row in rows for item in row[1:])
    return pl.DataFrame(pairs, schema=["user_id", "item_id"], orient="row")


def _held_out(user: np.ndarray) -> np.ndarray:
    """A tenth of each user's pairs on average, never all; of pairs in the order of users."""
    rng, counts = np.random.default_rng(0), np.bincount(user)
    rng.random(len(counts))  # the draws that a test share would take
    number = np.minimum((counts * HELD_OUT + rng.random(len(counts))).astype(int), np.maximum(counts - 1, 0))
    order = rng.permutation(len(user))
    order = order[np.argsort(user[order], kind="stable")]
    rank = np.arange(len(user)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = np.zeros(len(user), dtype=bool)
    chosen[order[rank < number[user]]] = True
    return chosen


def trained(data: Dataset, method: str, settings: dict[str, Any]) -> dict[str, Any]:
    """One training, and what it gives on test."""
    began, untested = time.process_time(), replace(data, test=Pairs.of([], []))  # training cannot look at test
    known = find_method(method).hyperparameters.model_fields
    own = {name: value for name, value in (settings | {"threads": 1}).items() if name in known}
    model = fit_method(make_method(untested, method, own), untested, dial=False)
    seconds, about = time.process_time() - began, model.manifest.get("training") or {}
    valid, test = (Evaluator(data, 20, split, "drop").recall(model.method) for split in ("valid", "test"))
    found = {"epochs": about.get("epochs"), "best_epoch": about.get("best_epoch"), "cpu_seconds": round(seconds, 1)}
    return found | {name: round(value, 5) for name, value in test.items()} | {
        "valid_recall@20": round(valid["recall@20"], 5)
    }  # fmt: skip


def main() -> None:
    """Train what is missing."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--data", nargs="+", default=DATA)
    asked.add_argument("--training", nargs="+", default=list(TRAININGS))
    asked.add_argument("--seeds", type=int, default=5)
    asked.add_argument("--out", type=Path, default=Path("docs/results/default-training.csv"))
    given = asked.parse_args()
    torch.set_num_threads(1)
    known = list(csv.DictReader(given.out.open())) if given.out.exists() else []
    done = {(row["data"], row["training"], int(row["seed"])) for row in known}
    for seed, name, training in ((s, d, t) for s in range(given.seeds) for d in given.data for t in given.training):
        if (name, training, seed) in done:
            continue
        method, settings = TRAININGS[training]
        if seed and not find_method(method).seeded:
            continue
        settings = settings | {"seed": seed}
        if training == "long":
            settings["patience"] = SHORTER.get(name, LONG["patience"])
        line = {"data": name, "training": training, "seed": seed} | trained(
            dataset(name, given.folder), method, settings
        )
        new = not given.out.exists() or not given.out.stat().st_size
        with given.out.open("a", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, COLUMNS)
            if new:
                table.writeheader()
            table.writerow(line)
        print(*(line[column] for column in COLUMNS), flush=True)


if __name__ == "__main__":
    main()
