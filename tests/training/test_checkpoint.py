from __future__ import annotations

from pathlib import Path

import torch

from dpaa.training.checkpoint import Checkpoint, CheckpointFolder


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    tensors = {"a.x": torch.arange(6.0).reshape(2, 3), "a.empty": torch.zeros(0, 2), "step": torch.tensor(7)}
    folder = CheckpointFolder(tmp_path / "checkpoint")
    assert folder.load() is None
    folder.save(Checkpoint(tensors, {"epoch": 3}, {"method": "lightgcn"}))
    loaded = folder.load()
    assert loaded is not None
    assert (loaded.epoch, loaded.identity) == (3, {"method": "lightgcn"})
    assert all(torch.equal(loaded.tensors[name], tensor) for name, tensor in tensors.items())
