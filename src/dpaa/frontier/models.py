"""The models of a frontier: trained into a folder, taken up again after an interruption, or runs that are there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.files import check_within, own_folder
from dpaa.methods import METHODS, find_method
from dpaa.methods.base import Method
from dpaa.methods.settings import TrainedSettings
from dpaa.runs.fit import Callbacks, fit_into, make_method
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model, load
from dpaa.text import printable
from dpaa.training.trainer import Interrupted

MODELS = "models"
"""Where they are kept, a run each."""
REMEDY = "make room or choose another folder with --out"

Watch = Callable[[Method], AbstractContextManager[Callbacks]]
"""Who looks on while a method is trained."""


def unwatched(_method: Method) -> AbstractContextManager[Callbacks]:
    """Nobody."""
    return nullcontext(Callbacks())


def default_methods() -> list[str]:
    """Those that `dpaa debias` tries unasked, the quickest first."""
    chosen = [name for name in METHODS.built_in if METHODS[name].default_candidate]
    return sorted(chosen, key=_in_epochs)


def _in_epochs(name: str) -> bool:
    return issubclass(find_method(name).settings_type, TrainedSettings)


@dataclass
class ModelStore:
    """Trains what a frontier is made of."""

    folder: Path
    data: Dataset
    settings: Mapping[str, object]
    """For every method that has them."""
    seed: int
    deadline: float | None = None
    """`time.monotonic()` at which no training begins any more, and one under way is left for the next call."""
    overwrite: bool = False
    watch: Watch = unwatched
    say: Callable[[str], None] = lambda _line: None
    notes: list[str] = field(default_factory=list)
    """What was left out."""
    models: dict[str, Model] = field(default_factory=dict)

    def train(self, methods: Sequence[str], *, asked: bool) -> None:
        """Each method into a run of its own; one that cannot be had is noted, unless it was asked for by name."""
        names = {find_method(name).name: name for name in methods}
        self._check_settings(list(names))
        for place, (name, given) in enumerate(names.items()):
            if self._late:
                left = ", ".join(list(names)[place:])
                self.notes.append(f"the time is up, so these were not tried: {left}; call again with a larger --budget")
                break
            self.say(f"model {place + 1} of {len(names)}: {name}")
            try:
                self._train_one(name, given)
            except InputError as error:
                if asked:
                    raise
                self.notes.append(f"{name} was left out: {error}")

    @property
    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _train_one(self, name: str, given: str) -> None:
        kind = find_method(name)
        own = {key: value for key, value in self.settings.items() if key in kind.settings_type.model_fields}
        method = make_method(self.data, given, own | {"seed": self.seed})
        home = own_folder(check_within(self.folder / MODELS, self.folder), REMEDY)
        folder = check_within(home / name, self.folder)
        before = self.models.get(kind.pretrained_from) if method.pretrained_layers() is not None else None
        resume = folder.exists() and not self.overwrite
        if resume and RunFolder(folder).finished:
            self._check_same(folder, method)
        with self.watch(method) as callbacks:
            asked_to_stop = callbacks.stop_requested
            limited = replace(callbacks, stop_requested=lambda: asked_to_stop() or self._late)
            try:
                model = fit_into(
                    folder,
                    self.data,
                    method,
                    overwrite=self.overwrite,
                    resume=resume,
                    callbacks=limited,
                    pretrained=None if before is None else before.path,
                )
            except Interrupted:
                if asked_to_stop():
                    raise
                self.notes.append(f"the time was up before {name} was trained; call again to go on with it")
                return
        self.models[name] = model

    def _check_same(self, folder: Path, method: Method) -> None:
        if not RunFolder(folder).finished_before(method, self.data.fingerprint):
            raise InputError(
                f"{folder} holds a run with other settings or of another dataset; pass --overwrite to train it again, "
                "or choose another folder with --out"
            )

    def _check_settings(self, names: Sequence[str]) -> None:
        known = {key for name in names for key in find_method(name).settings_type.model_fields}
        for key in self.settings:
            if key not in known or key == "seed":
                remedy = "give it with --seed" if key == "seed" else f"known are: {', '.join(sorted(known - {'seed'}))}"
                raise InputError(f"no method of these has a setting {key!r} to set ({', '.join(names)}); {remedy}")

    def take(self, runs: Sequence[str | Path]) -> list[str]:
        """Finished runs on the same dataset, under their folders' names.  Returns these."""
        names = []
        for run in runs:
            model = load(run)
            if model.manifest.get("dataset", {}).get("fingerprint") != self.data.fingerprint:
                raise InputError(
                    f"{run} was trained on another dataset than {self.data.name} (fingerprints differ); "
                    "name runs on this dataset"
                )
            name = printable(Path(run).resolve().name)
            names.append(name if name not in self.models else printable(str(run)))
            if names[-1] in self.models:
                raise InputError(f"{run} is named twice; name each run once")
            self.models[names[-1]] = model
        return names
