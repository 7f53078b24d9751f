"""Trainings as data: a spec says what to train, a result what was measured; stored results are not trained again."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaa._io import LARGE_JSON, check_within, held, lock_of, locked, read_json, remove_folder, remove_lock, sweep
from dpaa._text import counted
from dpaa.data.dataset import ABOUT_FILE, Dataset, read_dataset
from dpaa.errors import DivergedError, InputError
from dpaa.evaluation.evaluator import OVERLAPS
from dpaa.methods import find_method
from dpaa.methods.base import Method
from dpaa.methods.graph_method import EARLIER_DEFAULTS, GraphMethod
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.pretrained import PRETRAINED, Pretrained, UsesPretrained, needed_layers
from dpaa.reproduction._budget import FIRST
from dpaa.reproduction._results import Metrics, ResultStore, RunResult
from dpaa.runs.fit import Callbacks, evaluate, fit_into, make_method
from dpaa.runs.folder import RunFolder, versions
from dpaa.runs.model import Model, load
from dpaa.runs.pretrained import train_or_reuse
from dpaa.tuning.processes import in_pool, stop_requested

NOT_PART_OF_THE_RESULT = {"threads", "device"}
"""Hyperparameters that change no bit of the result."""


@dataclass(frozen=True)
class RunSpec:
    """One training."""

    data: str
    """Name of the dataset in the table, such as "coat" or "s=5"."""
    folder: Path
    """The prepared dataset."""
    label: str
    """The row it belongs to, such as "dpaa interaction_strength_from=readout"."""
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters that differ from the method's defaults, the seed among them."""
    pretrained: dict[str, Any] | None = None
    """Hyperparameters of the LightGCN that DPAA's weights come from; None: the row's own."""
    protocol: str = FIRST


@dataclass
class Runner:
    """Runs the trainings whose results are missing.

    Parameters
    ----------
    results : folder of results, loose and packed
    work : folder of prepared datasets, pre-trained models and unfinished trainings
    jobs : trainings at a time, one core each
    say : receives a line per training
    """

    results: Path
    work: Path
    jobs: int = 1
    say: Callable[[str], None] = lambda _line: None
    trained: int = field(default=0, init=False)
    reused: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)

    def prepared(self, data: Dataset, name: str) -> Path:
        """Write a dataset to the work folder, unless it is there already: other processes may be reading it."""
        folder = check_within(self.work / name, self.work)
        sweep(self.work)
        try:
            if _fingerprint(folder) == data.fingerprint:
                return folder
        except (InputError, KeyError):
            pass  # missing, or incomplete
        data.write(folder, overwrite=True)
        return folder

    def run(self, specs: Sequence[RunSpec], kind: str) -> list[RunResult]:
        """The results of all specs in their order, trained if they are not stored under `kind`."""
        store = ResultStore(self.results, kind, RunResult)
        keys = {spec_key(spec): spec for spec in specs}
        missing = [key for key in keys if store.read(key) is None]  # a damaged result is reported before any training
        self._remove_leftovers(store, [key for key in keys if key not in missing], keys)
        reused = len(keys) - len(missing)
        self.reused += reused
        self.say(f"{counted(len(keys), 'training', 'trainings')}, {reused:,} already in {store.loose}")
        began, done = time.monotonic(), 0
        try:
            calls = [(key, keys[key], store, self.work) for key in missing]
            for (_, spec, *_), result in in_pool(run_one, calls, self.jobs):
                done += 1
                row = f"{done}/{len(missing)} {spec.data} {spec.label} seed {spec.settings.get('seed', 0)}"
                outcome = result.failed or f"recall@20 {result.metrics['drop']['recall@20']:.4f}"
                self.say(f"{row}: {outcome} ({(time.monotonic() - began) / 60:.1f} min)")
        finally:
            self.trained += done
            self.seconds += time.monotonic() - began
        results = [_read(spec, store, spec_key(spec)) for spec in specs]
        # Rows of two tables may be one training: each shows it under its own name.
        names = [{"data": spec.data, "label": spec.label} for spec in specs]
        return [result.model_copy(update=name) for result, name in zip(results, names, strict=True)]

    def _remove_leftovers(self, store: ResultStore[RunResult], stored: list[str], specs: dict[str, RunSpec]) -> None:
        """Remove the run folders of processes that were killed just after they had written their result."""
        sweep(store.loose)
        for key in stored:
            home = self.work / _fingerprint(specs[key].folder)[:12]
            sweep(home)
            if not held(_turn(home, key)):
                remove_folder(home / key)
                remove_lock(lock_of(home / key))
                remove_lock(_turn(home, key))

    def summary(self) -> str:
        """How much was trained and reused, in a sentence."""
        reused = f"{counted(self.reused, 'result', 'results')} taken from {self.results}"
        if not self.trained:
            return f"nothing was trained; {reused}"
        pace = 3600 * self.trained / max(self.seconds, 1e-9)
        trained = counted(self.trained, "training", "trainings")
        return f"{trained} in {self.seconds / 60:.1f} min, {pace:,.0f} an hour with --jobs {self.jobs}; {reused}"


# ---------------------------------------------------------------------- names of results


def parse_label(label: str) -> tuple[str, dict[str, Any]]:
    """`dpaa layer_emphasis=2 initial_residual=0.2` → method and hyperparameters, checked."""
    if not label.split():
        raise InputError("--method '' names no method; give one of those `dpaa methods` lists")
    name, *assignments = label.split()
    settings = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise InputError(f"{label!r}: write settings as NAME=VALUE, got {assignment!r}")
        settings[key] = value
    kind = find_method(name)
    kind(**settings)
    return kind.name, settings


def known_settings(settings: dict[str, Any], method: str) -> dict[str, Any]:
    """The hyperparameters that the method has."""
    return {key: value for key, value in settings.items() if key in find_method(method).hyperparameters.model_fields}


def relevant_settings(method: Method) -> dict[str, Any]:
    """Hyperparameters that identify a result.

    Those that did not exist when the first results were made are left out at the value that they had implicitly, so
    that these results keep their names.
    """
    values = method.get_params(NOT_PART_OF_THE_RESULT)
    old = EARLIER_DEFAULTS if isinstance(method, GraphMethod) else {}
    return {name: value for name, value in values.items() if name not in old or value != old[name]}


def key_of(method: str, *parts: Any) -> str:
    """Name of a stored result: a digest of its parts, the method's version, and those of methods it is built on.

    First versions of the latter are left out, as they are in earlier results.
    """
    kind = find_method(method)
    first = find_method(PRETRAINED).version if issubclass(kind, UsesPretrained) else 1
    changed = {PRETRAINED: first} if first > 1 else {}
    fingerprint, *rest = parts
    text = json.dumps([fingerprint, method, kind.version, *rest, *([changed] if changed else [])], sort_keys=True)
    return f"{method}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def spec_key(spec: RunSpec) -> str:
    """Name of a result: fingerprint of the data, method and hyperparameters."""
    relevant = _relevant(spec)
    plain = _plain(spec, relevant)
    method = find_method(spec.method).name
    return key_of(method, _fingerprint(spec.folder), relevant, *([] if plain is None else [plain]))


def _relevant(spec: RunSpec) -> dict[str, Any]:
    kind = find_method(spec.method)
    return relevant_settings(kind(**spec.settings))


def _plain(spec: RunSpec, relevant: dict[str, Any]) -> dict[str, Any] | None:
    """Hyperparameters of the pre-trained model; None where they are the row's own, which is the ordinary case."""
    if spec.pretrained is None:
        return None
    plain = relevant_settings(LightGCN(**spec.pretrained))
    return plain if any(relevant.get(name) != value for name, value in plain.items()) else None


def _fingerprint(folder: Path) -> str:
    return str(read_json(folder / ABOUT_FILE, LARGE_JSON, "remove the folder to have it made again")["fingerprint"])


def _read(spec: RunSpec, store: ResultStore[RunResult], key: str) -> RunResult:
    """A stored result, which must be of this dataset, method, seed and hyperparameters."""
    result = store.read(key)
    if result is None:
        raise InputError(f"{store.loose / key}.json was removed while it was needed; call again")
    stored = result.settings | {"method": result.method, "data": result.details.get("fingerprint")}
    wanted = _relevant(spec) | {"method": spec.method, "data": _fingerprint(spec.folder)}
    for name, value in wanted.items():
        if stored.get(name) != value:
            made_with = f"{name}={stored.get(name)}, not {value}"
            raise InputError(f"{store.location(key)} is the result of another training ({made_with}); {result.remedy}")
    return result


# ---------------------------------------------------------------------- one training


def run_one(key: str, spec: RunSpec, store: ResultStore[RunResult], work: Path) -> RunResult:
    """Train, evaluate and store the result; the run folder is removed."""
    home = work / _fingerprint(spec.folder)[:12]
    home.mkdir(parents=True, exist_ok=True)
    with locked(_turn(home, key), wait=True):  # another command may be training the same
        if store.read(key) is None:
            store.write(key, _train(spec, read_dataset(spec.folder), home / key))
        remove_folder(home / key)
    return _read(spec, store, key)


def _turn(home: Path, key: str) -> Path:
    """The lock of whoever is training."""
    return home / f".{key}.turn"


def _train(spec: RunSpec, data: Dataset, folder: Path) -> RunResult:
    kind, relevant = find_method(spec.method), _relevant(spec)
    details: dict[str, Any] = {"dataset": data.name, "fingerprint": data.fingerprint, "versions": versions()}
    if (plain := _plain(spec, relevant)) is not None:
        details["pretrained"] = plain
    metrics: dict[str, Metrics] = {}
    try:
        if RunFolder(folder).finished:  # killed between training and result
            model = load(folder)
        else:
            one_thread = {"threads": 1} if issubclass(kind, GraphMethod) else {}
            method, resume = make_method(data, spec.method, spec.settings | one_thread), folder.exists()
            callbacks = Callbacks(stop_requested=stop_requested)
            vectors = _pretrained(spec, data, method, folder.parent, callbacks)
            model = fit_into(
                folder, data, method, overwrite=True, resume=resume, callbacks=callbacks, pretrained=vectors
            )
        evaluations = {str(overlap): evaluate(model, data, 20, overlap) for overlap in OVERLAPS}
        metrics = {overlap: {**one.metrics} for overlap, one in evaluations.items()}
        details["users"] = {overlap: one.protocol.users for overlap, one in evaluations.items()}
        details |= {name: model.manifest.get(name) for name in ("training", "tuned", "seconds")}
    except DivergedError as error:  # a result like any other: the table shows a dash, and a note says why
        details["failed"] = str(error)
    return RunResult(
        data=spec.data,
        label=spec.label,
        method=spec.method,
        seed=relevant["seed"],
        settings=relevant,
        metrics=metrics,
        details=details,
        protocol=spec.protocol,
    )


def _pretrained(spec: RunSpec, data: Dataset, method: Method, home: Path, callbacks: Callbacks) -> Pretrained | None:
    """The pre-trained model of the spec, trained once; None leaves it to the fit, which uses the row's own."""
    n_layers = needed_layers(method)
    if spec.pretrained is None or n_layers is None:
        return None
    settings = LightGCN(**spec.pretrained | {"threads": 1})

    def train(folder: Path | None, plain: GraphMethod) -> Model:
        assert folder is not None
        return fit_into(folder, data, plain, resume=folder.exists(), callbacks=callbacks)

    return train_or_reuse(data, settings, n_layers, home, train)


def failures(results: Iterable[RunResult]) -> list[str]:
    """A line for each training that failed."""
    return [f"{one.data} {one.label} seed {one.seed}: {one.failed}" for one in results if one.failed]
