"""How long re-rankers take: many users, each with a list of candidates, on one core.

    python -m scripts.rerank_speed [--users 200000] [--candidates 100] [--k 20] [--out benchmarks/RERANK.md]

A made log with a long tail, random scores.  Timed is all that is done from lists of candidates (as a file or another
system has them) to lists of k, groups and histories included; not the reading and writing of files.  Before it is
timed, every re-ranker at strength 0 is seen to return the first k candidates.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from benchmarks.timing import machine

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.reproduction.tables import markdown
from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import Candidates
from dpaa.ranking.reranker import make_reranker

N_ITEMS, HISTORY, BLOCK = 20_000, 50, 40_000


def world(n_users: int, n_candidates: int) -> tuple[BipartiteGraph, torch.Tensor, torch.Tensor]:
    """Fifty interactions a user by a power law; distinct candidates by another, scores that fall."""
    rng = np.random.default_rng(0)
    items = (rng.random(HISTORY * n_users) ** 3 * N_ITEMS).astype(np.int32)
    graph = BipartiteGraph.from_pairs(Pairs.of(np.repeat(np.arange(n_users), HISTORY), items), n_users, N_ITEMS)
    begin = (rng.random((n_users, 1)) ** 3 * N_ITEMS).astype(np.int64)
    candidates = (begin + rng.integers(1, 60, (n_users, n_candidates)).cumsum(axis=1)) % N_ITEMS
    scores = -np.sort(rng.random((n_users, n_candidates)).astype(np.float32), axis=1)
    return graph, torch.from_numpy(candidates), torch.from_numpy(-scores).flip(1).contiguous()


def main() -> None:
    """Measure, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    graph, items, scores = world(chosen.users, chosen.candidates)
    rows = []
    for name in RERANKERS.built_in:
        if "strength" not in RERANKERS[name].model_fields:  # the dial turns scores, not lists
            continue
        few = slice(1000)
        neutral = make_reranker(name, {"strength": 0})
        about = Candidates(graph, None)
        _, places = neutral.rerank_lists(scores[few], items[few], torch.arange(chosen.users)[few], chosen.k, about)
        assert (places == torch.arange(chosen.k)).all(), name
        kinds: list[dict[str, object]] = (
            [{"coverage": kind} for kind in ("binary", "smooth")] if name == "xquad" else [{}]
        )
        for settings in kinds:
            reranker, about = make_reranker(name, {"strength": 0.5} | settings), Candidates(graph, None)
            wall, processor = time.perf_counter(), time.process_time()
            for part in torch.arange(chosen.users).split(BLOCK):
                reranker.rerank_lists(scores[part], items[part], part, chosen.k, about)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            words = " ".join([name, *map(str, settings.values())])
            rows.append([words, f"{wall:.1f}", f"{processor:.1f}", f"{chosen.users / processor:,.0f}"])
            print(*rows[-1])
    table = markdown(["re-ranker", "seconds", "of the processor", "lists a second"], rows)
    page = f"""# Re-ranking speed

{chosen.users:,} users × {chosen.candidates} candidates to lists of {chosen.k}; {N_ITEMS:,} items, {HISTORY} a history;
one thread; {machine()}.

Made by `python -m scripts.rerank_speed --users {chosen.users} --candidates {chosen.candidates} --k {chosen.k}`.

{table}
"""
    if chosen.out:
        chosen.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
