"""The model for production: fitted on all pairs, with the hyperparameters and the epoch that were chosen before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import Pretrained, needed_layers
from dpaa.runs.build import make_method
from dpaa.runs.model import Model, load
from dpaa.runs.warm_start import ORIGIN

FINAL = "final"
"""Key of the manifest of a run that was fitted on all pairs."""


def final_training(before: Model, data: Dataset, fit: Callable[..., Model]) -> tuple[Method, dict[str, Any]]:
    """What `fit_into` takes to fit a run's method on all pairs of its dataset.

    Trained methods are trained for as many epochs as were best on validation; one that was started from an earlier run
    starts from the chosen run itself.  Strengths that were chosen on validation, the dial and the re-ranker stay.

    Parameters
    ----------
    before : the run whose hyperparameters and epoch were chosen
    data : all pairs, from `Dataset.with_all_pairs`
    fit : `fit_method`, for a pre-trained model

    Returns
    -------
    the method to train, and further arguments of `fit_into`
    """
    own, manifest = before.method, before.manifest
    hyperparameters = own.get_params({"device", "threads"}) | manifest.get("tuned", {})
    how: dict[str, Any] = {"dial": False, "rerank": before.reranker()}
    if isinstance(own, GraphMethod):
        hyperparameters["epochs"] = max(1, (manifest.get("training") or {}).get("best_epoch") or 1)
        how |= {"keep_last": True, "warm_start": before if ORIGIN in manifest else None}
    method = make_method(data, type(own), hyperparameters)
    layers = needed_layers(method)
    if layers is not None:
        how["pretrained"] = _pretrained(before, data, layers, fit)
    how["about"] = {
        FINAL: {
            "run": str(before.path) if before.path else None,
            "dataset": data.name,
            "epochs": hyperparameters.get("epochs"),
        },
        "dataset": {"name": data.name, "path": before.trained_on.path, "fingerprint": data.fingerprint},
        "dial": manifest.get("dial"),
    }
    return method, how


def _pretrained(before: Model, data: Dataset, layers: int, fit: Callable[..., Model]) -> Pretrained | str:
    """The pre-trained model, fitted on all pairs too; embeddings from files are taken as they are."""
    origin = before.manifest.get("pretrained") or {}
    if "embeddings" in origin:
        return str(origin["embeddings"])
    place = origin.get("run")
    if not place or not Path(place).is_dir():
        raise InputError(
            f"the pre-trained model of {before.path} is no longer at {place}; train the run again and keep the folder"
        )
    first = load(place)
    method, how = final_training(first, data, fit)
    fitted = fit(method, data, **how).method
    assert isinstance(fitted, GraphMethod)
    return Pretrained.of(fitted, layers, {"method": fitted.name, FINAL: str(place)})
