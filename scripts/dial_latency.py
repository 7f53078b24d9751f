"""What the popularity dial costs at query time: recommendations with and without it, as ratios measured in one run.

    python -m scripts.dial_latency [--items 20000] [--users 5000] [--out benchmarks/DIAL.md]

A made graph with a long tail; vectors are random, which changes no time.  One user is asked for as a service would ask,
through `Model.recommend`; a block of 500 as a batch would.  "product alone" is the inner product with d and with d + 1
columns, without ranking: what an index of one's own pays.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import torch
from benchmarks.timing import machine, take_turns

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.item_knn import ItemKNN
from dpaa.methods.settings import TrainedSettings
from dpaa.reproduction.tables import markdown
from dpaa.ranking.dial import DialVectors
from dpaa.runs.model import Model

KAPPA, BLOCK = 1.0, 500


def graph_of(n_users: int, n_items: int) -> BipartiteGraph:
    """Twenty items a user, by a power law."""
    rng = np.random.default_rng(0)
    items = (rng.random(20 * n_users) ** 3 * n_items).astype(np.int32)
    return BipartiteGraph.from_pairs(Pairs.of(np.repeat(np.arange(n_users), 20), items), n_users, n_items)


def by_vectors(graph: BipartiteGraph) -> LightGCN:
    """A method that ranks by an inner product of 64 numbers."""
    method = LightGCN(graph, TrainedSettings())
    generator = torch.Generator().manual_seed(0)
    method.user_embedding = torch.empty(graph.n_users, 64).normal_(generator=generator)
    method.item_embedding = torch.empty(graph.n_items, 64).normal_(generator=generator)
    return method


def by_scores(graph: BipartiteGraph) -> ItemKNN:
    """One that does not."""
    method = ItemKNN(graph, ItemKNN.settings_type())
    method.fit()
    return method


def model_of(method: LightGCN | ItemKNN) -> Model:
    """With ids, as it is asked."""
    graph = method.graph
    train = Pairs(graph.edge_user.numpy().astype(np.int32), graph.edge_item.numpy().astype(np.int32))
    users, items = pl.Series("user_id", range(graph.n_users)), pl.Series("item_id", range(graph.n_items))
    return Model(method, users, items, train)


def compared(without: Callable[[], object], turned: Callable[[], object]) -> tuple[float, float]:
    """Median milliseconds of both, taken in turn."""
    found = take_turns({"without": without, "with": turned}, warm_ups=5, repeats=60)
    return 1e3 * found["without"], 1e3 * found["with"]


def main() -> None:
    """Measure, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--users", type=int, default=5_000)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    graph = graph_of(chosen.users, chosen.items)
    rows = []

    def add(name: str, times: tuple[float, float]) -> None:
        rows.append([name, f"{times[0]:.2f}", f"{times[1]:.2f}", f"{times[1] / times[0]:.2f}"])

    vectors = by_vectors(graph)
    prepared = DialVectors.of(vectors)
    assert prepared is not None
    table, wide, users = vectors.item_embedding, prepared.items, vectors.user_embedding
    for number in (1, BLOCK):
        queries = users[:number]
        longer = prepared.queries(queries, KAPPA)
        who = "1 user" if number == 1 else f"{number} users"
        add(f"product alone, {who}", compared(lambda q=queries: q @ table.T, lambda q=longer: q @ wide.T))
    for name, method in (("lightgcn", vectors), ("item-knn", by_scores(graph))):
        model = model_of(method)
        for number in (1, BLOCK):
            people = list(range(number))
            who = "1 user" if number == 1 else f"{number} users"
            times = compared(
                lambda m=model, p=people: m.recommend(p, 20),
                lambda m=model, p=people: m.recommend(p, 20, popularity_dial=KAPPA),
            )
            add(f"{name}, top 20, {who}", times)
    first = take_turns({"prepare": lambda: DialVectors.of(vectors)}, warm_ups=1, repeats=5)["prepare"]
    text = markdown(["", "without (ms)", "with the dial (ms)", "ratio"], rows)
    page = f"""# The popularity dial at query time

{chosen.items:,} items, 64 numbers a vector; {machine()}.  Medians of 60 turns, ratios good to about ±0.3, since other
work ran beside; made by `python -m scripts.dial_latency --items {chosen.items} --users {chosen.users}`.

{text}
The first turn of the dial in a process makes the longer item table and the covariance once: {1e3 * first:.0f} ms.
"""
    print(page)
    if chosen.out:
        chosen.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
