"""A finished run is trained further: from the vectors it kept, as if it had stopped for a moment.

Adam's memory of gradients went when the run was finished, so the result is not that of one long training, bit for bit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpaa._text import counted
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import load
from dpaa.runs.warm_start import carried_parameters
from dpaa.training.start import Start

MAY_CHANGE = ("epochs", "patience", "patience_steps", "minimum_steps", "validation_steps", "threads")
"""Settings that may be others than those the run was trained with."""


def train_further(folder: str | Path, method: Method, data: Dataset) -> tuple[Start, str | None] | None:
    """What the training goes on from, and the run of the pre-trained model that it was made with.

    None where the settings are those of another training.
    """
    model = load(folder)
    old, trained = model.method, model.manifest.get("training") or {}
    if not _same(old, method):
        return None
    epochs = trained.get("epochs")
    if not isinstance(old, GraphMethod) or not isinstance(epochs, int):
        raise InputError(
            f"{folder} is a finished run of {old.name}, which is not one training in epochs; "
            "train it again with --overwrite, or into another folder"
        )
    assert isinstance(method, GraphMethod)
    if model.trained_on.fingerprint != data.fingerprint:
        raise InputError(
            f"{folder} was trained on another dataset than {data.name} (fingerprints differ); "
            f"start from it in another folder with --warm-start {folder}"
        )
    if method.epochs <= epochs:
        raise InputError(
            f"{folder} has been trained for {counted(epochs, 'epoch', 'epochs')} already; set epochs above {epochs:,}"
        )
    begun = model.manifest.get("warm_start")
    before = int(begun.get("step", 0)) if isinstance(begun, dict) else 0
    told: dict[str, Any] = {"trained_further": {"epochs": epochs, "best_epoch": trained.get("best_epoch")}}
    if begun is not None:
        told["warm_start"] = begun
    start = Start(
        old.tables.ego.rows(),
        carried_parameters(method, old),
        epoch=epochs + 1,
        step=before + epochs * method.compute.n_batches,
        best_epoch=int(trained.get("best_epoch") or 0),
        history=tuple(RunFolder(folder).history()),
        origin=told,
    )
    pretrained = model.manifest.get("pretrained")
    place = pretrained.get("run") if isinstance(pretrained, dict) else None
    return start, place if isinstance(place, str) and Path(place).is_dir() else None


def _same(old: Method, method: Method) -> bool:
    """Whether the method and all settings are the same, but for those that say when training ends."""
    before, now = (one.get_params(set(MAY_CHANGE)) for one in (old, method))
    longer = old.get_params({"threads"}) != method.get_params({"threads"})
    return old.name == method.name and before == now and longer
