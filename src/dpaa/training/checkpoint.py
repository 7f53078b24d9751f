"""One file that holds everything a stopped training needs; replaced as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from dpaa._io import check_regular, own_folder, remove_folder, write_file
from dpaa.errors import InputError, reason

DIGEST = "digest"
"""Of all that is in the file, so that damage is found; a checkpoint of before it was kept has none."""


STARTED_FROM = "start"
"""In what a checkpoint was made with: the digest of the tables of another run, where training started from them."""


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and the small rest as JSON."""

    tensors: dict[str, Tensor]
    progress: dict[str, Any]

    @property
    def epoch(self) -> int:
        """The epoch it stands in."""
        return int(self.progress["at"]["epoch"])

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors whose names begin with `name.`, without that beginning."""
        return {key[len(name) + 1 :]: value for key, value in self.tensors.items() if key.startswith(f"{name}.")}


class CheckpointFolder:
    """`checkpoint/` of a run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "state.safetensors"

    def save(self, checkpoint: Checkpoint) -> None:
        """A crash leaves the old checkpoint or the new one, never half of one."""
        tensors = {name: tensor.contiguous().cpu() for name, tensor in checkpoint.tensors.items()}
        text = json.dumps(checkpoint.progress)
        about = {"progress": text, DIGEST: _digest(tensors, text)}
        remedy = "make room and continue with --resume"
        own_folder(self.folder, remedy)
        write_file(self.file, lambda file: save_file(tensors, file, metadata=about), remedy)

    def load(self) -> Checkpoint | None:
        """The last checkpoint, or None where there is none."""
        if not self.file.exists():
            return None
        check_regular(self.file)
        try:
            with safe_open(self.file, framework="pt") as opened:
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # not a dict
                about = opened.metadata() or {}
                progress = json.loads(about["progress"])
                int(progress["at"]["epoch"]), dict(progress["identity"])
                if DIGEST in about and about[DIGEST] != _digest(tensors, about["progress"]):
                    raise ValueError("its content is not what its digest says")
        except (SafetensorError, KeyError, ValueError, TypeError, RecursionError, OverflowError, OSError) as error:
            raise InputError(
                f"{self.file} is not a readable checkpoint ({reason(error)}); remove {self.folder} to start afresh"
            ) from None
        return Checkpoint(tensors, progress)

    def remove(self) -> None:
        """Training has ended."""
        remove_folder(self.folder)


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    found = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
