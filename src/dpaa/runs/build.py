"""A method on the training graph of a dataset, its settings checked."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods import find_method
from dpaa.methods.base import Method, Randomised, attach


def make_method(data: Dataset, method: str | type[Method] | Method, settings: Mapping[str, object]) -> Method:
    """By name, by class or configured; settings given beside a configured one come on top of its own."""
    kind = find_method(method)
    own = method.get_params() if isinstance(method, Method) else {}
    configured = kind(**own | dict(settings))
    device = resolve_device(getattr(configured, "device", "cpu"))
    made: Method = attach(configured, BipartiteGraph.from_pairs(data.train, data.n_users, data.n_items, device))
    if isinstance(made, Randomised):
        if data.randomised is None:
            raise InputError(
                f"{made.name} also learns from pairs of randomised exposure, and {data.name} carries none; make a "
                "dataset that does with `dpaa data randomised DATASET --out DIR`, or use another method"
            )
        made.take(data.randomised)
    return made


def resolve_device(wanted: str) -> str:
    """`cpu` or a GPU; of several processes on a machine each takes its own."""
    if wanted not in ("auto", "cpu", "cuda"):
        raise InputError(f"device must be auto, cpu or cuda, got {wanted!r}")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InputError("hyperparameter device: torch finds no CUDA device here; use device=cpu or device=auto")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    here = os.environ.get("LOCAL_RANK", "")
    return f"cuda:{here}" if wanted == "cuda" and here.isdigit() else wanted
