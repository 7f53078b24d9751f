"""Starting points and checkpoints of a training."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from dpaa._io import check_regular, own_folder, remove_folder, write_file
from dpaa.errors import InputError, reason
from dpaa.methods.tables import Tables
from dpaa.training._state import Progress

MOMENTS = ("mean", "square")
"""Of Adam: tables like layer 0."""


@dataclass(frozen=True, eq=False)
class Start:
    """Tables that were trained before, and how far the schedule has come.

    Parameters
    ----------
    table : (n_nodes, d) layer 0, users then items
    parameters : what a method trains besides the table, as far as it is known
    epoch : the first to be trained
    step : steps that count as done: the learning rate continues from there
    best_epoch : epoch of the earlier training in which the table was best
    patience_share : of the method's epochs of patience
    history : lines of the epochs before
    origin : where the tables come from, for the manifest
    """

    table: Tensor
    parameters: dict[str, Tensor] = field(default_factory=dict)
    epoch: int = 1
    step: int = 0
    best_epoch: int = 0
    patience_share: float = 1.0
    history: tuple[dict[str, Any], ...] = ()
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Digest of all numbers: a checkpoint belongs to one start."""
        # Names too, and sorted: two parameters of one shape must not be exchangeable.
        content = hashlib.sha256(f"{self.epoch} {self.step} {sorted(self.parameters)}".encode())
        for tensor in (self.table, *(self.parameters[name] for name in sorted(self.parameters))):
            content.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return content.hexdigest()


@dataclass(frozen=True)
class Checkpoint:
    """State of a stopped training.

    Parameters
    ----------
    tensors : tables, the best epoch's, and Adam's moments, as `part.name`
    at : progress within the training (`Progress` as JSON)
    identity : what the training was started with; another training refuses the checkpoint
    """

    tensors: dict[str, Tensor]
    at: dict[str, Any]
    identity: dict[str, Any] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        """The epoch in which training was stopped."""
        return int(self.at["epoch"])


class CheckpointFolder:
    """`checkpoint/` of a run folder, which holds one file; it is replaced whole or not at all.

    Parameters
    ----------
    folder : of the checkpoint
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "state.safetensors"

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint, whole or not at all.

        Parameters
        ----------
        checkpoint : the new one
        """
        # JSON in the header and nothing pickled: reading a checkpoint can run no code.
        tensors = {name: tensor.contiguous().cpu() for name, tensor in checkpoint.tensors.items()}
        about = {"progress": json.dumps({"at": checkpoint.at, "identity": checkpoint.identity})}
        remedy = "make room and continue with --resume"
        own_folder(self.folder, remedy)
        write_file(self.file, lambda file: save_file(tensors, file, metadata=about), remedy)

    def load(self) -> Checkpoint | None:
        """Read the last checkpoint.

        Returns
        -------
        the checkpoint, None where there is none
        """
        if not self.file.exists():
            return None
        # Before safetensors maps it: a pipe or a device under the name would hang or never end.
        check_regular(self.file)
        try:
            with safe_open(self.file, framework="pt") as opened:
                about = json.loads((opened.metadata() or {})["progress"])
                int(about["at"]["epoch"])
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # not a dict
                return Checkpoint(tensors, about["at"], dict(about["identity"]))
        except (SafetensorError, KeyError, ValueError, TypeError, RecursionError, OverflowError, OSError) as error:
            raise InputError(
                f"{self.file} is not a readable checkpoint ({reason(error)}); remove {self.folder} to start afresh"
            ) from None

    def remove(self) -> None:
        """Remove the checkpoint of a training that has ended."""
        remove_folder(self.folder)


def _is_cut(name: str, tables: Tables) -> bool:
    """Whether a tensor of a checkpoint is a table whose columns may be in several processes."""
    part, _, rest = name.partition(".")
    return rest in MOMENTS if part == "adam" else tables.is_cut(rest)


def whole_state(tables: Tables, best: dict[str, Tensor], adam: dict[str, Tensor]) -> dict[str, Tensor]:
    """Collect all columns of everything at rank 0: a checkpoint does not depend on the number of processes.

    Parameters
    ----------
    tables : as they are now
    best, adam : snapshot of the best epoch, and state of Adam

    Returns
    -------
    tensors of a `Checkpoint`
    """
    parts = {"method": tables.snapshot(), "best": best, "adam": adam}
    tensors = {f"{part}.{name}": tensor for part, state in parts.items() for name, tensor in state.items()}
    return {n: tables.columns.to_leader(tensor) if _is_cut(n, tables) else tensor for n, tensor in tensors.items()}


def resume(
    checkpoint: Checkpoint, identity: dict[str, Any], tables: Tables, load_adam: Callable[[dict[str, Tensor]], None]
) -> tuple[Progress, dict[str, Tensor]]:
    """Restore tables and Adam's state.

    Parameters
    ----------
    checkpoint : of the same training
    identity : what this training was started with
    tables : overwritten
    load_adam : takes Adam's state

    Returns
    -------
    how far the training was, and the snapshot of its best epoch

    Raises
    ------
    InputError : if the checkpoint belongs to another training
    """
    for name in checkpoint.identity.keys() | identity.keys():
        before, now = checkpoint.identity.get(name), identity.get(name)
        if before != now:
            raise InputError(
                f"the checkpoint was made with another {name} ({before!r}, now {now!r}); resume with the same "
                "command or train into a new folder"
            )
    parts: dict[str, dict[str, Tensor]] = {"method": {}, "best": {}, "adam": {}}
    try:
        at = TypeAdapter(Progress).validate_python(checkpoint.at)
        for name, tensor in checkpoint.tensors.items():
            part, _, rest = name.partition(".")
            whole = tables.columns.alone or not _is_cut(name, tables)
            parts[part][rest] = tensor if whole else tables.columns.cut(tensor).clone()
        if at.best.epoch or at.epoch > tables.method.epochs:
            tables.restore(parts["best"])  # as at the end: better refused now than then
        tables.restore(parts["method"])
        load_adam(parts["adam"])
    except (KeyError, RuntimeError, TypeError, ValueError, ValidationError) as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(
            f"the checkpoint does not fit this training ({why}); remove the folder checkpoint to start afresh"
        ) from None
    return at, parts["best"]
