from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from dpaa.errors import InputError
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


@pytest.mark.parametrize(
    "progress", ["{", "[]", "{}", '{"at": {"epoch": "x"}, "identity": {}}', '{"at": 3, "identity": 1}']
)
def test_what_is_no_checkpoint_is_refused(progress: str, tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    save_file({"a.x": torch.ones(1)}, folder.file, metadata={"progress": progress})
    with pytest.raises(InputError, match=r"is not a readable checkpoint .*to start afresh"):
        folder.load()
