"""An Optuna study: where its trials are stored, how hyperparameters are drawn, and how a trial is trained.

Optuna keeps the trials, records a heartbeat while one is trained and queues it again when the heartbeat stops.  One
lock per storage (`TrialStorage.turn`) lets one worker at a time draw, so that hyperparameters are trained once and no
more of them than wanted, whoever works on the study.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from dpaa._io import check_regular, check_within, locked, write_file
from dpaa._machine import one_thread
from dpaa._text import hide_secrets, json_text, without_secrets
from dpaa.data.dataset import Dataset, read_dataset
from dpaa.data.pairs import Pairs
from dpaa.errors import DivergedError, InputError, MissingExtraError, reason
from dpaa.methods import find_method
from dpaa.methods.base import Method, Randomised, attach
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import Pretrained, needed_layers
from dpaa.runs.fit import Callbacks, fit_into, fit_method, make_method
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model
from dpaa.runs.pretrained import train_or_reuse
from dpaa.training.trainer import MONITOR, EpochReport
from dpaa.tuning.processes import stop_requested
from dpaa.tuning.space import SMALL, Dimension, Space, points, size
from dpaa.tuning.trial import Trial, TuningGoal

try:
    import optuna
    from optuna.trial import FrozenTrial, TrialState
    from sqlalchemy import create_engine, text
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError
    from sqlalchemy.pool import NullPool
except ImportError:
    raise MissingExtraError("tuning", "tune") from None

optuna.logging.set_verbosity(optuna.logging.ERROR)
STORAGE, TRIAL_LINES = "study.sqlite", "trials.jsonl"
HEARTBEAT, GRACE = 20, 120
"""Seconds between two heartbeats of a trial, and without one until its worker counts as gone."""
RETRIES = 5
"""Times that a trial is queued again whose worker was gone; then its hyperparameters are given up."""
STARTUP = 5
"""Trials drawn at random before the sampler learns from them, and finished ones before any is pruned."""
REPEATS = 20
"""Repeated draws in a row after which the sampler no longer decides."""
PRUNE_EVERY = 10
"""Epochs between two questions whether to prune."""
SIMILAR_RATES = 2.0
"""Learning rates up to this factor apart are compared."""
SETTINGS, OUTCOME, SAME_AS = "settings", "outcome", "same_as"
"""Attributes of an Optuna trial: what was drawn, what came of it, the number of the trial that it repeats."""
POSTGRESQL = {
    "connect_timeout": 10,
    # A machine that is gone loses its locks within a minute and a half, not two hours.
    "options": "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=15 -c tcp_keepalives_count=4",
}
"""What connections to a server ask for, unless the URL does."""
REMEDY = "give an Optuna storage URL such as sqlite:///study.db"
_TRIAL = TypeAdapter(Trial)


@dataclass(frozen=True)
class StudyPlan:
    """What the workers of a study are to do: plain data, sent to other processes.

    Parameters
    ----------
    folder : of the study
    name : in the storage, which may hold other studies; derived from all that its trials have in common
    method : by which another process finds the class
    fixed : hyperparameters that are not searched and differ from the defaults
    space : those that are
    first : the point that is tried first
    listed : whether points are taken from a list instead of being drawn
    wanted : number of different hyperparameters to try
    seed : of the search and of every trial
    prune_after : epochs before a trial may be pruned; 0 prunes none
    goal : what is searched for
    storage : a URL, which may hold a password; None keeps the trials in the folder
    """

    folder: Path
    name: str
    method: str
    fixed: dict[str, Any] = field(hash=False)
    space: Space = field(hash=False)
    first: dict[str, Any] = field(hash=False)
    listed: bool
    wanted: int
    seed: int
    prune_after: int
    goal: TuningGoal
    storage: str | None = field(repr=False)

    def settings(self, drawn: dict[str, Any], seed: int) -> dict[str, Any]:
        """All hyperparameters of one training: on one thread, for the workers share the cores."""
        trained = issubclass(find_method(self.method), GraphMethod)
        return self.fixed | drawn | {"seed": seed} | ({"threads": 1} if trained else {})

    def run_folder(self, number: int, seed: int) -> Path:
        """Where a trial's hyperparameters are trained again with a seed."""
        return check_within(self.folder / "runs" / f"trial-{number}-seed-{seed}", self.folder)


# ---------------------------------------------------------------------- where the trials are


def storage_url(plan: StudyPlan) -> URL:
    """The URL of a study's storage; refused unless workers can take turns there: SQLite or PostgreSQL."""
    if plan.storage is None:
        file = plan.folder / STORAGE
        if file.is_symlink():
            raise InputError(f"{file} is a link to somewhere else; remove it and call again")
        if file.exists():
            check_regular(file)
        return URL.create("sqlite", database=str(file.resolve()))
    shown = without_secrets(plan.storage)
    try:
        url = make_url(plan.storage)
    except (ArgumentError, ValueError):  # their messages may quote a secret
        readable = "://" in plan.storage or ":" not in plan.storage  # else a part of it may be a secret
        shown = shown if readable else "that was given"
        raise InputError(f"cannot open the storage {shown} (it cannot be read as a URL); {REMEDY}") from None
    if url.drivername.partition("+")[0] in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        raise InputError(f"cannot open the storage {shown} (it is neither a file of SQLite nor PostgreSQL); {REMEDY}")
    return url


@contextmanager
def storage_errors(plan: StudyPlan, opening: bool = False) -> Iterator[None]:
    """Turn what is wrong with a study's storage (damaged, full, gone) into one sentence without secrets."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if opening and isinstance(error, ImportError):
            raise MissingExtraError("a storage on PostgreSQL", "sql") from None
        storage_error = isinstance(error, optuna.exceptions.StorageInternalError | SQLAlchemyError)
        if not opening and not storage_error:
            raise
        why = reason(error.__cause__ or error)
        if plan.storage is not None:
            shown, why = without_secrets(plan.storage), hide_secrets(why, plan.storage)
            if opening:
                remedy = "start the server, or correct the URL" if "postgres" in plan.storage[:8] else REMEDY
                raise InputError(f"cannot open the storage {shown} ({why}); {remedy}") from None
            raise _unusable(shown, why) from None
        raise _unusable(str(plan.folder / STORAGE), why) from None


def _unusable(shown: str, why: str) -> InputError:
    return InputError(f"{shown} is not a usable Optuna storage ({why}); make room, restore it or choose another folder")


class SameRatePruner(optuna.pruners.MedianPruner):
    """Optuna's median rule among trials of about one learning rate.

    A small learning rate is slow at first, whatever it comes to in the end: compared with large ones after a few
    epochs, nearly all of its trials would be pruned.
    """

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether the trial's best value so far is below the median of the others' at the same epoch."""

        def similar(other: FrozenTrial) -> bool:
            rates = [float(one.params["learning_rate"]) for one in (trial, other) if "learning_rate" in one.params]
            return len(rates) != 1 and (not rates or max(rates) <= SIMILAR_RATES * min(rates))

        compared = optuna.create_study(direction="maximize")  # in memory
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        compared.add_trials([other for other in complete if similar(other)])
        return super().prune(compared, trial)


class TrialStorage:
    """The trials of a study, opened by one process.

    Parameters
    ----------
    plan : of the study
    """

    def __init__(self, plan: StudyPlan) -> None:
        self.plan, self._url = plan, storage_url(plan)
        own = {"timeout": 100} if self._url.get_backend_name() == "sqlite" else POSTGRESQL
        self._connect_args = {name: value for name, value in own.items() if name not in self._url.query}
        self._points = points(plan.space, plan.seed, plan.first) if (size(plan.space) or SMALL + 1) <= SMALL else []
        self._retry = _quietly(optuna.storages.RetryHeartbeatStaleTrialCallback, max_retry=RETRIES)
        with storage_errors(plan, opening=True), self.turn():  # two first calls would both create the tables
            self._rdb = _quietly(
                optuna.storages.RDBStorage,
                # Optuna fills in a version where there are braces.
                self._url.render_as_string(hide_password=False).replace("{", "{{").replace("}", "}}"),
                engine_kwargs={"connect_args": self._connect_args, "pool_pre_ping": True},
                heartbeat_interval=HEARTBEAT,
                grace_period=GRACE,
                heartbeat_stale_trial_callback=self._retry,
            )
            names = [] if plan.storage else optuna.get_all_study_names(self._rdb)
            if names and plan.name not in names:
                file = plan.folder / STORAGE
                raise InputError(f"{file} belongs to another study; restore it or choose another folder with --out")
            self.study = optuna.create_study(
                storage=self._rdb,
                study_name=plan.name,
                directions=["maximize"] * len(plan.goal.metrics),
                load_if_exists=True,
                pruner=SameRatePruner(STARTUP, n_warmup_steps=plan.prune_after),
            )

    def close(self) -> None:
        """Disconnect."""
        self._rdb.remove_session()
        self._rdb.engine.dispose()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock of the storage: a lock file beside an SQLite file, an advisory lock of PostgreSQL."""
        if self._url.get_backend_name() == "sqlite":
            file = Path(str(self._url.database)).absolute()
            with locked(file.parent / f".{file.name}.lock", wait=True):
                yield
            return
        with create_engine(self._url, poolclass=NullPool, connect_args=self._connect_args).begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('dpaa tune'))"))
            yield

    def _in_state(self, *states: TrialState) -> list[FrozenTrial]:
        return self.study.get_trials(states=states)

    def _records(self) -> list[tuple[FrozenTrial, Trial]]:
        shown = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING)
        try:
            return [(frozen, _record(frozen, self.plan.goal)) for frozen in self._in_state(*shown)]
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:  # not as we write them
            where = without_secrets(self.plan.storage) if self.plan.storage else str(self.plan.folder / STORAGE)
            raise _unusable(where, reason(error)) from None

    def trials(self) -> list[Trial]:
        """All trials but those that wait."""
        return [trial for _, trial in self._records()]

    def write(self) -> list[Trial]:
        """All trials, which are also written to `trials.jsonl`."""
        trials = self.trials()
        lines = "".join(json_text(asdict(trial), indent=None) + "\n" for trial in trials)
        write_file(self.plan.folder / TRIAL_LINES, lines, "make room and call again")
        return trials

    def taken(self) -> tuple[dict[str, FrozenTrial], dict[str, FrozenTrial]]:
        """Trials by their hyperparameters: those that need no training (done or given up), and those under way."""
        done, running = {}, {}
        for frozen, trial in self._records():
            if trial.state == "repeated" or not trial.settings:
                continue
            key = _key(trial.settings)
            if trial.state == "running":
                running[key] = frozen
            elif trial.state != "lost" or len(frozen.system_attrs.get("retry_history", ())) >= RETRIES:
                done[key] = frozen
        return done, running

    def requeue_lost(self, alone: bool) -> None:
        """Queue again the trials whose workers are gone.

        Parameters
        ----------
        alone : whether no other process can be at work on the study, so that no heartbeat need be waited for
        """
        with self.turn():
            self._requeue_lost(alone)

    def _requeue_lost(self, alone: bool = False) -> None:
        for trial in self._in_state(TrialState.RUNNING):
            if alone or SETTINGS not in trial.user_attrs:  # who draws has the turn, which is ours
                self._retry(self.study, trial)  # first: what is queued twice is trained once all the same
                self.study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
        _quietly(optuna.storages.fail_stale_trials, self.study)

    def prepare_draw(self) -> bool:
        """Queue the next point or seed the sampler, while holding the turn.

        A draw depends on the seed and on the trials so far alone: an interrupted study continues as it would have.

        Returns
        -------
        False if as many hyperparameters as wanted are tried or under way
        """
        self._requeue_lost()
        done, running = self.taken()
        tried = done.keys() | running.keys()
        if len(tried) >= self.plan.wanted:
            return False
        trials = self.trials()
        repeats = sum(1 for _ in takewhile(lambda trial: trial.state == "repeated", reversed(trials)))
        untried = (point for point in self._points if _key(point) not in tried)
        if not self._in_state(TrialState.WAITING):
            if (self.plan.listed or repeats >= REPEATS) and (point := next(untried, None)):
                self.study.enqueue_trial(point)
            elif not trials:
                self.study.enqueue_trial(self.plan.first)
        seed = int(np.random.SeedSequence([self.plan.seed, len(tried), repeats]).generate_state(1)[0])
        tpe = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        self.study.sampler = tpe if repeats < REPEATS else optuna.samplers.RandomSampler(seed=seed)
        return True

    def draw(self, trial: optuna.Trial) -> dict[str, Any] | list[float]:
        """Hyperparameters of a trial; of those that were tried before, the objective values.

        Those of a trial that is under way or given up raise `_DroppedError`.
        """
        settings = {name: _suggest(trial, name, tried) for name, tried in self.plan.space.items()}
        done, running = self.taken()
        trial.set_user_attr(SETTINGS, settings)
        twin = (done | running).get(_key(settings))
        if twin is None or twin.number == trial.number:
            return settings
        trial.set_user_attr(SAME_AS, twin.number)
        if twin.state is TrialState.PRUNED:
            raise optuna.TrialPruned
        if twin.state is not TrialState.COMPLETE:
            raise _DroppedError
        trial.set_user_attr(OUTCOME, {"metrics": twin.user_attrs[OUTCOME]["metrics"]})
        return list(twin.values)

    def importance(self) -> dict[str, float] | None:
        """Share of each hyperparameter in what distinguishes good trials (PED-ANOVA); None where there are too few."""
        if len(self._in_state(TrialState.COMPLETE)) < 2 * STARTUP or len(self.plan.goal.metrics) > 1:
            return None
        try:
            evaluator = _quietly(optuna.importance.PedAnovaImportanceEvaluator)
            return dict(_quietly(optuna.importance.get_param_importances, self.study, evaluator=evaluator))
        except (ValueError, RuntimeError):  # all trials alike
            return None


class _DroppedError(Exception):
    """The hyperparameters are another worker's, or were given up."""


def _quietly(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function of Optuna's that warns of being experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def _key(settings: dict[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)


def _suggest(trial: optuna.Trial, name: str, tried: Dimension) -> Any:
    if isinstance(tried, tuple):
        return trial.suggest_categorical(name, tried)
    if tried.whole:
        return trial.suggest_int(name, int(tried.low), int(tried.high), log=tried.log)
    return tried.neat(trial.suggest_float(name, tried.low, tried.high, log=tried.log))


def _record(frozen: FrozenTrial, goal: TuningGoal) -> Trial:
    """A trial as it is shown; pydantic refuses attributes of other types, as the file may be untrusted."""
    attributes, complete = frozen.user_attrs, frozen.state is TrialState.COMPLETE
    outcome = attributes.get(OUTCOME, {}) if frozen.state.is_finished() else {}
    state = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "lost", "RUNNING": "running"}[frozen.state.name]
    if SAME_AS in attributes:
        state = "repeated"
    elif "diverged" in outcome:
        state = "diverged"
    value = outcome["metrics"][goal.metrics[0]] if complete else max(outcome.get("curve", ()), default=None)
    shown = {"number": frozen.number, "state": state, "value": value, "seconds": None}
    drawn = {"settings": attributes.get(SETTINGS, {}), "same_as": attributes.get(SAME_AS)}
    return _TRIAL.validate_python(outcome | shown | drawn | {"seconds": outcome.get("seconds")})


# ---------------------------------------------------------------------- who trains them


@dataclass
class Worker:
    """Trains trials in one process: in memory, without files; graph and pre-trained model are made once.

    Parameters
    ----------
    plan : of the study
    data : its dataset
    storage : its trials
    say : receives lines for the user
    """

    plan: StudyPlan
    data: Dataset
    storage: TrialStorage
    say: Callable[[str], None] = lambda _line: None
    _first: Method | None = field(default=None, init=False)
    _pretrained: dict[tuple[int, int], Pretrained] = field(default_factory=dict, init=False)

    def next_trial(self) -> int | None:
        """Draw hyperparameters that were not tried yet, and train them.

        Returns
        -------
        The trial's number; None if as many as wanted are tried or under way, or a stop is requested
        """
        numbers: list[int] = []
        failed: list[bool] = []
        while not numbers and not stop_requested():
            with ExitStack() as turn, one_thread():
                turn.enter_context(self.storage.turn())
                if not self.storage.prepare_draw():
                    return None

                def objective(trial: optuna.Trial, turn: ExitStack = turn) -> Sequence[float]:
                    drawn = self.storage.draw(trial)
                    turn.close()
                    if isinstance(drawn, list):
                        return drawn
                    numbers.append(trial.number)
                    try:
                        return self._train(trial, drawn)
                    except (optuna.TrialPruned, optuna.exceptions.UpdateFinishedTrialError):
                        raise
                    except (Exception, KeyboardInterrupt):  # the hyperparameters wait for the next worker
                        failed.append(True)
                        self.storage.study.enqueue_trial(trial.params)
                        raise

                try:
                    self.storage.study.optimize(objective, n_trials=1, catch=(_DroppedError,))
                except ValueError:
                    if failed or not numbers:
                        raise
                    # Else Optuna refuses a result: without a heartbeat (a suspended machine), the trial became another
                    # worker's.
        return numbers[0] if numbers else None

    def _train(self, trial: optuna.Trial, drawn: dict[str, Any]) -> list[float]:
        began, pruned = time.perf_counter(), False
        plan = self.plan
        curve: list[float] = []
        outcome: dict[str, Any] = {"curve": curve}

        def on_epoch(report: EpochReport) -> None:
            # The first epoch is always validated; where a later one is not, nothing better is known.
            curve.append(round(report.valid[MONITOR], 6) if report.valid else curve[-1])
            since = report.epoch - plan.prune_after
            if plan.prune_after and since >= 0 and since % PRUNE_EVERY == 0:
                trial.report(max(curve), report.epoch)
                if trial.should_prune():
                    raise optuna.TrialPruned

        try:
            method = self._method(plan.settings(drawn, plan.seed))
            callbacks = Callbacks(on_epoch=on_epoch, stop_requested=stop_requested)
            pretrained = self._pretrained_for(method)
            model = fit_method(method, self._without_test, callbacks, pretrained=pretrained, dial=False)
            outcome["metrics"] = plan.goal.measure(model.method, self._without_test)
            outcome["best_epoch"] = (model.manifest.get("training") or {}).get("best_epoch")
        except optuna.TrialPruned:
            pruned = True
        except DivergedError as error:
            pruned, outcome["diverged"] = True, str(error)
        # Before the state, so that no finished trial lacks its outcome.
        trial.set_user_attr(OUTCOME, outcome | {"seconds": round(time.perf_counter() - began, 3)})
        if pruned:
            raise optuna.TrialPruned
        others = [one.metrics for one in self.storage.trials() if one.state == "complete"]
        return plan.goal.objective_values(outcome["metrics"], others)

    def retrain(self, settings: dict[str, Any], number: int, seed: int) -> None:
        """Train hyperparameters with another seed into a run folder, unless that is done.

        Parameters
        ----------
        settings : of the best trial
        number : of that trial
        seed : of the training
        """
        folder = self.plan.run_folder(number, seed)
        if RunFolder(folder).finished:
            RunFolder(folder).tidy()  # a process may have been killed in its last moment
            return
        with one_thread():
            method = self._method(self.plan.settings(settings, seed))
            how: dict[str, Any] = {"pretrained": self._pretrained_for(method), "trials": self.plan.wanted}
            callbacks = Callbacks(stop_requested=stop_requested)
            fit_into(folder, self.data, method, resume=folder.exists(), callbacks=callbacks, **how)

    def prepare(self) -> None:
        """Train the pre-trained model that all trials start from, if the method needs one."""
        with one_thread():
            self._pretrained_for(self._method(self.plan.settings({}, self.plan.seed)))

    @cached_property
    def _without_test(self) -> Dataset:
        return replace(self.data, test=Pairs.of([], []))

    def _method(self, settings: dict[str, Any]) -> Method:
        """The method on the one graph."""
        if self._first is None:
            self._first = make_method(self.data, self.plan.method, settings)
            return self._first
        kind = type(self._first)
        made: Method = attach(kind(**settings), self._first.graph)
        if isinstance(made, Randomised) and self.data.randomised is not None:
            made.take(self.data.randomised)
        return made

    def _pretrained_for(self, method: Method) -> Pretrained | None:
        """For methods that start from a pre-trained model: LightGCN with the hyperparameters that are not searched.

        Searched ones (the learning rate, say) have their defaults in it: one model for all trials of a seed, as the
        weights that are compared must not come from models of different quality.
        """
        seed, layers, kind = method.seed, needed_layers(method), type(method)
        if layers is None:
            return None
        if (seed, layers) not in self._pretrained:
            settings = kind(**self.plan.settings({}, seed))
            assert isinstance(settings, GraphMethod)
            model = train_or_reuse(self.data, settings, layers, self.plan.folder, self._train_plain)
            self._pretrained[seed, layers] = model
        return self._pretrained[seed, layers]

    def _train_plain(self, folder: Path | None, plain: GraphMethod) -> Model:
        assert folder is not None
        name = find_method(self.plan.method).name
        self.say(f"{name} starts from a pre-trained model: LightGCN is trained first and kept in {folder}")
        return fit_into(folder, self.data, plain, resume=folder.exists())


@lru_cache(maxsize=1)
def _worker_of(plan: StudyPlan, dataset: Path) -> Worker:
    return Worker(plan, read_dataset(dataset), TrialStorage(plan))


def next_trial(plan: StudyPlan, dataset: Path) -> int | None:
    """`Worker.next_trial` in a process of a pool."""
    with storage_errors(plan):
        return _worker_of(plan, dataset).next_trial()


def retrain(plan: StudyPlan, dataset: Path, settings: dict[str, Any], number: int, seed: int) -> None:
    """`Worker.retrain` in a process of a pool."""
    _worker_of(plan, dataset).retrain(settings, number, seed)
