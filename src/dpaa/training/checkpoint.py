"""One file that holds everything a stopped training needs; replaced as a whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from dpaa.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor


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
        """Write beside, flush to disk, rename: a crash leaves the old checkpoint or the new one, never half of one."""
        beside = self.file.with_suffix(".new")
        tensors = {name: tensor.contiguous().cpu() for name, tensor in checkpoint.tensors.items()}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            save_file(tensors, beside, metadata={"progress": json.dumps(checkpoint.progress)})
            with beside.open("rb") as written:
                os.fsync(written.fileno())
            beside.replace(self.file)
            sync_folder(self.folder)
        except (OSError, SafetensorError) as error:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            raise InputError(
                f"cannot write the checkpoint {self.file} ({str(error).splitlines()[0]}); "
                "make room and go on with --resume"
            ) from None

    def load(self) -> Checkpoint | None:
        """The last checkpoint, or None where there is none."""
        if not self.file.exists():
            return None
        try:
            with safe_open(self.file, framework="pt") as opened:
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # not a dict
                progress = json.loads((opened.metadata() or {})["progress"])
                int(progress["at"]["epoch"]), dict(progress["identity"])
        except (SafetensorError, KeyError, ValueError, TypeError, RecursionError, OSError) as error:
            raise InputError(
                f"{self.file} is not a readable checkpoint ({error}); remove {self.folder} to start afresh"
            ) from None
        return Checkpoint(tensors, progress)

    def remove(self) -> None:
        """Training has ended."""
        shutil.rmtree(self.folder, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make renames inside a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
