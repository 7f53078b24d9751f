"""The models of a frontier: trained into a folder, a run each, or existing runs."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpaa._io import check_within, own_folder, resolve_path
from dpaa._text import printable
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.methods import METHODS, find_method
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import PRETRAINED, needed_layers
from dpaa.runs import _foreign
from dpaa.runs.fit import Callbacks, fit_into, make_method
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model, load

MODELS = "models"
REMEDY = "free some space or choose another folder with --out"

Watch = Callable[[Method], AbstractContextManager[Callbacks]]
"""Callbacks of the training of a method, such as a progress display."""


def unwatched(_method: Method) -> AbstractContextManager[Callbacks]:
    """Watch no training: callbacks that do nothing."""
    return nullcontext(Callbacks())


def default_methods() -> list[str]:
    """List the methods that `dpaa debias` tries by default.

    Returns
    -------
    their names, the quickest first
    """
    return sorted((name for name in METHODS.built_in if METHODS[name].default_candidate), key=_in_epochs)


def _in_epochs(name: str) -> bool:
    return issubclass(find_method(name), GraphMethod)


class OtherRunError(InputError):
    """The folder has another model than the requested one."""


@dataclass
class ModelStore:
    """Trains or reads the models of a frontier.

    Parameters
    ----------
    folder : of the frontier; models are runs in its folder `models`, which a later call reuses
    data : the dataset
    settings : hyperparameters, for every method that has them
    seed : of every training
    deadline : `time.monotonic()` at which no training begins any more, once there is a model,
        and of one under way the best epoch so far is used
    overwrite : whether to train models again
    watch, say : callbacks of trainings, and who gets lines of progress
    k : length of the lists, which those of another system must not be shorter than
    """

    folder: Path
    data: Dataset
    settings: Mapping[str, object]
    seed: int
    deadline: float | None = None
    overwrite: bool = False
    watch: Watch = unwatched
    say: Callable[[str], None] = lambda _line: None
    k: int = 1
    notes: list[str] = field(default_factory=list)
    models: dict[str, Model] = field(default_factory=dict)
    """Trained here."""
    taken: dict[str, Model] = field(default_factory=dict)
    """Read from runs."""

    def train(self, methods: Sequence[str], *, required: bool) -> None:
        """Train each method into a separate run, unless that run exists.

        Parameters
        ----------
        methods : names, or package.module:Class
        required : whether one that cannot be trained is an error; otherwise it is noted
        """
        names = {find_method(name).name: name for name in methods}
        names = {name: names[name] for name in sorted(names, key=_in_epochs)}  # a budget may end before the slow ones
        known = {key for name in names for key in find_method(name).hyperparameters.model_fields} - {"seed"}
        if wrong := self.settings.keys() - known:
            remedy = f"known are {', '.join(sorted(known))}; give the seed with --seed"
            raise InputError(f"no method that is trained here has a hyperparameter {min(wrong)!r}; {remedy}")
        for number, (name, given) in enumerate(names.items(), start=1):
            home = own_folder(check_within(self.folder / MODELS, self.folder), REMEDY)
            folder = check_within(home / name, self.folder)
            if self._late() and self.models and not RunFolder(folder).finished:
                self.notes.append(f"{name} was not tried, as the time is up; call again with more --max-minutes")
                continue
            self.say(f"model {number} of {len(names)}: {name}")
            try:
                self.models[name] = self._train_one(folder, given)
            except InputError as error:
                if required or isinstance(error, OtherRunError):
                    raise
                self.notes.append(f"{name} was left out: {error}")

    def _train_one(self, folder: Path, given: str) -> Model:
        known = find_method(given).hyperparameters.model_fields
        own = {key: value for key, value in self.settings.items() if key in known}
        method = make_method(self.data, given, own | {"seed": self.seed})
        run, overwrite = RunFolder(folder), self.overwrite
        if run.finished and not overwrite:  # one that the budget cut short is trained again where there is time
            overwrite = "stopped" in (run.read_manifest()[0].get("training") or {}) and not self._late()
        resume = folder.exists() and not overwrite
        if resume and run.finished and not run.finished_before(method, self.data.fingerprint):
            raise OtherRunError(
                f"{folder} holds a run with other hyperparameters or of another dataset; pass --overwrite to train it "
                "again, or choose another folder with --out"
            )
        before = self.models.get(PRETRAINED) if needed_layers(method) is not None else None
        how: dict[str, Any] = {"overwrite": overwrite, "resume": resume, "pretrained": before and before.path}
        with self.watch(method) as callbacks:
            limited = replace(callbacks, finish_requested=self._late)
            model = fit_into(folder, self.data, method, callbacks=limited, **how)
        if "stopped" in model.entry("training"):
            self.notes.append(f"the time was up before {method.name} was trained; its best epoch so far is used")
        return model

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def read(self, runs: Sequence[str | Path], methods: Sequence[str]) -> dict[Path, str]:
        """Read finished runs on the same dataset, each once; one that is to be trained here may be yet to come.

        Parameters
        ----------
        runs : folders, or files with another system's lists or vectors
        methods : to be trained here

        Returns
        -------
        Resolved folder → name among the models: that of the folder where it is free, else its path
        """
        own = {resolve_path(self.folder / MODELS / kind.name): kind.name for kind in map(find_method, methods)}
        names: dict[Path, str] = {}
        for run in runs:
            path = resolve_path(RunFolder(run).path)
            if path in own or path in names:
                names.setdefault(path, own.get(path, ""))
                continue
            model = _foreign.given(run, self.data, k=self.k) if path.is_file() else load(run)
            self.notes += model.manifest["given"]["notes"] if path.is_file() else []
            if model.trained_on.fingerprint != self.data.fingerprint:
                raise InputError(f"{run} was trained on another dataset than {self.data.name}; name runs on this one")
            name = printable(path.stem if path.is_file() else resolve_path(run).name)
            names[path] = printable(str(path)) if name in {*own.values(), *names.values()} else name
            self.taken[names[path]] = model
        return names
