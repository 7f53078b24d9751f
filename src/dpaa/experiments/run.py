"""Trainings as data: a spec says what to run, a result what came out; what is already there is not run again."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from dpaa.data.dataset import read_dataset
from dpaa.errors import InputError
from dpaa.evaluation.dial import dial_curve
from dpaa.evaluation.evaluator import OVERLAPS, Evaluator
from dpaa.methods import find_method
from dpaa.methods.settings import TrainedSettings, make_settings
from dpaa.runs.fit import evaluate, fit_into, make_method
from dpaa.runs.folder import RunFolder, finite, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

NOT_PART_OF_THE_RESULT = ("threads", "device")
"""Settings that change no bit of the result."""


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


@dataclass(frozen=True)
class RunResult:
    """What a training gave: metrics of the test split under each overlap convention."""

    data: str
    label: str
    method: str
    seed: int
    settings: dict[str, Any]
    metrics: dict[str, dict[str, float]]
    """Convention → metric → value."""
    details: dict[str, Any]
    """Fingerprint, best epoch, validation recall, seconds, versions."""
    dial: dict[str, Any] | None = None
    """With the popularity dial where validation puts it: `kappa`, and `metrics` under the convention `drop`."""


def parse_label(label: str) -> tuple[str, dict[str, Any]]:
    """`dpaa layer_emphasis=2 initial_residual=0.2` → method and settings."""
    name, *assignments = label.split()
    settings = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise InputError(f"{label!r}: write settings as NAME=VALUE, got {assignment!r}")
        settings[key] = value
    return find_method(name).name, settings


def specs_for(
    data: str, folder: Path, labels: Iterable[str], seeds: Iterable[int], common: dict[str, Any]
) -> list[RunSpec]:
    """Each label with each seed; `common` settings go to the methods that have them, a label's own win."""
    found = []
    for label in labels:
        method, own = parse_label(label)
        known = find_method(method).settings_type.model_fields
        shared = {key: value for key, value in common.items() if key in known}
        chosen = seeds if find_method(method).seeded else [0]
        found += [RunSpec(data, folder, label, method, shared | own | {"seed": seed}) for seed in chosen]
    return found


def run_all(
    specs: Sequence[RunSpec], results: Path, work: Path, jobs: int = 1, say: Callable[[str], None] = lambda _: None
) -> list[RunResult]:
    """Run what is missing, a few processes at a time, and return all results in the order of the specs."""
    results.mkdir(parents=True, exist_ok=True)
    files = {spec_key(spec): spec for spec in specs}
    missing = [(key, spec) for key, spec in files.items() if not (results / f"{key}.json").exists()]
    say(f"{len(files):,} trainings, {len(files) - len(missing):,} of them already in {results}")
    began = time.monotonic()
    # Spawned, not forked: torch's threads do not survive a fork.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(_run_one, key, spec, results, work): spec for key, spec in missing}
        for done, future in enumerate(as_completed(waiting), 1):
            spec, result = waiting[future], future.result()
            recall = result.metrics["drop"]["recall@20"]
            seed, minutes = spec.settings.get("seed", 0), (time.monotonic() - began) / 60
            row = f"{spec.data} {spec.label} seed {seed}"
            say(f"{done}/{len(missing)} {row}: recall@20 {recall:.4f} ({minutes:.1f} min)")
    found = ((spec, _read(results / f"{spec_key(spec)}.json")) for spec in specs)
    return [replace(result, data=spec.data, label=spec.label) for spec, result in found]


def spec_key(spec: RunSpec) -> str:
    """Names a result: data fingerprint, method, its version and its resolved settings."""
    kind = find_method(spec.method)
    settings = make_settings(kind.settings_type, spec.settings, kind.name).model_dump(mode="json")
    relevant = {name: value for name, value in settings.items() if name not in NOT_PART_OF_THE_RESULT}
    fingerprint = json.loads((spec.folder / "dataset.json").read_text(encoding="utf-8"))["fingerprint"]
    text = json.dumps([fingerprint, kind.name, kind.version, relevant], sort_keys=True)
    return f"{kind.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _run_one(key: str, spec: RunSpec, results: Path, work: Path) -> RunResult:
    data = read_dataset(spec.folder)
    one_thread = {"threads": 1} if issubclass(find_method(spec.method).settings_type, TrainedSettings) else {}
    folder = work / data.fingerprint[:12] / key
    if RunFolder(folder).finished:  # trained before, but killed before its result was written
        model = RunFolder(folder).read_model()
    else:
        method = make_method(data, spec.method, spec.settings | one_thread)
        model = fit_into(folder, data, method, overwrite=True, resume=folder.exists())
    found = {overlap: evaluate(model, data, 20, overlap) for overlap in OVERLAPS}
    dial = None
    if len(data.valid):
        kappa = dial_curve(model.method, Evaluator(data, 20, "valid", "drop")).chosen.kappa
        dial = {"kappa": kappa, "metrics": evaluate(model, data, 20, "drop", popularity_dial=kappa).metrics}
    settings = model.method.settings.model_dump(mode="json", exclude=set(NOT_PART_OF_THE_RESULT))
    result = RunResult(
        data=spec.data,
        label=spec.label,
        method=model.method.name,
        seed=model.method.settings.seed,
        settings=settings,
        metrics={overlap: one.metrics for overlap, one in found.items()},
        details={
            "dataset": data.name,
            "fingerprint": data.fingerprint,
            "users": {overlap: one.protocol.users for overlap, one in found.items()},
            "training": model.manifest.get("training"),
            "tuned": model.manifest.get("tuned"),
            "auto": model.manifest.get("auto"),
            "seconds": model.manifest.get("seconds"),
            "versions": versions(),
        },
        dial=dial,
    )
    beside = results / f"{key}.json.new"
    beside.write_text(json.dumps(finite(result.__dict__), indent=1), encoding="utf-8")
    beside.replace(results / f"{key}.json")
    shutil.rmtree(folder)
    return result


def _read(file: Path) -> RunResult:
    try:
        return RunResult(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{file} is not a readable result ({error}); remove it to run it again") from None
