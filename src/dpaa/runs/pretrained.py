"""The pre-trained model of methods that use one: a run, a model, or a LightGCN that is trained first and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dpaa._io import check_within, locked
from dpaa.data.dataset import Dataset
from dpaa.data.ids import encode
from dpaa.errors import InputError
from dpaa.methods import find_method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import PRETRAINED, Pretrained
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model, load, make_method


def read_pretrained(given: Model | str | Path, data: Dataset, n_layers: int) -> Pretrained:
    """Vectors of a trained model for every user and item of a dataset.

    Parameters
    ----------
    given : a model or a run folder; of a LightGCN on the same dataset every layer is known, of others the read-out
    data : the dataset
    n_layers : layers that are needed beyond layer 0

    Returns
    -------
    the vectors, in the order of the dataset's ids
    """
    model = given if isinstance(given, Model) else load(given)
    name, method = str(model.path or "the model"), model.method
    if not isinstance(method, GraphMethod):
        raise InputError(f"{name} is a run of {method.name}, which has no embeddings; give a run of a trained method")
    origin: dict[str, Any] = {
        "run": str(model.path.resolve()) if model.path else None,
        "method": method.name,
        "fingerprint": model.trained_on.fingerprint,
    }
    if method.name == PRETRAINED and origin["fingerprint"] == data.fingerprint:
        return Pretrained.of(method, n_layers, origin)
    parts = []
    for vectors, ids, wanted in (
        (method.user_embedding, model.user_ids, data.user_ids),
        (method.item_embedding, model.item_ids, data.item_ids),
    ):
        index = encode(wanted, ids)
        if missing := int((index < 0).sum()):
            raise InputError(
                f"{name} has no vector for {missing:,} of {len(wanted):,} ids of {data.name} (such as "
                f"{wanted[int((index < 0).argmax())]!r}); give a model that was trained on this dataset"
            )
        parts.append(vectors[torch.from_numpy(index.astype("int64"))])
    return Pretrained(torch.cat(parts), origin=origin)


def train_or_reuse(
    data: Dataset,
    settings: GraphMethod,
    n_layers: int,
    beside: Path | None,
    train: Callable[[Path | None, GraphMethod], Model],
    before: Model | None = None,
) -> Pretrained:
    """Train LightGCN on the same data, with the same seed and hyperparameters; later runs reuse it.

    Parameters
    ----------
    data : the dataset
    settings : the method whose hyperparameters are used
    n_layers : layers that are needed beyond layer 0
    beside : folder in which the run is kept; None keeps it in memory
    train : trains a method into a folder, or in memory
    before : model that its training starts from

    Returns
    -------
    the vectors
    """
    kind = find_method(PRETRAINED)
    shared = {name: getattr(settings, name) for name in kind.hyperparameters.model_fields}
    plain = make_method(data, PRETRAINED, shared)
    assert isinstance(plain, GraphMethod)
    if beside is None or (before is not None and before.digest is None):
        return read_pretrained(train(None, plain), data, n_layers)
    relevant = {name: shared[name] for name in shared if name not in ("threads", "device")}
    made_from: list[Any] = [data.fingerprint, relevant, *([] if before is None else [before.digest])]
    made_from += [kind.version] if kind.version > 1 else []
    key = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]
    folder = check_within(beside / f"pretrained-{PRETRAINED}-{key}", beside)
    with locked(beside / f".{folder.name}.turn", wait=True):  # another process may be training the same
        if not RunFolder(folder).finished:
            train(folder, plain)
    return read_pretrained(folder, data, n_layers)
