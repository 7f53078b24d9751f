"""Training on a GPU that is none: what a device would refuse is found, and what it would be waited for is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods import METHODS
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.rows import Batch
from dpaa.training.adam import TiledAdam
from dpaa.training.trainer import Trainer
from tests.conftest import random_pairs
from tests.pretend_cuda import pretend_cuda, waits

SIZE = (400, 200)
QUIET: dict[str, dict[str, Any]] = {
    "apda": {"noise": 0.0, "dropout": 0.0},  # numpy's draws on the processor, torch's on the device
    "dpaa": {"estimate": "current"},
}
STEPS = 3


def made(name: str, device: str) -> tuple[GraphMethod, Trainer]:
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(3), *SIZE, 0.01), *SIZE, device)
    kind = METHODS[name]
    method = kind(graph, kind.settings_type(embedding_size=64, layers=2, batch_size=128, **QUIET.get(name, {})))
    assert isinstance(method, GraphMethod)
    trainer = Trainer(method)
    method.start()
    trainer._adam = TiledAdam(method)
    method.refresh(1)
    return method, trainer


def moved(batch: Batch, device: str) -> Batch:
    """The same batch on another device."""
    parts = {name: one.to(device) for name, one in vars(batch).items() if isinstance(one, Tensor)}
    return replace(batch, **parts)


@pytest.mark.parametrize(
    "name", ["lightgcn", "dpaa", "apda", "navip", "macr", "cvib", "ips", "sam-reg", "ngcf", "simgcl"]
)
def test_a_step_gives_the_losses_of_the_processor_and_waits_for_nothing(name: str) -> None:
    method, trainer = made(name, "cpu")
    batches = [batch for batch, _ in zip(method.batches(1), range(STEPS), strict=False)]
    wanted = [trainer._step(batch).item() for batch in batches]
    with pretend_cuda() as counts:
        method, trainer = made(name, "cuda")
        assert method.device.type == "cuda"
        assert (method.compute.kernel, method.compute.tile_columns) == ("csr", 64)
        there = [moved(batch, "cuda") for batch in batches]
        first = trainer._step(there[0])
        counts.clear()
        found = [first, *(trainer._step(batch) for batch in there[1:])]
        counted = Counter(counts)
        losses = [loss.item() for loss in found]
    assert losses == pytest.approx(wanted, rel=1e-5)
    unique = 2 * (STEPS - 1) if name == "simgcl" else 0  # its contrast is among distinct nodes
    assert waits(counted) == counted["wait: unique"] == unique
    assert counted["copy to the device"] == 0
    assert counted["operations"] / (STEPS - 1) < {"lightgcn": 75, "dpaa": 80, "ips": 80}.get(name, 300)


def test_an_epoch_is_drawn_on_the_device() -> None:
    with pretend_cuda() as counts:
        method, _ = made("lightgcn", "cuda")
        next(iter(method.batches(1)))
        counts.clear()
        drawn = list(method.batches(2))
        counted = Counter(counts)
        seen = torch.cat([batch.negative for batch in drawn]).cpu()
    assert counted["copy to the device"] == 0
    assert waits(counted) == 1  # who can be drawn, once an epoch
    assert seen.min() >= 0
    assert seen.max() < SIZE[1]


def test_a_whole_fit_and_its_lists(small_world: Dataset, tmp_path: Path) -> None:
    with pretend_cuda():
        model = dpaa.fit(small_world, "dpaa", device="cuda", epochs=2, layers=1, embedding_size=16)
        assert model.method.graph.edge_user.device.type == "cuda"
        model.save(tmp_path / "run")
        lists = dpaa.load(tmp_path / "run", device="cuda").recommend(k=5)
        measured = dpaa.evaluate(model, small_world).metrics["recall@20"]
    assert lists.equals(dpaa.load(tmp_path / "run").recommend(k=5))
    assert 0 <= measured <= 1


def test_a_device_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="device must be auto, cpu or cuda, got 'gpu'"):
        dpaa.load(tmp_path, device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="torch finds no CUDA device here"):
            dpaa.load(tmp_path, device="cuda")


def test_the_pretence_refuses_what_a_device_refuses() -> None:
    with pretend_cuda() as counts:
        there, here = torch.ones(3, device="cuda"), torch.ones(3)
        assert there.device.type == "cuda"
        assert here.device.type == "cpu"
        with pytest.raises(RuntimeError, match="same device"):
            there + here
        with pytest.raises(TypeError, match="numpy"):
            there.numpy()
        with pytest.raises(RuntimeError, match="generator"):
            torch.rand(3, device="cuda", generator=torch.Generator())
        with pytest.raises(RuntimeError, match="generator"):
            torch.rand(3, generator=torch.Generator(device="cuda"))
        with pytest.raises(NotImplementedError, match="no CUDA kernel"):
            torch.histogram(there, 3)
        counts.clear()
        assert (there + there).sum().item() == 6
        assert len(there.nonzero()) == 3
        assert bool(there[0] > 0)
        assert there.tolist() == there.cpu().numpy().tolist()
        assert waits(counts) == 5
    assert torch.ones(1).numpy().tolist() == [1.0]
