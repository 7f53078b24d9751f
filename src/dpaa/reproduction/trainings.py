"""Trainings as data: a spec says what to run, a result what came out; what is already there is not run again."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaa._io import LARGE_JSON, check_within, held, lock_of, locked, read_json, remove_folder, remove_lock, sweep
from dpaa._text import counted
from dpaa.data.dataset import ABOUT_FILE, Dataset, read_dataset
from dpaa.errors import DivergedError, InputError
from dpaa.evaluation.dial_curve import dial_curve
from dpaa.evaluation.evaluator import OVERLAPS, Evaluator
from dpaa.methods import find_method
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.base import Method
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.settings import NOT_YET_SETTINGS, Settings, TrainedSettings, make_settings
from dpaa.reproduction.budget import FIRST
from dpaa.reproduction.results import Dialled, ResultStore, RunResult
from dpaa.reproduction.shared import opened
from dpaa.runs.fit import Callbacks, evaluate, fit_into, make_method
from dpaa.runs.folder import RunFolder, versions
from dpaa.runs.model import Model, load
from dpaa.runs.pretrained import train_or_reuse
from dpaa.trace.run import trace_run
from dpaa.tuning.processes import in_pool, stop_requested

ELSEWHERE_SECONDS = 2.0
"""Between two looks at what other machines have made, where nothing else is left to do."""
NOT_PART_OF_THE_RESULT = {"threads", "device"}
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
    pretrained: dict[str, Any] | None = None
    """Settings of the LightGCN that DPAA's weights come from, where it has not the row's own."""
    protocol: str = FIRST
    """Of the budget; it names no result, only says where it comes from."""
    traced: bool = False
    """Whether the result says how much of the vectors lies on the direction of popularity."""


@dataclass
class Runner:
    """Runs what is missing, and counts."""

    results: Path
    """The folder of results, loose and packed."""
    work: Path
    """Datasets, pre-trained models and trainings in flight."""
    jobs: int = 1
    with_dial: bool = False
    """Results of an earlier version lack the popularity dial: they are run again only if it is wanted."""
    say: Callable[[str], None] = lambda _line: None
    storage: str | None = field(default=None, repr=False)
    """A PostgreSQL server through which several machines share the work; its URL may hold a password."""
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

    def check_storage(self) -> None:
        """Refuse a server that cannot be used, before anything is prepared."""
        if self.storage is not None:
            with opened(self.storage):
                pass

    def run(self, specs: Sequence[RunSpec], kind: str) -> list[RunResult]:
        """The results of all specs, in their order; `kind` says where they are kept."""
        store = ResultStore(self.results, kind, RunResult)
        keys = {spec_key(spec): spec for spec in specs}
        missing, elsewhere = self._agreed(store, list(keys))
        kept = [key for key in keys if key not in missing]
        self._tidy(store, {key: keys[key] for key in kept})
        self.reused += len(kept)
        self.say(f"{counted(len(keys), 'training', 'trainings')}, {len(kept):,} already in {store.loose}{elsewhere}")
        began, done = time.monotonic(), 0
        try:
            left, waiting = missing, False
            while left:
                calls = [
                    (key, keys[key], store, self.work, self.with_dial, self.storage) for key in self._free(store, left)
                ]
                if not calls:
                    if not waiting:
                        self.say(f"waiting for {counted(len(left), 'training', 'trainings')} of other machines")
                    waiting = True
                    time.sleep(ELSEWHERE_SECONDS)
                for (_, spec, *_), result in in_pool(run_one, calls, self.jobs):
                    if result is None:
                        continue  # another machine is at it, or was quicker
                    done += 1
                    row = f"{done}/{len(missing)} {spec.data} {spec.label} seed {spec.settings.get('seed', 0)}"
                    outcome = result.failed or f"recall@20 {result.metrics['drop']['recall@20']:.4f}"
                    self.say(f"{row}: {outcome} ({(time.monotonic() - began) / 60:.1f} min)")
                left, _ = self._agreed(store, left)
            self.reused += len(missing) - done
        finally:
            self.trained += done
            self.seconds += time.monotonic() - began
        found = ((spec, _read_of(spec, store, spec_key(spec))) for spec in specs)
        return [result.model_copy(update={"data": spec.data, "label": spec.label}) for spec, result in found]

    def _agreed(self, store: ResultStore[RunResult], keys: list[str]) -> tuple[list[str], str]:
        """What is missing, here and on other machines; how many of theirs were taken over, in words."""

        def kept(key: str) -> bool:
            return _kept(store, key, self.with_dial)

        before = [key for key in keys if not kept(key)]
        if self.storage is None or not keys:
            return before, ""
        with opened(self.storage) as shared:
            shared.agree(store, keys, kept)
        left = [key for key in before if not kept(key)]
        taken = len(before) - len(left)
        return left, f", {taken:,} of them taken over from other machines" if taken else ""

    def _free(self, store: ResultStore[RunResult], keys: list[str]) -> list[str]:
        """Which of these no other machine is at."""
        if self.storage is None:
            return keys
        with opened(self.storage) as shared:
            names = {_claim(store, key): key for key in keys}
            return [names[name] for name in shared.free(list(names))]

    def _tidy(self, store: ResultStore[RunResult], kept: dict[str, RunSpec]) -> None:
        """Remove what a process left that was killed just after it had written a result."""
        sweep(store.loose)
        for key, spec in kept.items():
            home = self.work / _fingerprint(spec.folder)[:12]
            sweep(home)
            if not held(_turn(home, key)):
                remove_folder(home / key)
                remove_lock(lock_of(home / key))
                remove_lock(_turn(home, key))

    def summary(self) -> str:
        """What it took."""
        reused = f"{counted(self.reused, 'result', 'results')} taken from {self.results}"
        if not self.trained:
            return f"nothing was trained; {reused}"
        pace = 3600 * self.trained / max(self.seconds, 1e-9)
        trained = counted(self.trained, "training", "trainings")
        return f"{trained} in {self.seconds / 60:.1f} min, {pace:,.0f} an hour with --jobs {self.jobs}; {reused}"


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


def known_settings(settings: dict[str, Any], method: str) -> dict[str, Any]:
    """Those that the method has."""
    return {key: value for key, value in settings.items() if key in find_method(method).settings_type.model_fields}


def spec_key(spec: RunSpec) -> str:
    """Names a result: data fingerprint, method, its version and its resolved settings."""
    kind = find_method(spec.method)
    relevant = relevant_settings(make_settings(kind.settings_type, spec.settings, kind.name))
    plain = _plain(spec, relevant)
    return key_of(_fingerprint(spec.folder), kind.name, relevant, plain)


def key_of(fingerprint: str, method: str, relevant: dict[str, Any], plain: dict[str, Any] | None) -> str:
    """The name of a result: `plain` are the settings of the model trained before, where they are not the result's."""
    version = find_method(method).version
    parts = [fingerprint, method, version, relevant, *([] if plain is None else [plain]), *beneath(method)]
    text = json.dumps(parts, sort_keys=True)
    return f"{method}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _plain(spec: RunSpec, relevant: dict[str, Any]) -> dict[str, Any] | None:
    """Settings of the pre-trained model; None where they are the row's own, which is the ordinary case."""
    if spec.pretrained is None:
        return None
    plain = relevant_settings(make_settings(TrainedSettings, spec.pretrained, "lightgcn"))
    return plain if any(relevant.get(name) != value for name, value in plain.items()) else None


def beneath(method: str) -> list[dict[str, int]]:
    """Versions of the methods that this one is built on: a change of theirs moves its numbers too.

    The first versions are not named, as they were not in earlier results.
    """
    versions = {name: find_method(name).version for name in find_method(method).builds_on}
    changed = {name: version for name, version in versions.items() if version > 1}
    return [changed] if changed else []


def relevant_settings(settings: Settings) -> dict[str, Any]:
    """What names a result; settings that are as all was before there were any are left out, as in earlier results."""
    values = settings.model_dump(mode="json", exclude=NOT_PART_OF_THE_RESULT)
    old = NOT_YET_SETTINGS if isinstance(settings, TrainedSettings) else {}
    return {name: value for name, value in values.items() if name not in old or value != old[name]}


def run_one(
    key: str,
    spec: RunSpec,
    store: ResultStore[RunResult],
    work: Path,
    with_dial: bool = False,
    storage: str | None = None,
) -> RunResult | None:
    """Train, evaluate, keep the result; the run itself is thrown away.  None where another machine is at it."""
    home = work / _fingerprint(spec.folder)[:12]
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held_meanwhile:
        shared = None
        if storage is not None:
            shared = held_meanwhile.enter_context(opened(storage))
            if not held_meanwhile.enter_context(shared.claimed(_claim(store, key))):
                return None
            shared.agree(store, [key], lambda key: _kept(store, key, with_dial))
            if _kept(store, key, with_dial):
                return None  # made since we looked
        turn = locked(_turn(home, key), wait=True)  # another command may be at the same training: its result is ours
        held_meanwhile.enter_context(turn)
        if not _kept(store, key, with_dial):
            store.write(key, _train(spec, read_dataset(spec.folder), home / key))
        if shared is not None:
            shared.add(store, key)
        remove_folder(home / key)
    return _read_of(spec, store, key)


def _claim(store: ResultStore[RunResult], key: str) -> str:
    """What a machine that is at a training claims."""
    return f"{store.kind} {key}"


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
        return _result(spec, data, settings, {"failed": str(error)})
    found = {overlap: evaluate(model, data, 20, overlap) for overlap in OVERLAPS}
    dial = None
    if len(data.valid):
        kappa = dial_curve(model.method, Evaluator(data, 20, "valid", "drop")).suggested
        dialled = evaluate(model, data, 20, "drop", popularity_dial=kappa)
        dial = Dialled(kappa=kappa, metrics=dict(dialled.metrics))
    told = {name: model.manifest.get(name) for name in ("training", "tuned", "auto", "seconds")}
    if spec.traced:
        told["direction"] = trace_run(folder).direction.as_json()
    users = {overlap: one.protocol.users for overlap, one in found.items()}
    metrics = {str(overlap): dict(one.metrics) for overlap, one in found.items()}
    return _result(spec, data, model.method.settings, {"users": users} | told, metrics=metrics, dial=dial)


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


def _result(spec: RunSpec, data: Dataset, settings: Settings, details: dict[str, Any], **measured: Any) -> RunResult:
    relevant = relevant_settings(settings)
    details = {"dataset": data.name, "fingerprint": data.fingerprint} | details | {"versions": versions()}
    if (plain := _plain(spec, relevant)) is not None:
        details["pretrained"] = plain
    named = {"data": spec.data, "label": spec.label, "method": spec.method, "seed": relevant["seed"]}
    known: dict[str, Any] = {"metrics": {}, "dial": None, "protocol": spec.protocol}
    return RunResult(**known | measured | named, settings=relevant, details=details)


def _fingerprint(folder: Path) -> str:
    found = read_json(folder / ABOUT_FILE, LARGE_JSON, "remove the folder to have it made again")["fingerprint"]
    assert isinstance(found, str)
    return found


def _kept(store: ResultStore[RunResult], key: str, with_dial: bool) -> bool:
    """Whether a result is there, and with the dial if that is wanted."""
    found = store.read(key)  # read in any case: one that is spoilt is told before anything is trained
    return found is not None and ("dial" in found.model_fields_set or not with_dial)


def _read_of(spec: RunSpec, store: ResultStore[RunResult], key: str) -> RunResult:
    """The result, which must be of this dataset, method, seed and settings."""
    found = store.read(key)
    if found is None:
        raise InputError(f"{store.loose / key}.json was removed while it was needed; call again")
    kind, place = find_method(spec.method), store.place(key)
    settings = relevant_settings(make_settings(kind.settings_type, spec.settings, kind.name))
    wanted = (_fingerprint(spec.folder), spec.method, settings["seed"])
    if (found.details.get("fingerprint"), found.method, found.seed) != wanted:
        raise InputError(f"{place} is the result of another dataset, method or seed; {RunResult.remedy}")
    for name, value in settings.items():
        if found.settings.get(name) != value:
            made_with = f"{name}={found.settings.get(name)}, not {value}"
            raise InputError(f"{place} is the result of other settings ({made_with}); {RunResult.remedy}")
    return found


def failures(results: Iterable[RunResult]) -> list[str]:
    """Trainings that failed, in words."""
    return [f"{one.data} {one.label} seed {one.seed}: {one.failed}" for one in results if one.failed]
