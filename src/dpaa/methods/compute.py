"""How a training computes: device, sparse kernel, threads, batch size, with every `auto` resolved."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import default_kernel, tile_width
from dpaa.kernels.machine import cores, processes_here
from dpaa.kernels.row_blocks import most_blocks
from dpaa.methods.settings import TrainedSettings


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
