from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from dpaa.errors import InputError
from dpaa.training.checkpoint import Checkpoint, CheckpointFolder

PROGRESS = {"at": {"epoch": 3}, "identity": {"method": "lightgcn"}}


def saved(folder: Path) -> CheckpointFolder:
    """A checkpoint with every kind of tensor."""
    tensors = {"a.x": torch.arange(6.0).reshape(2, 3), "a.empty": torch.zeros(0, 2), "step": torch.tensor(7)}
    kept = CheckpointFolder(folder / "checkpoint")
    kept.save(Checkpoint(tensors, PROGRESS))
    return kept


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    found = saved(tmp_path).load()
    assert found is not None
    assert found.progress == PROGRESS
    assert found.epoch == 3
    assert found.part("a")["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert CheckpointFolder(tmp_path / "none").load() is None


def test_a_damaged_one_is_refused_though_it_can_be_read(tmp_path: Path) -> None:
    kept = saved(tmp_path)
    content = bytearray(kept.file.read_bytes())
    content[-1] ^= 64
    kept.file.write_bytes(content)
    assert load_file(kept.file)
    with pytest.raises(InputError, match=r"its content is not what its digest says.*to start afresh"):
        kept.load()


def test_one_of_before_digests_were_kept_is_read(tmp_path: Path) -> None:
    kept = saved(tmp_path)
    save_file({"a.x": torch.ones(1)}, kept.file, metadata={"progress": '{"at": {"epoch": 1}, "identity": {}}'})
    assert kept.load() is not None
