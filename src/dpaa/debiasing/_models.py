"""The models of a frontier: trained into a folder, resumed after an interruption, or existing runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaa._io import check_within, own_folder, settled
from dpaa._text import printable
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.methods import METHODS, find_method
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import PRETRAINED, needed_layers
from dpaa.runs.fit import Callbacks, fit_into, make_method
from dpaa.runs.folder import CHOSEN, RunFolder
from dpaa.runs.model import Model, load

MODELS = "models"
"""Where they are kept, a run each."""
REMEDY = "make room or choose another folder with --out"

Watch = Callable[[Method], AbstractContextManager[Callbacks]]
"""Callbacks of the training of a method, such as a progress display."""


def unwatched(_method: Method) -> AbstractContextManager[Callbacks]:
    """No callbacks."""
    return nullcontext(Callbacks())


def default_methods() -> list[str]:
    """Names of the methods that `dpaa debias` tries by default, the quickest first."""
    return sorted((name for name in METHODS.built_in if METHODS[name].default_candidate), key=_in_epochs)


def _in_epochs(name: str) -> bool:
    return issubclass(find_method(name), GraphMethod)


class OtherRunError(InputError):
    """A model is there already, and it is not the one that is wanted."""


@dataclass
class ModelStore:
    """Trains what a frontier is made of."""

    folder: Path
    data: Dataset
    settings: Mapping[str, object]
    """Hyperparameters for every method that has them."""
    seed: int
    deadline: float | None = None
    """`time.monotonic()` at which no training begins any more, once there is a model."""
    overwrite: bool = False
    watch: Watch = unwatched
    say: Callable[[str], None] = lambda _line: None
    notes: list[str] = field(default_factory=list)
    """What was left out."""
    models: dict[str, Model] = field(default_factory=dict)

    def train(self, methods: Sequence[str], *, required: bool) -> Iterator[str]:
        """Train each method into a run of its own; its name is yielded as soon as it is there.

        Parameters
        ----------
        methods : names, or package.module:Class
        required : whether one that cannot be trained is an error; otherwise it is noted
        """
        names = {find_method(name).name: name for name in methods}
        names = {name: names[name] for name in sorted(names, key=_in_epochs)}  # a budget may end before the slow ones
        self._check_settings(list(names))
        home = own_folder(check_within(self.folder / MODELS, self.folder), REMEDY) if names else self.folder
        late = []
        for number, (name, given) in enumerate(names.items(), start=1):
            folder = check_within(home / name, self.folder)
            if self._late and self.models and not RunFolder(folder).finished:
                late.append(name)
                continue
            self.say(f"model {number} of {len(names)}: {name}")
            try:
                self._train_one(folder, self._method(given))
            except OtherRunError:
                raise
            except InputError as error:
                if required:
                    raise
                self.notes.append(f"{name} was left out: {error}")
                continue
            if name in self.models:
                yield name
        if late:
            names_left = f"the time is up, so these were not tried: {', '.join(late)}"
            self.notes.append(f"{names_left}; call again with a larger --budget")

    @property
    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _method(self, given: str) -> Method:
        known = find_method(given).hyperparameters.model_fields
        own = {key: value for key, value in self.settings.items() if key in known}
        return make_method(self.data, given, own | {"seed": self.seed})

    def _train_one(self, folder: Path, method: Method) -> None:
        run = RunFolder(folder)
        if not self.overwrite and run.finished and not run.finished_before(method, self.data.fingerprint):
            raise OtherRunError(
                f"{folder} holds a run with other settings or of another dataset; pass --overwrite to train it again, "
                "or choose another folder with --out"
            )
        before = self.models.get(PRETRAINED) if needed_layers(method) is not None else None
        how: dict[str, Any] = {"pretrained": None if before is None else before.path, "overwrite": self.overwrite}
        with self.watch(method) as callbacks:
            resume = folder.exists() and not self.overwrite
            self.models[method.name] = fit_into(folder, self.data, method, resume=resume, callbacks=callbacks, **how)

    def _check_settings(self, names: Sequence[str]) -> None:
        if self.settings and not names:
            raise InputError("settings are for methods that are trained here, and none is; name some with --methods")
        known = {key for name in names for key in find_method(name).hyperparameters.model_fields}
        for key in self.settings:
            if key not in known or key == "seed":
                remedy = "give it with --seed" if key == "seed" else f"known are: {', '.join(sorted(known - {'seed'}))}"
                raise InputError(f"no method of these has a setting {key!r} to set ({', '.join(names)}); {remedy}")

    def check(self, runs: Sequence[str | Path]) -> None:
        """Refuse, before anything is trained, what could not be taken; models of this folder may be yet to come."""
        for run in map(Path, runs):
            if not settled(RunFolder(run).path).is_relative_to(settled(self.folder / MODELS)):
                self._read(run)

    def take(self, run: str | Path) -> str:
        """Take a finished run on the same dataset, once.

        Parameters
        ----------
        run : its folder

        Returns
        -------
        its name among the models: that of the folder where it is free, else its path
        """
        resolved = settled(RunFolder(run).path)
        for name, model in self.models.items():
            if model.path is not None and settled(model.path) == resolved:
                return name
        model = self._read(Path(run))
        names = (printable(settled(run).name), printable(str(run)), printable(str(resolved)))
        name = next((one for one in names if one not in self.models), f"{names[-1]} {len(self.models)}")
        self.models[name] = model
        return name

    def _read(self, run: Path) -> Model:
        if settled(RunFolder(run).path) == settled(self.folder / CHOSEN):
            raise InputError(f"{run} is what this call writes; choose another folder with --out")
        model = load(run)
        if model.trained_on.fingerprint != self.data.fingerprint:
            raise InputError(
                f"{run} was trained on another dataset than {self.data.name} (fingerprints differ); "
                "name runs on this dataset"
            )
        return model
