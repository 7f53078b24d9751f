"""A study: an Optuna storage that holds every trial, and the rules by which workers share it.

A worker claims a trial, trains it and says how it went.  What holds at any moment, kill -9 included:

- a setting is trained once: a proposal that repeats a known trial takes its result, one that repeats a running trial
  is dropped;
- a trial whose worker is gone is noticed by the next claim and queued again, until its settings have cost `MOST_DEATHS`
  workers; where the whole call is gone, they are hardly to blame;
- no more than the wanted number of different settings is begun.
"""

from __future__ import annotations

import json
import socket
import threading
import time
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpaa.errors import InputError
from dpaa.files import check_regular, write_file
from dpaa.text import json_text
from dpaa.tuning.goal import RECALL, TuningGoal
from dpaa.tuning.locks import HEARTBEAT, locks_of
from dpaa.tuning.pruning import SameRatePruner
from dpaa.tuning.space import SMALL, Dimension, Range, Space, points, size
from dpaa.tuning.storage import in_words, open_storage, optuna, unusable, url_of
from dpaa.tuning.trial import Trial

STORAGE, TRIAL_LINES = "study.sqlite", "trials.jsonl"
STARTUP = 5
"""Trials drawn at random before the search learns from them, and finished ones of a learning rate before any of that
rate is pruned."""
REPEATS = 20
"""Repeated proposals in a row after which the sampler no longer decides."""
MOST_DEATHS, DEATH_WITH_CALL = 3, 0.25
"""Times a training may take its process with it before its settings are given up; what a death counts with which the
whole call went: it was killed by somebody, most likely, but a call of one process may have run out of memory."""
CLAIM, OUTCOME, LOST, SAME_AS = "claim", "outcome", "lost", "same_as"
"""What is kept with a trial: its settings and worker; curve, seconds …; that its process ended; its twin's number."""


@dataclass(frozen=True)
class Study:
    """What the trials of a study have in common, and where they are."""

    folder: Path
    name: str
    """In the storage, which may hold other studies; it follows from all that the trials have in common."""
    space: Space
    first: dict[str, Any]
    """Settings that are tried first."""
    listed: bool
    """Whether points are taken from a list, in the order of `points`, instead of being proposed."""
    seed: int
    prune_after: int
    """Epochs before a trial may be pruned; 0 prunes none."""
    storage: str | None = field(default=None, repr=False)
    """An URL, which may hold a password; None keeps the trials in the folder."""
    call: str = ""
    """Who works at it now: the same for the workers of one call, another for every call."""
    goal: TuningGoal = RECALL
    """What is searched for."""


class TrialStore:
    """A study opened by one worker."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.locks = locks_of(study.folder, study.name, study.storage)
        self._points = points(study.space, study.seed, study.first) if (size(study.space) or SMALL + 1) <= SMALL else []
        self._distributions = {name: _distribution(tried) for name, tried in study.space.items()}
        file = study.folder / STORAGE
        if study.storage is None and file.is_symlink():
            raise InputError(f"{file} is a link to somewhere else; remove it and call again")
        if study.storage is None and file.exists():
            check_regular(file)
        with self.locks.opening(), storage_in_words(study, opening=True):
            # One at a time, as two would both make the tables' first rows.
            self._rdb = open_storage(study.storage or url_of(file))
            names = [] if study.storage else optuna.get_all_study_names(self._rdb)  # a server may hold many studies
            if names and study.name not in names:
                raise InputError(f"{file} belongs to another study; restore it or choose another folder with --out")
            self._study = optuna.create_study(
                storage=self._rdb,
                study_name=study.name,
                directions=["maximize"] * len(study.goal.metrics),
                load_if_exists=True,
                pruner=SameRatePruner(STARTUP, max(study.prune_after, 1)),
            )

    def at_work(self) -> AbstractContextManager[None]:
        """While it lasts, this process counts as alive; however it ends, others will know."""
        return self.locks.at_work()

    def close(self) -> None:
        """Leave the storage."""
        self._rdb.remove_session()
        self._rdb.engine.dispose()
        self.locks.close()

    def forget(self) -> None:
        """Remove the study from the storage: nothing came of it."""
        optuna.delete_study(study_name=self.study.name, storage=self._rdb)

    # ------------------------------------------------------------------ claiming

    def claim(self, wanted: int) -> Claim | None:
        """The next settings to train, or None where as many as wanted are trained or under way."""
        with self.locks.turn():
            for repeats in range(100 * REPEATS):
                self._requeue_lost()
                known, running = self._known_and_running()
                if len(known) + len(running) >= wanted:
                    return None
                trial, settings = self._propose(known.keys() | running.keys(), repeats)
                key = key_of(settings)
                if key in known:
                    self._repeat(trial, known[key])
                elif key in running:
                    trial.set_user_attr(SAME_AS, running[key].number)
                    self.tell(trial.number, "FAIL")
                else:
                    return Claim(self, trial, settings)
            raise InputError("the search proposes nothing but settings that were tried; widen it or ask for less")

    def _propose(self, taken: set[str], repeats: int) -> tuple[optuna.Trial, dict[str, Any]]:
        """A new trial: one that waits, the next of the list, or what the sampler makes of the trials so far.

        The draw depends on the seed and the number of trials alone, so that a study that was killed goes on as it
        would have.
        """
        waiting = self._in_state("WAITING")
        untried = (point for point in self._points if key_of(point) not in taken)
        if not waiting and (self.study.listed or repeats >= REPEATS) and (point := next(untried, None)):
            self._study.enqueue_trial(point)
        elif not waiting and not self._in_state("COMPLETE", "PRUNED", "RUNNING", "FAIL"):
            self._study.enqueue_trial(self.study.first)
        stream = np.random.SeedSequence([self.study.seed, len(taken), repeats]).generate_state(1)
        tpe = optuna.samplers.TPESampler(seed=int(stream[0]), n_startup_trials=STARTUP)
        self._study.sampler = tpe if repeats < REPEATS else optuna.samplers.RandomSampler(seed=int(stream[0]))
        trial = self._study.ask(self._distributions)
        space = self.study.space
        settings = {
            name: tried.neat(trial.params[name]) if isinstance(tried := space[name], Range) else trial.params[name]
            for name in space
        }
        worker = {"host": socket.gethostname(), "beacon": self.locks.beacon, "call": self.study.call}
        trial.set_user_attr(CLAIM, {"settings": settings} | worker)
        return trial, settings

    def _repeat(self, trial: optuna.Trial, twin: optuna.trial.FrozenTrial) -> None:
        """The known result, once more."""
        trial.set_user_attr(SAME_AS, twin.number)
        complete = twin.state.name == "COMPLETE"
        self.tell(trial.number, twin.state.name, twin.values if complete else None)

    def _known_and_running(self) -> tuple[dict[str, optuna.trial.FrozenTrial], dict[str, optuna.trial.FrozenTrial]]:
        """Settings that need no training (trained, or given up after too many deaths), and those under way.

        Of one reading: a trial that ends between two would be neither, and trained again.
        """
        known, running = {}, {}
        deaths: dict[str, float] = {}
        for trial in self._in_state("COMPLETE", "PRUNED", "FAIL", "RUNNING"):
            if CLAIM not in trial.user_attrs or SAME_AS in trial.user_attrs:
                continue
            key = key_of(trial.user_attrs[CLAIM]["settings"])
            if trial.state.name == "RUNNING":
                running[key] = trial
                continue
            deaths[key] = deaths.get(key, 0) + float(trial.user_attrs.get(LOST, 0))
            if trial.state.name != "FAIL" or deaths[key] >= MOST_DEATHS:
                known[key] = trial
        return known, running

    def _requeue_lost(self) -> None:
        for trial in self._in_state("RUNNING"):
            if not self._alive(trial):
                self.requeue(trial.number)

    def requeue(self, number: int, blame: bool = True) -> None:
        """The training ended without a result: its settings wait for the next worker, unless they killed too many."""
        trial = next(trial for trial in self._in_state("RUNNING") if trial.number == number)
        if claim := trial.user_attrs.get(CLAIM):
            share = (1.0 if claim.get("call", "") == self.study.call else DEATH_WITH_CALL) if blame else 0.0
            deaths = [one.user_attrs for one in self._in_state("FAIL") if LOST in one.user_attrs]
            before = sum(float(death[LOST]) for death in deaths if death[CLAIM]["settings"] == claim["settings"])
            if before + share < MOST_DEATHS:
                self._study.enqueue_trial(trial.params)  # first: what is queued twice is trained once all the same
            if blame:
                self._rdb.set_trial_user_attr(trial._trial_id, LOST, share)
        elif waited := trial.system_attrs.get("fixed_params"):  # taken from the queue, and gone before it was claimed
            self._study.enqueue_trial(waited)
        self.tell(number, "FAIL")

    def _alive(self, trial: optuna.trial.FrozenTrial) -> bool:
        started = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
        return self.locks.alive(trial.user_attrs.get(CLAIM), trial.user_attrs.get("seen", started))

    # ------------------------------------------------------------------ what became of it

    def counts(self) -> tuple[int, int]:
        """Different settings that are known, and trainings under way."""
        with self.locks.turn():
            self._requeue_lost()
            known, running = self._known_and_running()
            return len(known), len(running)

    def trials(self) -> list[Trial]:
        """All but those that wait."""
        every = self._in_state("COMPLETE", "PRUNED", "FAIL", "RUNNING")
        of_twins = {trial.number: trial.user_attrs.get(OUTCOME, {}).get("metrics", {}) for trial in every}
        return [_record(trial, self.study.goal, of_twins) for trial in every]

    def write(self) -> list[Trial]:
        """All trials into `trials.jsonl`, for whoever has no Optuna at hand."""
        with self.locks.turn():
            trials = self.trials()
            lines = "".join(json_text(asdict(trial), indent=None) + "\n" for trial in trials)
            write_file(self.study.folder / TRIAL_LINES, lines, "make room and call again")
        return trials

    def importance(self) -> dict[str, float] | None:
        """Share of each setting in what distinguishes good trials (PED-ANOVA); None where there are too few."""
        if len(self._in_state("COMPLETE")) < 2 * STARTUP or len(self.study.goal.metrics) > 1:
            return None
        evaluator = optuna.importance.PedAnovaImportanceEvaluator
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some versions call it an experiment
            try:
                return dict(optuna.importance.get_param_importances(self._study, evaluator=evaluator()))
            except (ValueError, RuntimeError):  # all trials alike
                return None

    # ------------------------------------------------------------------ Optuna's names for things

    def _in_state(self, *names: str) -> Sequence[optuna.trial.FrozenTrial]:
        states = tuple(optuna.trial.TrialState[name] for name in names)
        try:
            found: Sequence[optuna.trial.FrozenTrial] = self._study.get_trials(deepcopy=False, states=states)
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:  # rows that Optuna cannot read
            raise unusable(error, self.study.storage, self.study.folder / STORAGE) from None
        for trial in found:
            _check_attributes(self.study, trial)
        return found

    def tell(self, number: int, state: str, values: Sequence[float] | None = None) -> None:
        """How a trial ended, unless that was told before."""
        self._study.tell(number, values, state=optuna.trial.TrialState[state], skip_if_finished=True)


class Claim:
    """A trial that is this worker's to train."""

    def __init__(self, store: TrialStore, trial: optuna.Trial, settings: dict[str, Any]) -> None:
        self.number = trial.number
        self.settings = settings
        self._store, self._trial = store, trial
        self._taken = optuna.exceptions.UpdateFinishedTrialError
        self._ended = threading.Event()
        if store.locks.needs_heartbeat:
            threading.Thread(target=self._heartbeat, daemon=True).start()

    def should_stop(self, epoch: int, best: float) -> bool:
        """Tell the best recall so far; whether the median of the others of its learning rate was better.

        Also where others gave this worker up for lost, a suspended machine's perhaps: the trial is somebody else's now.
        """
        try:
            self._trial.report(best, epoch)
        except self._taken:
            return True
        return self._trial.should_prune()

    def end(self, state: str, metrics: dict[str, float] | None = None, **kept: Any) -> None:
        """The training is over; what is kept of it goes to the storage before the state, so that no state lies."""
        self._ended.set()
        with suppress(self._taken):
            self._trial.set_user_attr(OUTCOME, kept | ({} if metrics is None else {"metrics": metrics}))
        if metrics is None:
            self._store.tell(self.number, state)
            return
        others = [trial.metrics for trial in self._store.trials() if trial.state == "complete" and trial.metrics]
        self._store.tell(self.number, state, self._store.study.goal.told(metrics, others))

    def release(self) -> None:
        """Somebody asked to stop: the settings wait for the next worker."""
        self._ended.set()
        with self._store.locks.turn():
            self._store.requeue(self.number, blame=False)

    def _heartbeat(self) -> None:
        while not self._ended.wait(HEARTBEAT):
            with suppress(Exception):  # no sign of life is no reason to end the training; the next one may get through
                self._trial.set_user_attr("seen", time.time())


def key_of(settings: dict[str, Any]) -> str:
    """The same for the same settings."""
    return json.dumps(settings, sort_keys=True)


def _distribution(tried: Dimension) -> optuna.distributions.BaseDistribution:
    if isinstance(tried, tuple):
        return optuna.distributions.CategoricalDistribution(tried)
    if tried.whole:
        return optuna.distributions.IntDistribution(int(tried.low), int(tried.high), log=tried.log)
    return optuna.distributions.FloatDistribution(tried.low, tried.high, log=tried.log)


def storage_in_words(study: Study, opening: bool = False) -> AbstractContextManager[None]:
    """What is wrong with a study's storage, in one sentence."""
    return in_words(study.storage, study.folder / STORAGE, opening)


def _check_attributes(study: Study, trial: optuna.trial.FrozenTrial) -> None:
    """What we keep with a trial is as we keep it; the file may be a stranger's."""
    kept = trial.user_attrs
    claim, outcome = kept.get(CLAIM, {}), kept.get(OUTCOME, {})
    sound = isinstance(claim, dict) and isinstance(outcome, dict)
    if sound and claim:
        texts = [claim.get("host"), claim.get("beacon")]
        sound = isinstance(claim.get("settings"), dict) and all(isinstance(text, str) for text in texts)
    if sound:
        curve = outcome.get("curve", [])
        numbers = [outcome.get("seconds"), kept.get(LOST), kept.get("seen")]
        numbers += curve if isinstance(curve, list) else ["none"]
        measured = outcome.get("metrics", {})
        numbers += measured.values() if isinstance(measured, dict) else ["none"]
        sound = all(number is None or isinstance(number, int | float) for number in numbers)
    if not sound:
        raise unusable(ValueError(f"trial {trial.number} is damaged"), study.storage, study.folder / STORAGE)


def _record(trial: optuna.trial.FrozenTrial, goal: TuningGoal, of_twins: dict[int, dict[str, float]]) -> Trial:
    kept = trial.user_attrs
    outcome = kept.get(OUTCOME, {})
    state = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "lost", "RUNNING": "running"}[trial.state.name]
    if "diverged" in outcome:
        state = "diverged"
    if SAME_AS in kept:
        state = "repeated"
    curve = outcome.get("curve", [])
    metrics, value = outcome.get("metrics") or of_twins.get(kept.get(SAME_AS, -1), {}), max(curve, default=None)
    if trial.state.name == "COMPLETE":
        if not metrics:  # of before they were kept
            metrics = dict(zip(goal.metrics, trial.values or (), strict=False))
        value = metrics.get(goal.metrics[0])
    return Trial(
        number=trial.number,
        state=state,
        settings=kept.get(CLAIM, {}).get("settings", {}),
        value=value,
        seconds=outcome.get("seconds"),
        best_epoch=outcome.get("best_epoch"),
        curve=curve,
        same_as=kept.get(SAME_AS),
        diverged=outcome.get("diverged"),
        metrics=metrics if trial.state.name == "COMPLETE" else {},
    )
