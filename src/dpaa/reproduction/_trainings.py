"""Training runs of a reproduction: specifications and stored results, which are reused."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dpaa._io import LARGE_JSON, locked, read_json, remove_folder
from dpaa.data.dataset import ABOUT_FILE, Dataset, read_dataset
from dpaa.errors import DivergedError
from dpaa.evaluation.evaluator import OVERLAPS
from dpaa.methods import find_method
from dpaa.methods.base import Method
from dpaa.methods.graph_method import EARLIER_DEFAULTS, GraphMethod
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.pretrained import PRETRAINED, UsesPretrained, needed_layers
from dpaa.reproduction._paper import FIRST
from dpaa.reproduction._results import Metrics, ResultStore, RunResult
from dpaa.runs.fit import Callbacks, evaluate, fit_into, make_method, train_or_reuse
from dpaa.runs.folder import versions
from dpaa.runs.model import Model
from dpaa.tuning.processes import stop_requested


@dataclass(frozen=True)
class RunSpec:
    """One training."""

    data: str
    """Name of the dataset in the table, such as "coat" or "s=5"."""
    folder: Path
    """The prepared dataset."""
    label: str
    """The row it belongs to, such as "dpaa" or "dpaa: w/o IIW"."""
    method: str
    hyperparameters: dict[str, Any]
    """Those that differ from the method's defaults, the seed among them."""
    pretrained: dict[str, Any] | None = None
    """Hyperparameters of the LightGCN that DPAA's weights come from; None: the row's own."""
    protocol: str = FIRST

    @cached_property
    def relevant(self) -> dict[str, Any]:
        """Hyperparameters that identify the result."""
        return relevant_hyperparameters(find_method(self.method)(**self.hyperparameters))

    @cached_property
    def plain(self) -> dict[str, Any] | None:
        """Hyperparameters of the pre-trained model; None where they are the row's own, which is the ordinary case."""
        if self.pretrained is None:
            return None
        plain, own = relevant_hyperparameters(LightGCN(**self.pretrained)), self.relevant
        return plain if any(own.get(name) != value for name, value in plain.items()) else None

    @cached_property
    def key(self) -> str:
        """Name of the result: fingerprint of the data, method and hyperparameters."""
        plain = [] if self.plain is None else [self.plain]
        return key_of(self.method, fingerprint_of(self.folder), self.relevant, *plain)


def relevant_hyperparameters(method: Method) -> dict[str, Any]:
    """Hyperparameters that identify a result.

    Those that did not exist when the first results were made are left out at the value that they had implicitly, so
    that these results keep their names.
    """
    values = method.get_params({"threads", "device"})  # these change no bit of the result
    old = EARLIER_DEFAULTS if isinstance(method, GraphMethod) else {}
    return {name: value for name, value in values.items() if name not in old or value != old[name]}


def key_of(method: str, *parts: Any, version: int | None = None) -> str:
    """Name of a stored result: a digest of its parts, the method's version, and those of methods it is built on.

    First versions of the latter are left out, as they are in earlier results.  The version is today's by default.
    """
    kind = find_method(method)
    first = find_method(PRETRAINED).version if issubclass(kind, UsesPretrained) else 1
    changed = {PRETRAINED: first} if first > 1 else {}
    fingerprint, *rest = parts
    made_by = version or kind.version
    # The form of this text must not change: committed results are found by its digest.
    text = json.dumps([fingerprint, method, made_by, *rest, *([changed] if changed else [])], sort_keys=True)
    return f"{method}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def fingerprint_of(folder: Path) -> str:
    """Fingerprint of a prepared dataset."""
    return str(read_json(folder / ABOUT_FILE, LARGE_JSON, "remove the folder to recompute it")["fingerprint"])


def read_result(spec: RunSpec, store: ResultStore[RunResult]) -> RunResult | None:
    """A stored result, under the names of the spec; None if there is none.

    Rows of two tables may be one training: each shows it under its own name.
    """
    result = store.read(spec.key)
    return result and result.model_copy(update={"data": spec.data, "label": spec.label})


def run_one(spec: RunSpec, store: ResultStore[RunResult], work: Path) -> RunResult:
    """Train, evaluate and store the result; the run folder is removed."""
    home = work / fingerprint_of(spec.folder)[:12]
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / f".{spec.key}.turn", wait=True):  # another command may be training the same
        if (stored := read_result(spec, store)) is None:
            stored = _train(spec, read_dataset(spec.folder), home / spec.key)
            store.write(spec.key, stored)
        remove_folder(home / spec.key)
    return stored


def _train(spec: RunSpec, data: Dataset, folder: Path) -> RunResult:
    details: dict[str, Any] = {"dataset": data.name, "fingerprint": data.fingerprint, "versions": versions()}
    details |= {} if spec.plain is None else {"pretrained": spec.plain}
    metrics: dict[str, Metrics] = {}
    try:
        model = _fit(spec, data, folder)
        evaluations = {str(overlap): evaluate(model, data, 20, overlap) for overlap in OVERLAPS}
        metrics = {overlap: {**one.metrics} for overlap, one in evaluations.items()}
        details["users"] = {overlap: one.protocol.users for overlap, one in evaluations.items()}
        details |= {name: model.manifest.get(name) for name in ("training", "tuned", "seconds")}
    except DivergedError as error:  # a result like any other: the table shows a dash, and a note says why
        details["failed"] = str(error)
    own = {name: getattr(spec, name) for name in ("data", "label", "method", "protocol")}
    return RunResult(**own, seed=spec.relevant["seed"], settings=spec.relevant, metrics=metrics, details=details)


def _fit(spec: RunSpec, data: Dataset, folder: Path) -> Model:
    """Train in one thread, or resume; the pre-trained model of the spec is trained once for all rows."""
    callbacks = Callbacks(stop_requested=stop_requested)
    one_thread = {"threads": 1} if issubclass(find_method(spec.method), GraphMethod) else {}
    method = make_method(data, spec.method, spec.hyperparameters | one_thread)
    n_layers, vectors = needed_layers(method), None
    if spec.pretrained is not None and n_layers is not None:
        plain = LightGCN(**spec.pretrained | {"threads": 1})
        vectors = train_or_reuse(data, plain, n_layers, folder.parent, callbacks)
    return fit_into(folder, data, method, resume=folder.exists(), callbacks=callbacks, pretrained=vectors)
