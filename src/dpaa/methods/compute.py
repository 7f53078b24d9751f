"""How a training computes: device, sparse kernel, threads, batch size, with every `auto` resolved."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import default_kernel, tile_width
from dpaa.kernels.machine import cores, processes_here
from dpaa.kernels.row_blocks import most_blocks
from dpaa.methods.settings import TrainedSettings

PROCESS_BYTES = 300_000_000
"""What Python and the libraries take before anything is trained."""
BUFFER_BYTES = 100_000_000
"""Blocks of scores and lists while ranking, the dial's curve, what the allocator keeps."""

EDGE_BYTES = 80
"""Graph, weights, sampler and an epoch's triples (43) and the selection of a step (19), measured on 1 to 5 million
edges, and a margin."""
PAIR_BYTES = 30
"""Of those the pairs of all users, and the triples that are drawn from them: in every process."""
USER_EDGE_BYTES = EDGE_BYTES - PAIR_BYTES
ROW_BYTES = 16
"""Of a column of a user's row: ego, two moments, best epoch."""
GRAPH_BYTES = 16
"""Of those the graph alone."""


@dataclass(frozen=True)
class Compute:
    """What the manifest says under this name."""

    device: torch.device
    kernel: str
    """By the fixed rule where nothing is set."""
    threads: int
    """That share the tiles, and the rows of a tile where they are more: one per core of a process's part of them."""
    batch_size: int
    """Triples per step; `auto` is at most about 500 batches an epoch, never below 2,048."""
    n_batches: int
    """Of a full epoch."""
    tile_columns: int
    """Columns per tile: what the cache of a processor holds; all of them on a GPU, where a tile is a launch."""

    @classmethod
    def of(cls, graph: BipartiteGraph, settings: TrainedSettings, n_interactions: int) -> Compute:
        """For this graph and these settings."""
        device, size = graph.edge_user.device, settings.embedding_size
        kernel = default_kernel(graph, size) if settings.kernel == "auto" else settings.kernel
        width = tile_width(kernel, size, device)
        threads = max(1, cores() // processes_here()) if settings.threads == "auto" else settings.threads
        tiles = -(-size // width)
        threads = 1 if device.type == "cuda" else min(threads, tiles * most_blocks(2 * graph.n_edges))
        batch = max(2048, -(-n_interactions // 500)) if settings.batch_size == "auto" else settings.batch_size
        return cls(device, kernel, threads, batch, -(-n_interactions // batch), width)

    def as_json(self) -> dict[str, object]:
        """For the manifest."""
        return {
            "device": str(self.device),
            "kernel": self.kernel,
            "tile_columns": self.tile_columns,
            "threads": self.threads,
            "batch_size": self.batch_size,
        }

    def memory_bytes(
        self,
        graph: BipartiteGraph,
        settings: TrainedSettings,
        processes: int = 1,
        leads: bool = True,
        user_parts: int = 1,
    ) -> int:
        """About what training takes: ego, two moments, best epoch and read-out, the graph, a block of scores.

        Of several processes each has its columns and its users; the one that leads collects the first four whole in a
        checkpoint, and keeps the graph of all users for the end.
        """
        size, nodes = settings.embedding_size, -(-graph.n_users // user_parts) + graph.n_items
        if processes == 1:
            numbers = 5 * size * nodes
        else:
            numbers = 4 * -(-size * user_parts // processes) * nodes + 4 * size * graph.n_nodes * leads
            numbers += size * nodes * (user_parts > 1)  # one process of each part collects all columns of its users
        tables = 4 * numbers
        edges = graph.n_edges * EDGE_BYTES
        if user_parts > 1:
            own = PAIR_BYTES + USER_EDGE_BYTES / user_parts
            edges = round(graph.n_edges * (own + GRAPH_BYTES * leads))
        batch = 12 * 3 * self.batch_size * settings.embedding_size * 4
        return tables + edges + batch + PROCESS_BYTES + BUFFER_BYTES
