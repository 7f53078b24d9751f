"""What a worker does: claims trials and trains them, then trains the best settings over seeds.

Trials are trained in memory and leave no file; what they share (the graph, the pre-trained model) is made once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from dpaa._machine import one_thread
from dpaa.data.dataset import Dataset, read_dataset
from dpaa.data.pairs import Pairs
from dpaa.errors import DivergedError
from dpaa.files import check_within, held, locked, own_folder
from dpaa.methods import find_method
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.settings import TrainedSettings, make_settings
from dpaa.runs.fit import Callbacks, fit_into, fit_method, make_method
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model
from dpaa.runs.pretrained import train_or_reuse
from dpaa.training.trainer import MONITOR, EpochReport
from dpaa.tuning.locks import LOCKS
from dpaa.tuning.processes import in_several
from dpaa.tuning.study import Claim, Study, TrialStore, storage_in_words
from dpaa.tuning.trial import TRAINED, Trial

PRUNE_EVERY = 10
"""Epochs between two questions whether to prune."""
Stage = Literal["search", "retrain"]


@dataclass(frozen=True)
class WorkOrder:
    """What the workers of a study are to do; plain data, so that it can be sent to another process."""

    study: Study
    method: str
    fixed: dict[str, Any]
    """Settings that are not searched and differ from the defaults."""
    wanted: int
    """Different settings to try."""
    best: dict[str, Any] | None = None
    """The settings to train over seeds, once they are known."""
    best_number: int = 0
    seeds: tuple[int, ...] = ()

    def settings(self, searched: dict[str, Any], seed: int) -> dict[str, Any]:
        """All that is set for one training: on one thread, for the workers share the cores."""
        trained = issubclass(find_method(self.method).settings_type, TrainedSettings)
        return self.fixed | searched | {"seed": seed} | ({"threads": 1} if trained else {})

    def tidy_run(self, seed: int) -> None:
        """Finish what a process did not that was killed in its last moment, when the run of this seed was whole."""
        run, lock = RunFolder(self.run_folder(seed)), self.run_lock(seed)
        if run.finished:
            own_folder(lock.parent, "make room and call again")
            with locked(lock, wait=True):
                run.tidy()

    def run_folder(self, seed: int) -> Path:
        """Where the best settings with this seed are trained into."""
        folder = self.study.folder
        return check_within(folder / "runs" / f"trial-{self.best_number}-seed-{seed}", folder)

    def run_lock(self, seed: int) -> Path:
        """Held by who trains into that folder."""
        return self.study.folder / LOCKS / self.run_folder(seed).name


def in_processes(stage: Stage, order: WorkOrder, dataset: Path, jobs: int, say: Callable[[str], None]) -> int:
    """Let workers do a stage and wait for them.  Returns how many ended otherwise than by finishing, killed ones."""
    return in_several(_work, (stage, order, dataset), jobs, say)


def _work(stage: Stage, order: WorkOrder, dataset: Path, say: Callable[[str], None]) -> None:
    worker = Worker(order, read_dataset(dataset), say)
    if stage == "search":
        with storage_in_words(order.study), closing(TrialStore(order.study)) as store:
            worker.search(store)
    else:
        worker.retrain()


@dataclass
class Worker:
    """One worker in one process."""

    order: WorkOrder
    data: Dataset
    say: Callable[[str], None] = lambda _line: None
    _first: Method | None = field(default=None, init=False)
    _pretrained: dict[tuple[int, int], Pretrained] = field(default_factory=dict, init=False)

    def search(self, store: TrialStore) -> None:
        """Claim and train until enough settings are tried or under way."""
        with one_thread(), store.at_work():
            while claim := store.claim(self.order.wanted):
                self._train(claim)
                self._tell(claim, store)

    def _train(self, claim: Claim) -> None:
        began = time.perf_counter()
        study = self.order.study
        curve: list[float] = []

        def on_epoch(report: EpochReport) -> None:
            # The first epoch is always validated; where a later one is not, nothing better is known.
            curve.append(round(report.valid[MONITOR], 6) if report.valid else curve[-1])
            since = report.epoch - study.prune_after
            asked = study.prune_after and since >= 0 and since % PRUNE_EVERY == 0
            if asked and claim.should_stop(report.epoch, max(curve)):
                raise _Pruned

        state, metrics, kept = "COMPLETE", None, {}
        try:
            method = self._method(self.order.settings(claim.settings, study.seed))
            callbacks, vectors = Callbacks(on_epoch=on_epoch), self._vectors(method)
            model = fit_method(method, self._untested, callbacks, pretrained=vectors, dial=False)
            metrics = study.goal.measure(model.method, self._untested)
            kept = {"best_epoch": (model.manifest.get("training") or {}).get("best_epoch")}
        except _Pruned:
            state = "PRUNED"
        except DivergedError as error:
            state, kept = "PRUNED", {"diverged": str(error)}
        except BaseException:
            claim.release()
            raise
        claim.end(state, metrics, curve=curve, seconds=round(time.perf_counter() - began, 3), **kept)

    def _tell(self, claim: Claim, store: TrialStore) -> None:
        trials = store.write()
        trial = next(one for one in trials if one.number == claim.number)
        if trial.seconds is None:
            self.say(f"trial {trial.number} was given up for lost by another process, which has its settings now")
            return
        done = sum(one.state in TRAINED for one in trials)
        front = self.order.study.goal.front(trials)
        came = "" if trial.value is None else f" with {_in_words(trial.metrics or {MONITOR: trial.value})}"
        epochs = f"{len(trial.curve)} epochs, " if trial.curve else ""
        settings = " ".join(f"{name}={value}" for name, value in trial.settings.items())
        self.say(
            f"{done} of {self.order.wanted}: trial {trial.number} {trial.state}{came} ({epochs}{trial.seconds:.1f} s; "
            f"{settings}){self._best_so_far(front)}"
        )

    def _best_so_far(self, front: list[Trial]) -> str:
        if not front:
            return ""
        one = self.order.study.goal.metrics[0]
        return f", best so far {front[0].metrics[one]:.4f}" if front[1:] == [] else f", {len(front)} not dominated"

    def retrain(self) -> None:
        """Train the best settings with each seed into a run folder; what is finished, or another worker's, is left."""
        for seed in self.order.seeds:
            if not held(self.order.run_lock(seed)):
                self.retrain_one(seed)

    def retrain_one(self, seed: int) -> None:
        """Train one of them, or wait for who is at it."""
        lock, folder = self.order.run_lock(seed), self.order.run_folder(seed)
        own_folder(lock.parent, "make room and call again")
        with locked(lock, wait=True), one_thread():
            if RunFolder(folder).finished:
                return
            assert self.order.best is not None
            method = self._method(self.order.settings(self.order.best, seed))
            resume, vectors = folder.exists(), self._vectors(method)
            model = fit_into(folder, self.data, method, resume=resume, pretrained=vectors, trials=self.order.wanted)
            found = self.order.study.goal.measure(model.method, self.data)
            self.say(f"seed {seed}: validation {_in_words(found)}, kept in {folder}")

    # ------------------------------------------------------------------ what trials share

    @cached_property
    def _untested(self) -> Dataset:
        """What trials see: no test split."""
        return replace(self.data, test=Pairs.of([], []))

    def _method(self, settings: dict[str, Any]) -> Method:
        """The method on the one graph."""
        if self._first is None:
            self._first = make_method(self.data, self.order.method, settings)
            return self._first
        kind = type(self._first)
        return kind(self._first.graph, make_settings(kind.settings_type, settings, kind.name))

    def _vectors(self, method: Method) -> Pretrained | None:
        """For methods that start from a pre-trained model: LightGCN with the settings that are not searched.

        Searched ones (the learning rate, say) have their defaults in it: one model for all trials of a seed, as the
        weights that are compared must not come from models of different quality.
        """
        seed, layers, kind = method.seed, needed_layers(method), type(method)
        if layers is None:
            return None
        if (seed, layers) not in self._pretrained:
            settings = make_settings(kind.settings_type, self.order.settings({}, seed), kind.name)
            assert isinstance(settings, TrainedSettings)
            found = train_or_reuse(self.data, settings, layers, self.order.study.folder, self._train_plain)
            self._pretrained[seed, layers] = found
        return self._pretrained[seed, layers]

    def _train_plain(self, folder: Path | None, plain: GraphMethod) -> Model:
        assert folder is not None
        name = find_method(self.order.method).name
        self.say(f"{name} starts from a pre-trained model: LightGCN is trained first and kept in {folder}")
        return fit_into(folder, self.data, plain, resume=folder.exists())


def _in_words(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{key} {value:.4f}" for key, value in metrics.items())


class _Pruned(Exception):  # noqa: N818  # no error: the search has seen enough
    """The trial is worse than the median of the others."""
