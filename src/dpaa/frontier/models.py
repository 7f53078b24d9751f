"""The models of a frontier: trained into a folder, taken up again after an interruption, or runs that are there."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpaa._io import check_within, own_folder, settled
from dpaa._text import counted, printable
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.frontier.pace import Pace
from dpaa.methods import METHODS, find_method
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import PRETRAINED, needed_layers
from dpaa.runs.fit import Callbacks, fit_into, fit_method, make_method
from dpaa.runs.folder import CHOSEN, RunFolder
from dpaa.runs.model import Model, load
from dpaa.training.trainer import EpochReport, Interrupted

MODELS = "models"
"""Where they are kept, a run each."""
MEASURING = "measuring"
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
    return issubclass(find_method(name), GraphMethod)


class OtherRunError(InputError):
    """A model is there already, and it is not the one that was asked for."""


@dataclass
class ModelStore:
    """Trains what a frontier is made of."""

    folder: Path
    data: Dataset
    settings: Mapping[str, object]
    """For every method that has them."""
    seed: int
    deadline: float | None = None
    """`time.monotonic()` at which no training begins any more, and of one under way the best epoch so far is used.

    Its checkpoint stays for the next call.  Where there is no model yet, the next method is tried all the same: in one
    go, or for an epoch.
    """
    overwrite: bool = False
    watch: Watch = unwatched
    say: Callable[[str], None] = lambda _line: None
    notes: list[str] = field(default_factory=list)
    """What was left out."""
    models: dict[str, Model] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)

    def train(self, methods: Sequence[str], *, asked: bool) -> Iterator[str]:
        """Each method into a run of its own, its name as soon as it is there.

        One that cannot be had is noted, unless it was asked for by name.
        """
        names = {find_method(name).name: name for name in methods}
        names = {name: names[name] for name in sorted(names, key=_in_epochs)}  # a budget may end before the slow ones
        self._check_settings(list(names))
        home = own_folder(check_within(self.folder / MODELS, self.folder), REMEDY) if names else self.folder
        late = []
        for place, (name, given) in enumerate(names.items()):
            folder = check_within(home / name, self.folder)
            if self._late and self.models and not RunFolder(folder).finished:
                late.append(name)
                continue
            todo = Counter(kind for one in list(names)[place:] for kind in self._work(home / one, one))
            self.say(f"model {place + 1} of {len(names)}: {name} ({self.pace.in_words(todo)})")
            try:
                method = self._method(given)
                if not self.overwrite and RunFolder(folder).finished:
                    self._check_same(folder, method)
                with self.pace.timed(self._work(folder, name)[0]):
                    self._train_one(folder, method)
            except OtherRunError:
                raise
            except InputError as error:
                if asked:
                    raise
                self.notes.append(f"{name} was left out: {error}")
                continue
            if name in self.models:
                yield name
        if late:
            told = f"the time is up, so these were not tried: {', '.join(late)}"
            self.notes.append(f"{told}; call again with a larger --budget")

    def _work(self, folder: Path, name: str) -> tuple[str, str]:
        """What kinds of work a model is: to have it, and to measure it."""
        if RunFolder(folder).finished and not self.overwrite:
            return "reading", MEASURING
        return "training in epochs" if _in_epochs(name) else "training in one go", MEASURING

    @property
    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _method(self, given: str) -> Method:
        known = find_method(given).hyperparameters.model_fields
        own = {key: value for key, value in self.settings.items() if key in known}
        return make_method(self.data, given, own | {"seed": self.seed})

    def _train_one(self, folder: Path, method: Method) -> None:
        before = self.models.get(PRETRAINED) if needed_layers(method) is not None else None
        with self.watch(method) as callbacks:
            asked_to_stop, on_epoch, begun = callbacks.stop_requested, callbacks.on_epoch, bool(self.models)

            def count(report: EpochReport) -> None:
                nonlocal begun
                begun = True
                on_epoch(report)

            limited = replace(
                callbacks, on_epoch=count, stop_requested=lambda: asked_to_stop() or (begun and self._late)
            )
            try:
                model = fit_into(
                    folder,
                    self.data,
                    method,
                    overwrite=self.overwrite,
                    resume=folder.exists() and not self.overwrite,
                    callbacks=limited,
                    pretrained=None if before is None else before.path,
                )
            except Interrupted:
                if asked_to_stop():
                    raise
                best = self._best_so_far(folder, method, callbacks, before)
                if best is None:
                    self.notes.append(f"the time was up before {method.name} was trained; call again to go on with it")
                    return
                model = best
                epochs = counted(model.manifest["training"]["epochs"], "epoch", "epochs")
                self.notes.append(
                    f"the time was up after {epochs} of {method.name}, whose best one is used; call again to train on"
                )
        self.models[method.name] = model

    def _best_so_far(self, folder: Path, method: Method, callbacks: Callbacks, before: Model | None) -> Model | None:
        """A model of the best epoch of the checkpoint, which stays; None where there is no such epoch."""
        fresh = make_method(self.data, type(method), method.get_params())
        try:
            run = RunFolder.to_finish(folder, self.overwrite)
            pretrained = None if before is None else before.path
            return fit_method(fresh, self.data, callbacks, run, resume=True, finish=True, pretrained=pretrained)
        except InputError:
            return None

    def _check_same(self, folder: Path, method: Method) -> None:
        if not RunFolder(folder).finished_before(method, self.data.fingerprint):
            raise OtherRunError(
                f"{folder} holds a run with other settings or of another dataset; pass --overwrite to train it again, "
                "or choose another folder with --out"
            )

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

    def take(self, runs: Sequence[str | Path]) -> list[str]:
        """Finished runs on the same dataset, under their folders' names; one that is there already is taken once.

        Returns the names.
        """
        return [self._take(Path(run)) for run in runs]

    def _take(self, run: Path) -> str:
        place = settled(RunFolder(run).path)
        for name, model in self.models.items():
            if model.path is not None and settled(model.path) == place:
                return name
        model = self._read(run)
        names = (printable(settled(run).name), printable(str(run)), printable(str(place)))
        name = next((one for one in names if one not in self.models), f"{names[-1]} {len(self.models)}")
        self.models[name] = model
        return name

    def _read(self, run: Path) -> Model:
        """A finished run on the same dataset."""
        if settled(RunFolder(run).path) == settled(self.folder / CHOSEN):
            raise InputError(f"{run} is what this call writes; choose another folder with --out")
        model = load(run)
        if model.trained_on.fingerprint != self.data.fingerprint:
            raise InputError(
                f"{run} was trained on another dataset than {self.data.name} (fingerprints differ); "
                "name runs on this dataset"
            )
        return model
