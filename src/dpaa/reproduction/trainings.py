"""Trainings as data: a spec says what to run, a result what came out; what is already there is not run again."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dpaa.data.dataset import ABOUT_FILE, Dataset, read_dataset
from dpaa.errors import DivergedError, InputError
from dpaa.evaluation.dial_curve import dial_curve
from dpaa.evaluation.evaluator import OVERLAPS, Evaluator
from dpaa.files import (
    LARGE_JSON,
    as_json,
    check_within,
    held,
    lock_of,
    locked,
    own_folder,
    read_json,
    remove_folder,
    sweep,
    write_file,
)
from dpaa.methods import find_method
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.base import Method
from dpaa.methods.dpaa import DPAA
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.settings import TrainedSettings, first_error, make_settings
from dpaa.runs.fit import Callbacks, evaluate, fit_into, make_method
from dpaa.runs.folder import RunFolder, versions
from dpaa.runs.model import Model, load
from dpaa.runs.pretrained import train_or_reuse
from dpaa.tuning.workers import in_processes, stop_requested
from dpaa.words import counted

NOT_PART_OF_THE_RESULT = ("threads", "device")
"""Settings that change no bit of the result."""
Metrics = dict[str, float | None]
"""Metric → value; None where there is none."""


@dataclass(frozen=True)
class RunSpec:
    """One training."""

    data: str
    """What the dataset is called in the table, such as "coat" or "s=5"."""
    folder: Path
    """The prepared dataset."""
    label: str
    """The row it belongs to, such as "dpaa interaction_strength_from=readout"."""
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings that differ from the method's defaults, the seed among them."""
    pretrained: dict[str, Any] | None = None
    """Settings of the LightGCN that DPAA's weights come from, where it has not the row's own."""


@dataclass(frozen=True)
class RunResult:
    """What a training gave: metrics of the test split under each overlap convention."""

    data: str
    label: str
    method: str
    seed: int
    settings: dict[str, Any]
    metrics: dict[str, Metrics]
    """By convention; empty where the training failed, and then `details["failed"]` says why."""
    details: dict[str, Any]
    """Fingerprint, best epoch, validation recall, seconds, versions."""
    dial: dict[str, Any] | None = None
    """With the popularity dial where validation puts it: `kappa`, and `metrics` under the convention `drop`."""

    @property
    def failed(self) -> str | None:
        """Why there are no metrics."""
        return self.details.get("failed")


_RESULT, _METRICS = TypeAdapter(RunResult), TypeAdapter(Metrics)


@dataclass
class Runner:
    """Runs what is missing, and counts."""

    results: Path
    """One small file per training, in a folder for each kind of data."""
    work: Path
    """Datasets, pre-trained models and trainings in flight."""
    jobs: int = 1
    with_dial: bool = False
    """Results of an earlier version lack the popularity dial: they are run again only if it is wanted."""
    say: Callable[[str], None] = lambda _line: None
    trained: int = 0
    reused: int = 0
    seconds: float = 0.0

    def prepared(self, data: Dataset, name: str) -> Path:
        """The folder of a dataset; one that is there already is left alone, others may be reading it."""
        folder = check_within(self.work / name, self.work)
        sweep(self.work)
        try:
            if _fingerprint(folder) == data.fingerprint:
                return folder
        except (InputError, AssertionError, KeyError):
            pass  # not there, or half written
        data.write(folder, overwrite=True)
        return folder

    def run(self, specs: Sequence[RunSpec], kind: str) -> list[RunResult]:
        """The results of all specs, in their order; `kind` names the folder they are kept in."""
        place = self.results / kind
        files = {spec_key(spec): spec for spec in specs}
        missing = [(key, spec) for key, spec in files.items() if not _kept(place / f"{key}.json", self.with_dial)]
        self._tidy(place, {key: spec for key, spec in files.items() if (key, spec) not in missing})
        self.reused += len(files) - len(missing)
        self.say(f"{counted(len(files), 'training', 'trainings')}, {len(files) - len(missing):,} already in {place}")
        if missing:
            own_folder(place, "make room or choose another place with --results")
        began, done = time.monotonic(), 0
        calls = [(key, spec, place, self.work, self.with_dial) for key, spec in missing]
        try:
            for call, result in in_processes(run_one, calls, self.jobs):
                done += 1
                self._tell(call[1], result, f"{done}/{len(missing)}", time.monotonic() - began)
        finally:
            self.trained += done
            self.seconds += time.monotonic() - began
        found = ((spec, _read_of(spec, place / f"{spec_key(spec)}.json")) for spec in specs)
        return [replace(result, data=spec.data, label=spec.label) for spec, result in found]

    def _tidy(self, place: Path, kept: dict[str, RunSpec]) -> None:
        """Remove what a process left that was killed just after it had written a result."""
        sweep(place)
        for key, spec in kept.items():
            home = self.work / _fingerprint(spec.folder)[:12]
            sweep(home)
            if not held(_turn(home, key)):
                remove_folder(home / key)
                lock_of(home / key).unlink(missing_ok=True)
                _turn(home, key).unlink(missing_ok=True)

    def summary(self) -> str:
        """What it took."""
        reused = f"{counted(self.reused, 'result', 'results')} taken from {self.results}"
        if not self.trained:
            return f"nothing was trained; {reused}"
        pace = 3600 * self.trained / max(self.seconds, 1e-9)
        trained = counted(self.trained, "training", "trainings")
        return f"{trained} in {self.seconds / 60:.1f} min, {pace:,.0f} an hour with --jobs {self.jobs}; {reused}"

    def _tell(self, spec: RunSpec, result: RunResult, count: str, seconds: float) -> None:
        row = f"{count} {spec.data} {spec.label} seed {spec.settings.get('seed', 0)}"
        outcome = result.failed or f"recall@20 {result.metrics['drop']['recall@20']:.4f}"
        self.say(f"{row}: {outcome} ({seconds / 60:.1f} min)")


def parse_label(label: str) -> tuple[str, dict[str, Any]]:
    """`dpaa layer_emphasis=2 initial_residual=0.2` → method and settings, checked."""
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
    make_settings(kind.settings_type, settings, kind.name)
    return kind.name, settings


def spec_for(
    data: str,
    folder: Path,
    label: str,
    method: str,
    settings: dict[str, Any],
    seed: int,
    common: dict[str, Any],
    tuned: bool = False,
) -> RunSpec:
    """A training; `common` settings go to the methods that have them, the row's own win.

    Where they were tuned, the pre-trained model has the common ones, as it had in the trials.
    """
    kind = find_method(method)
    shared = {key: value for key, value in common.items() if key in kind.settings_type.model_fields}
    own = {"seed": seed if kind.seeded else 0}
    plain = shared | own if tuned and issubclass(kind, DPAA) else None
    return RunSpec(data, folder, label, method, shared | settings | own, plain)


def spec_key(spec: RunSpec) -> str:
    """Names a result: data fingerprint, method, its version and its resolved settings."""
    kind = find_method(spec.method)
    relevant = _relevant(kind, spec.settings)
    parts = [_fingerprint(spec.folder), kind.name, kind.version, relevant]
    plain = _plain(spec)
    if plain is not None and any(relevant[name] != value for name, value in plain.items()):
        parts.append(plain)  # a pre-trained model with the row's own settings is the ordinary case
    text = json.dumps(parts, sort_keys=True)
    return f"{kind.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _relevant(kind: type[Method], given: dict[str, Any]) -> dict[str, Any]:
    """Every setting that has a part in the result, resolved."""
    settings = make_settings(kind.settings_type, given, kind.name).model_dump(mode="json")
    return {name: value for name, value in settings.items() if name not in NOT_PART_OF_THE_RESULT}


def run_one(key: str, spec: RunSpec, results: Path, work: Path, with_dial: bool = False) -> RunResult:
    """Train, evaluate, keep the result; the run itself is thrown away."""
    data = read_dataset(spec.folder)
    home, target = work / data.fingerprint[:12], results / f"{key}.json"
    home.mkdir(parents=True, exist_ok=True)
    with locked(_turn(home, key), wait=True):  # another command may be at the same training: then its result is ours
        if not _kept(target, with_dial):
            result = _train(spec, data, home / key)
            write_file(target, as_json(result.__dict__, indent=1), "make room and call again")
        remove_folder(home / key)
    return _read(target)


def _turn(home: Path, key: str) -> Path:
    """Who is at a training holds this."""
    return home / f".{key}.turn"


def _train(spec: RunSpec, data: Dataset, folder: Path) -> RunResult:
    one_thread = {"threads": 1} if issubclass(find_method(spec.method).settings_type, TrainedSettings) else {}
    try:
        if RunFolder(folder).finished:  # trained before, but killed before its result was written
            model = load(folder)
        else:
            method = make_method(data, spec.method, spec.settings | one_thread)
            callbacks = Callbacks(stop_requested=stop_requested)
            vectors = _pretrained(spec, data, method, folder.parent, callbacks)
            resume = folder.exists()
            model = fit_into(
                folder, data, method, overwrite=True, resume=resume, callbacks=callbacks, pretrained=vectors
            )
    except DivergedError as error:  # a result like any other: the table says so
        kind = find_method(spec.method)
        settings = make_settings(kind.settings_type, spec.settings, kind.name)
        return _result(spec, data, settings.model_dump(mode="json"), {"failed": str(error)})
    return _measured(spec, data, model)


def _plain(spec: RunSpec) -> dict[str, Any] | None:
    """Resolved settings of the pre-trained model, where the spec names any."""
    if spec.pretrained is None:
        return None
    found = make_settings(TrainedSettings, spec.pretrained, "lightgcn").model_dump(mode="json")
    return {name: value for name, value in found.items() if name not in NOT_PART_OF_THE_RESULT}


def _pretrained(spec: RunSpec, data: Dataset, method: Method, beside: Path, callbacks: Callbacks) -> Pretrained | None:
    """The model the spec names, trained once; None leaves it to the fit, which takes one with the row's settings."""
    n_layers = method.pretrained_layers()
    if spec.pretrained is None or n_layers is None:
        return None
    settings = make_settings(TrainedSettings, spec.pretrained | {"threads": 1}, "lightgcn")

    def train(folder: Path | None, plain: GraphMethod) -> Model:
        assert folder is not None
        return fit_into(folder, data, plain, resume=folder.exists(), callbacks=callbacks)

    return train_or_reuse(data, settings, n_layers, beside, train)


def _measured(spec: RunSpec, data: Dataset, model: Model) -> RunResult:
    found = {overlap: evaluate(model, data, 20, overlap) for overlap in OVERLAPS}
    dial = None
    if len(data.valid):
        kappa = dial_curve(model.method, Evaluator(data, 20, "valid", "drop")).suggested
        dial = {"kappa": kappa, "metrics": evaluate(model, data, 20, "drop", popularity_dial=kappa).metrics}
    told = {name: model.manifest.get(name) for name in ("training", "tuned", "auto", "seconds")}
    users = {overlap: one.protocol.users for overlap, one in found.items()}
    settings = model.method.settings.model_dump(mode="json")
    metrics: dict[str, Metrics] = {str(overlap): dict(one.metrics) for overlap, one in found.items()}
    return replace(_result(spec, data, settings, {"users": users} | told), metrics=metrics, dial=dial)


def _result(spec: RunSpec, data: Dataset, settings: dict[str, Any], details: dict[str, Any]) -> RunResult:
    """Of a training without metrics yet."""
    relevant = {name: value for name, value in settings.items() if name not in NOT_PART_OF_THE_RESULT}
    made = {"dataset": data.name, "fingerprint": data.fingerprint}
    details = made | details | {"versions": versions()}
    return RunResult(spec.data, spec.label, spec.method, relevant["seed"], relevant, {}, details)


def _fingerprint(folder: Path) -> str:
    found = read_json(folder / ABOUT_FILE, LARGE_JSON, "remove the folder to have it made again")["fingerprint"]
    assert isinstance(found, str)
    return found


def _kept(file: Path, with_dial: bool) -> bool:
    """Whether a result is there, and with the dial if that is wanted."""
    if not file.exists():
        return False
    found = _content(file)  # read in any case: one that is spoilt is told before anything is trained
    return "dial" in found or not with_dial


def _read_of(spec: RunSpec, file: Path) -> RunResult:
    """The result, which must be of this dataset, method, seed and settings."""
    found = _read(file)
    settings = _relevant(find_method(spec.method), spec.settings)
    wanted = (_fingerprint(spec.folder), spec.method, settings["seed"])
    if (found.details.get("fingerprint"), found.method, found.seed) != wanted:
        raise InputError(f"{file} is the result of another dataset, method or seed; remove it to run it again")
    for name, value in settings.items():
        if found.settings.get(name) != value:
            made_with = f"{name}={found.settings.get(name)}, not {value}"
            raise InputError(f"{file} is the result of other settings ({made_with}); remove it to run it again")
    return found


def _read(file: Path) -> RunResult:
    try:
        return RunResult(**_content(file))
    except TypeError as error:
        raise InputError(f"{file} is not a readable result ({error}); remove it to run it again") from None


def _content(file: Path) -> dict[str, Any]:
    found = read_json(file, LARGE_JSON, "remove it to run it again")
    try:
        _RESULT.validate_json(json.dumps(found), strict=True)
        if found.get("dial") is not None:
            _METRICS.validate_python(found["dial"].get("metrics"), strict=True)
    except ValidationError as error:
        said = first_error(error)
        raise InputError(f"{file} is not a readable result ({said}); remove it to run it again") from None
    return found


def failures(results: Iterable[RunResult]) -> list[str]:
    """Trainings that failed, in words."""
    return [f"{one.data} {one.label} seed {one.seed}: {one.failed}" for one in results if one.failed]
