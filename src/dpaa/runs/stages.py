"""Trains and validates for a method that is made of several trainings.

Each is a run of its own inside the run's folder, so that an interrupted one goes on where it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dpaa._io import check_within
from dpaa._text import counted
from dpaa.data.dataset import Dataset
from dpaa.evaluation.dial_curve import KAPPAS, MOST_USERS, least_turn
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.exposure import validation_exposure
from dpaa.evaluation.metrics import METRICS
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.base import Method
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.stages import Part, Verdict
from dpaa.reranking.dial import dialled_family
from dpaa.runs.build import make_method
from dpaa.runs.callbacks import Callbacks
from dpaa.runs.folder import PARTS, RunFolder
from dpaa.runs.model import Model, load
from dpaa.training.start import Start
from dpaa.training.trainer import EpochReport


class FitPart(Protocol):
    """Fits a method that another one needs, into a folder or not."""

    def __call__(self, method: Method, data: Dataset, callbacks: Callbacks, folder: Path | None, **how: Any) -> Model:
        """The fitted model."""


@dataclass
class RunStages:
    """Where the parts of a staged method are made."""

    data: Dataset
    callbacks: Callbacks
    run: RunFolder | None
    validation: Evaluator | None
    fit_part: FitPart
    before: Model | None = None
    """A model that the first part starts from."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """Lines of all parts, in the order they were trained."""

    def train(
        self, label: str, method: str, settings: dict[str, Any], plain: Part | None = None, start: Part | None = None
    ) -> Part:
        """A training, taken up or taken over where it was begun or finished before."""
        made = make_method(self.data, method, settings)
        assert isinstance(made, GraphMethod)
        begin, pretrained, n_layers = start or plain, None, made.pretrained_layers()
        if plain is not None and n_layers is not None:
            pretrained = Pretrained.of(plain.method, n_layers, {"part": plain.label})
        lines: list[dict[str, Any]] = []

        def on_epoch(report: EpochReport) -> None:
            lines.append(report.line())
            self.callbacks.on_epoch(report)

        self.callbacks.on_part(f"part {label}", made)
        callbacks = replace(self.callbacks, on_epoch=on_epoch)
        how: dict[str, Any] = {"warm_start": self.before}
        if begin is not None:  # the first part has told what there is to know of data and cost
            callbacks = replace(callbacks, on_start=lambda _method, _notes: None, on_preview=lambda _preview: None)
            how = {"start": Start(begin.method.ego.rows(), measured=False), "keep_last": True}
            self.say(f"part {label}: {counted(made.settings.epochs, 'epoch', 'epochs')} from {begin.label}")
        folder = self._folder(label)
        if folder is not None and RunFolder(folder).finished:
            model = load(folder)
        else:
            model = self.fit_part(made, self.data, callbacks, folder, pretrained=pretrained, dial=False, **how)
        if folder is not None:
            lines = RunFolder(folder).history()
        trained = model.method
        assert isinstance(trained, GraphMethod)
        before = len(self.history)
        self.history += [line | {"epoch": before + place, "part": label} for place, line in enumerate(lines, 1)]
        valid = [line["valid"]["ndcg@20"] for line in lines if "ndcg@20" in line["valid"]]
        mean = sum(valid) / max(len(valid), 1)
        best = int(model.manifest["training"]["best_epoch"])
        return Part(label, trained, len(lines), self._weights(model, made), mean, best)

    def judge(self, method: GraphMethod, objective: str) -> Verdict:
        """κ by the rule of `least_turn`, and what it gives; 0 where validation is as biased as the log."""
        if self.validation is None:
            return Verdict(0.0, 0.0, np.zeros(0))
        kappas = (0.0,) if validation_exposure(self.data).biased else KAPPAS
        few = self.validation.sample(MOST_USERS)
        every = few.lists_of(dialled_family(method, kappas), len(kappas), method.device)
        values = np.stack([METRICS[objective].formula(few.truth.context(lists)) for lists in every])
        place = least_turn(kappas, values)
        return Verdict(float(values[place].mean()), kappas[place], values[place])

    def exposure_in_words(self) -> str:
        """What kind of pairs validation has."""
        return validation_exposure(self.data).in_words() if self.validation else "there are no validation pairs"

    def say(self, line: str) -> None:
        """Tell the user."""
        self.callbacks.say(line)

    def _folder(self, label: str) -> Path | None:
        return None if self.run is None else check_within(self.run.path / PARTS / label, self.run.path)

    def _weights(self, model: Model, made: GraphMethod) -> list[tuple[str, Any]]:
        """In force at the end; those of a part that was finished before are in its files."""
        if model.method is made:
            return made.message_weights()
        assert model.path is not None
        weights = RunFolder(model.path).read_weights(model, made.settings.layers)
        return [(f"weight_{layer}", weight.to_user) for layer, weight in enumerate(weights)]
