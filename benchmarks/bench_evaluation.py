"""Evaluation against the score product and top-k alone; sampling; recommendations."""

from __future__ import annotations

import time

import numpy as np
import polars as pl
import torch

from benchmarks.graphs import SIZES, Cases, zipf_pairs
from benchmarks.timing import take_turns
from dpaa._machine import computing
from dpaa.data.dataset import Dataset
from dpaa.evaluation.evaluator import Evaluator
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import attach
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.tables import Tables
from dpaa.ranking.rank import BLOCK_SCORES
from dpaa.runs.model import Model


def dataset_of(name: str) -> Dataset:
    """A generated log with a test split of 2 pairs per user."""
    n_users, n_items, n_pairs, _ = SIZES[name]
    train = zipf_pairs(n_users, n_items, n_pairs)
    rng = np.random.default_rng(1)
    test = pl.DataFrame({"user_id": np.repeat(np.arange(n_users), 2), "item_id": rng.integers(0, n_items, 2 * n_users)})
    frame = pl.DataFrame({"user_id": train.user, "item_id": train.item}).cast(pl.Int64)
    return Dataset.of({"train": frame, "test": test.unique()}, name=name, about={})


def run(wanted: Cases, repeats: int = 5) -> list[list[str]]:
    """Rows: case, floor, ours, ratio, sampling of an epoch, recommendations per second."""
    rows = []
    with computing():
        for name in wanted.graphs(SIZES):
            data = dataset_of(name)
            graph = BipartiteGraph.from_pairs(data.train, data.n_users, data.n_items)
            for size in wanted.sizes:
                method = attach(LightGCN(embedding_size=size, layers=2, threads=1), graph)
                Tables.start(method)
                method.finish()
                rows.append(_case(name, size, data, method, repeats))
                print(" | ".join(rows[-1]), flush=True)
    return rows


def _case(name: str, size: int, data: Dataset, method: LightGCN, repeats: int) -> list[str]:
    evaluator = Evaluator(data, 20)
    users = torch.from_numpy(evaluator.users.astype(np.int64))
    block = max(1, BLOCK_SCORES // data.n_items)

    def lowest() -> None:
        for part in users.split(block):
            torch.topk(method.user_embedding[part] @ method.item_embedding.T, 20, dim=1)

    found = take_turns({"floor": lowest, "ours": lambda: evaluator.recall(method)}, warm_ups=1, repeats=repeats)
    began = time.perf_counter()
    method.tables.sampler.epoch(np.random.default_rng(0), "user-uniform")
    sampling = time.perf_counter() - began
    model = Model(method, data.user_ids, data.item_ids, data.train)
    began = time.perf_counter()
    rows = sum(len(part) for part in model.lists(k=20).blocks)
    recommending = time.perf_counter() - began
    return [
        f"{name}, D {size}",
        f"{found['floor']:.3f} s",
        f"{found['ours']:.3f} s",
        f"{found['ours'] / found['floor']:.2f} (≤ 1.5)",
        f"{sampling:.3f} s",
        f"{rows / recommending:,.0f} rows/s",
    ]
