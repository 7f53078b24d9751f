"""Hyperparameters of every training, those of earlier versions, and how `auto` is resolved."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field

from dpaa._machine import cores, processes_here
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.kernels import most_blocks
from dpaa.graph.tiles import Columns, TiledTable
from dpaa.methods.base import Method
from dpaa.methods.registry import find_method

INITIAL_DEVIATION = 0.1
"""Standard deviation of the initial embeddings."""
EARLIER_DEFAULTS: dict[str, Any] = {
    "initial_deviation": INITIAL_DEVIATION,
    "learning_rate_schedule": "constant",
    "warmup_steps": 0,
    "patience_steps": 0,
    "minimum_steps": 0,
    "validation_steps": 1,
    "weight_decay": 0.0,
}
"""Values of hyperparameters that runs and results lack which were made before these hyperparameters existed."""
PAPER_TRAINING: dict[str, Any] = {"learning_rate": 1e-3, "patience": 50} | EARLIER_DEFAULTS
"""The usual protocol of LightGCN's descendants: a constant learning rate, the best epoch."""
REMOVED: dict[str, tuple[object, ...]] = {
    "error": ("squared",),
    "known_negatives": ("keep",),
    "message_weights": ("lightgcn",),
    "negative_power": (0.0,),
    "negatives": ("all", "popularity"),
    "ranking": ("inner-product",),
    "scores": ("sigmoid",),
    "similarity": ("cosine",),
    "validation_smoothing": (0.0,),
}
"""Hyperparameters of runs that methods no longer have, and the values that say what the method does now."""
RENAMED: dict[str, tuple[str, dict[object, object]]] = {
    "weighted_layers": ("first_layer_only", {"first": 1.0, "all": 0.0}),
}
"""Hyperparameters of runs that have another name now, and their values there."""
TILE_COLUMNS = {"bag": 32, "wide-bag": 64, "csr": 64}
"""Columns per tile: what keeps the gathered rows of one tile in cache, measured for each kernel."""
SMALL_SIDE = 2048
"""Users or items, whichever are fewer, whose rows stay in cache in wide tiles too."""
DRAWN_ROWS = 1024


class TrainingOptions(Method):
    """Hyperparameters of every training."""

    embedding_size: int = Field(default=64, ge=1, le=65_536, description="columns of the embedding tables (D)")
    layers: int = Field(default=3, ge=0, le=64, description="propagation layers (L); 0 is matrix factorisation")
    learning_rate: float = Field(default=1e-3, gt=0, description="learning rate of Adam; with a schedule, its maximum")
    learning_rate_schedule: Literal["inverse-sqrt", "constant"] = Field(
        default="constant",
        description="after the warm-up: `inverse-sqrt` decays like `√(warmup_steps / step)`, `constant` does not",
    )
    warmup_steps: int = Field(default=0, ge=0, description="steps in which the learning rate rises linearly from 0")
    batch_size: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        default=2048,
        description="triples per step; `auto` grows with the log (at most about 500 batches an epoch, never below "
        "2,048)",
    )
    epochs: int = Field(default=1000, ge=1, description="maximum number of epochs")
    patience: int = Field(default=50, ge=1, description="epochs without a better validation recall@20 before stopping")
    patience_steps: Literal["auto"] | Annotated[int, Field(ge=0)] = Field(
        default="auto",
        description="minimum number of such steps before stopping; `auto` is 1.5 / learning_rate (1,500 at 0.001)",
    )
    minimum_steps: Literal["auto"] | Annotated[int, Field(ge=0)] = Field(
        default="auto",
        description="steps before early stopping may end training; `auto` is 1.5 / learning_rate (1,500 at 0.001)",
    )
    validation_steps: int = Field(
        default=6, ge=1, description="minimum number of steps between validations, which are at ends of epochs"
    )
    l2: float = Field(default=1e-4, ge=0, description="weight of `½ ‖E‖²` on the batch's rows of layer 0")
    weight_decay: float = Field(
        default=0.0,
        ge=0,
        description="weight decay of Adam, applied to all trained parameters at every step",
    )
    initial_deviation: Literal["xavier"] | Annotated[float, Field(gt=0)] = Field(
        default=INITIAL_DEVIATION,
        description="standard deviation of the initial embeddings; `xavier`: √(2 / (rows + D)), of users and of items",
    )
    sampler: Literal["user-uniform", "interaction"] = Field(
        default="user-uniform",
        description="`user-uniform`: a random user, then one of the user's items; `interaction`: every interaction "
        "once an epoch",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="`auto` takes CUDA where torch finds it")
    threads: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        default="auto",
        description="threads that share tiles of columns and rows; `auto` = one per core; changes no bit of the result",
    )
    kernel: Literal["auto", "bag", "wide-bag", "csr"] = Field(
        default="auto", description="sparse product: `bag`, `wide-bag` or `csr`; `auto` follows a fixed rule"
    )

    def generator(self, *stream: int) -> torch.Generator:
        """Make a random generator that depends on the seed and the stream alone.

        Parameters
        ----------
        stream : numbers that tell one use of randomness from another

        Returns
        -------
        a generator on the graph's device
        """
        state = np.random.SeedSequence([self.seed, *stream, 0]).generate_state(1, np.uint64)[0]
        return torch.Generator(self.graph.device).manual_seed(int(state >> np.uint64(1)))


@dataclass(frozen=True)
class Compute:
    """Device, kernel, threads and batches of a training, with every `auto` resolved; the manifest keeps them."""

    device: torch.device
    kernel: str
    threads: int
    batch_size: int
    n_batches: int
    """Batches of a full epoch."""
    tile_columns: int
    """Columns per tile: what the cache of a processor holds; all of them on a GPU."""

    @classmethod
    def of(cls, graph: BipartiteGraph, method: TrainingOptions) -> Compute:
        """Resolve a method's hyperparameters on a graph."""
        size, n_interactions = method.embedding_size, int(graph.edge_count.sum(dtype=torch.float64))
        kernel = default_kernel(graph, size) if method.kernel == "auto" else method.kernel
        width = max(size, 1) if graph.device.type == "cuda" else TILE_COLUMNS[kernel]
        threads = max(1, cores() // processes_here()) if method.threads == "auto" else method.threads
        # More threads than tiles and blocks of rows would wait for work that does not exist.
        most = -(-size // width) * most_blocks(2 * graph.n_edges)  # tiles, and blocks of rows of each
        threads = 1 if graph.device.type == "cuda" else min(threads, most)
        batch = max(2048, -(-n_interactions // 500)) if method.batch_size == "auto" else method.batch_size
        return cls(graph.device, kernel, threads, batch, -(-n_interactions // batch), width)

    def as_json(self) -> dict[str, object]:
        """Describe the computation for the manifest."""
        names = ("kernel", "tile_columns", "threads", "batch_size")
        return {"device": str(self.device)} | {name: getattr(self, name) for name in names}


def default_kernel(graph: BipartiteGraph, columns: int) -> str:
    """The sparse product for a graph and a table of so many columns, by a fixed rule.

    Wide tiles save 4 to 18% where one side has few nodes (290 to 1,410) and cost 2 to 28% where none has.  A table of
    64 columns keeps two tiles: one for each of two threads.  On a GPU `embedding_bag` walks a bag in one thread per
    column, a bag as long as the most popular item's, so it is `csr`.
    """
    if graph.edge_user.device.type == "cuda":
        return "csr"
    return "wide-bag" if min(graph.n_users, graph.n_items) <= SMALL_SIDE and columns >= 128 else "bag"


def initial_table(
    n: int, part: Columns, width: int, deviation: float, generator: torch.Generator, device: torch.device
) -> TiledTable:
    """Draw a table from a normal distribution, row by row.

    Parameters
    ----------
    n : rows
    part : columns that are kept; all are drawn, so that the numbers do not depend on the part
    width : most columns per tile
    deviation : standard deviation
    generator, device : of torch

    Returns
    -------
    the (n, columns) table
    """
    widths = [min(width, part.width - first) for first in range(0, part.width, width)]
    table = TiledTable(tuple(torch.empty(n, tile, device=device) for tile in widths))
    # By blocks of rows, which draws the same; torch draws 16 at a time, so no block but one has fewer rows.
    for first, last in itertools.pairwise([*range(0, max(n - 16, 1), DRAWN_ROWS), n]):
        rows = part.cut(torch.empty(last - first, part.size).normal_(0.0, deviation, generator=generator))
        for tile, columns in zip(table.tiles, table.columns, strict=True):
            tile[first:last] = rows[:, columns]
    return table


def known(hyperparameters: Mapping[str, Any], method: str | type[Method]) -> dict[str, Any]:
    """Choose the hyperparameters that a method has.

    Parameters
    ----------
    hyperparameters : name → value, of several methods
    method : one of them

    Returns
    -------
    its own
    """
    fields = find_method(method).hyperparameters.model_fields
    return {name: value for name, value in hyperparameters.items() if name in fields}


def with_earlier_defaults(kind: type[Method], values: dict[str, Any]) -> dict[str, Any]:
    """Hyperparameters of a run's file as the method has them now.

    Parameters
    ----------
    kind : class of the method
    values : hyperparameters of the file

    Returns
    -------
    a new dict, completed by those that did not exist when it was written, without those that were removed since
    """
    if not issubclass(kind, TrainingOptions):
        return dict(values)
    fields = kind.hyperparameters.model_fields
    unweighted = values.get("message_weights") == "lightgcn"  # DPAA's, which simgcl and ngcf had, were without effect
    kept = {n: v for n, v in values.items() if n in fields or not (unweighted or v in REMOVED.get(n, ()))}
    for name, (now, meaning) in RENAMED.items():
        if name in kept and now in fields and kept[name] in meaning:
            kept[now] = meaning[kept.pop(name)]
    return {**EARLIER_DEFAULTS, **kept}
