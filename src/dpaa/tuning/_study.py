"""An Optuna study: where its trials are stored, how hyperparameters are drawn, and how a trial is trained.

Optuna keeps the trials and, in a shared storage, a heartbeat of each that is trained.  One lock per storage
(`Study._turn`) lets one worker at a time draw, so that hyperparameters are trained once and no more of them than
wanted, whoever works on the study.  Those of a lost trial (killed, interrupted) are drawn again.
"""

import json
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dpaa._io import check_within, locked, write_file
from dpaa._machine import one_thread
from dpaa._text import hide_secrets, json_text, without_secrets
from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.errors import DivergedError, InputError, MissingExtraError, reason
from dpaa.methods import find_method
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import Pretrained, needed_layers
from dpaa.runs.fit import Callbacks, fit_into, fit_method, make_method, train_or_reuse
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
warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
STORAGE, TRIAL_LINES = "study.sqlite", "trials.jsonl"
HEARTBEAT, GRACE = 20, 120
"""Seconds between two heartbeats of a trial, and without one until its worker counts as gone."""
STARTUP = 5
"""Trials drawn at random before the sampler learns from them, and finished ones before any is pruned."""
PRUNE_EVERY = 10
"""Epochs between two decisions whether to prune."""
SIMILAR_RATES = 2.0
"""Learning rates up to this factor apart are compared."""
SETTINGS, OUTCOME = "settings", "outcome"
"""Attributes of an Optuna trial: what was drawn, and what came of it."""
ACTIVE = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)


class _SameRatePruner(optuna.pruners.MedianPruner):
    """Optuna's median rule among trials of about one learning rate.

    A small learning rate is slow at first, whatever it comes to in the end: compared with large ones after a few
    epochs, nearly all of its trials would be pruned.
    """

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        def similar(other: FrozenTrial) -> bool:
            rates = [float(t.params["learning_rate"]) for t in (trial, other) if "learning_rate" in t.params]
            return len(rates) != 1 and (not rates or max(rates) <= SIMILAR_RATES * min(rates))

        compared = optuna.create_study(direction="maximize")  # in memory
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        compared.add_trials([other for other in complete if similar(other)])
        return super().prune(compared, trial)


@dataclass(frozen=True)
class Study:
    """The trials of a study in one process, which reads, samples and trains them; each one opens the storage itself.

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
    fixed: dict[str, Any]
    space: Space
    first: dict[str, Any]
    listed: bool
    wanted: int
    seed: int
    prune_after: int
    goal: TuningGoal
    storage: str | None = field(repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    @cached_property
    def _url(self) -> URL:
        """Where trials are stored; refused unless workers can take turns there: a file of SQLite or PostgreSQL."""
        if self.storage is None:
            file = check_within(self.folder / STORAGE, self.folder).resolve()
            return URL.create("sqlite", database=str(file), query={"timeout": "100"})
        url = make_url(self.storage)
        if url.get_backend_name() == "postgresql":
            return url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
            raise ArgumentError("it is neither a file of SQLite nor PostgreSQL")
        return url

    @cached_property
    def _optuna(self) -> optuna.Study:
        with self._turn():  # two first calls would both create the tables
            storage = optuna.storages.RDBStorage(
                # Optuna fills in a version where there are braces.
                self._url.render_as_string(hide_password=False).replace("{", "{{").replace("}", "}}"),
                # No pool: a connection must not be shared with a process that was started meanwhile.
                engine_kwargs={"poolclass": NullPool},
                heartbeat_interval=HEARTBEAT if self.storage else None,  # a folder is held by one call
                grace_period=GRACE,
            )
            return optuna.create_study(
                storage=storage,
                study_name=self.name,
                direction="maximize",
                load_if_exists=True,
                pruner=_SameRatePruner(STARTUP, n_warmup_steps=self.prune_after),
            )

    @contextmanager
    def storage_errors(self) -> Iterator[None]:
        """Turn what is wrong with the storage (not there, damaged, full) into one sentence without secrets."""
        try:
            with warnings.catch_warnings(action="ignore", category=optuna.exceptions.ExperimentalWarning):
                yield
        except (SQLAlchemyError, optuna.exceptions.StorageInternalError, ImportError, OSError) as error:
            if isinstance(error, ImportError):
                raise MissingExtraError("a storage on PostgreSQL", "sql") from None
            why, shown = reason(error.__cause__ or error), str(self.folder / STORAGE)
            if self.storage is not None:
                shown = without_secrets(self.storage) if "://" in self.storage else "that was given"
                why = hide_secrets(why, self.storage) if "://" in self.storage else "it is not a URL"
            raise InputError(
                f"cannot use the storage {shown} ({why}); restore it, or name another such as sqlite:///study.db"
            ) from None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the lock of the storage: a lock file beside an SQLite file, an advisory lock of PostgreSQL."""
        if self._url.get_backend_name() == "sqlite":
            file = Path(str(self._url.database)).absolute()
            with locked(file.parent / f".{file.name}.lock", wait=True):
                yield
            return
        with create_engine(self._url, poolclass=NullPool).begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('dpaa tune'))"))
            yield

    # ------------------------------------------------------------------ the trials

    def trials(self) -> list[Trial]:
        """All trials but those that wait, or whose hyperparameters had been tried before."""
        shown = self._optuna.get_trials(states=(*ACTIVE, TrialState.FAIL))
        ended = (TrialState.COMPLETE, TrialState.PRUNED)
        return [_record(trial, self.goal) for trial in shown if OUTCOME in trial.user_attrs or trial.state not in ended]

    def write(self) -> list[Trial]:
        """All trials, which are also written to `trials.jsonl`."""
        trials = self.trials()
        lines = "".join(json_text(asdict(trial), indent=None) + "\n" for trial in trials)
        write_file(self.folder / TRIAL_LINES, lines, "free some space and call again")
        return trials

    def release_lost(self) -> None:
        """Mark trials of dead workers as lost, so that their hyperparameters are tried again."""
        if self.storage is not None:
            optuna.storages.fail_stale_trials(self._optuna)
            return
        for trial in self._optuna.get_trials(states=(TrialState.RUNNING,)):  # nobody else has the folder
            self._optuna.tell(trial.number, state=TrialState.FAIL)

    def _prepare_draw(self) -> bool:
        """Queue the next point or seed the sampler; False if as many as wanted are tried or active.

        A draw depends on the seed and on the trials so far alone: an interrupted study continues as it would have.
        """
        drawn = [_key(trial) for trial in self._optuna.get_trials(states=ACTIVE)]
        if len(set(drawn)) >= self.wanted:
            return False
        repeats = len(drawn) - len(set(drawn))
        failed = self._optuna.get_trials(states=(TrialState.FAIL,))
        queue = [trial.params for trial in failed if SETTINGS in trial.user_attrs and _key(trial) not in drawn]
        if (self.listed or repeats) and (size(self.space) or SMALL + 1) <= SMALL:
            every = points(self.space, self.seed, self.first)
            queue += [point for point in every if json.dumps(point) not in drawn]
        if queue or not drawn:
            self._optuna.enqueue_trial([*queue, self.first][0])
        seed = int(np.random.SeedSequence([self.seed, len(set(drawn)), repeats]).generate_state(1)[0])
        # A new sampler for each draw, whose seed is a function of what was tried: who draws does not matter.
        self._optuna.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        return True

    def next_trial(self, data: Dataset) -> int | None:
        """Sample hyperparameters that were not tried yet, and train with them.

        Parameters
        ----------
        data : with a validation split

        Returns
        -------
        The trial's number; None if as many as wanted are tried or active, or a stop is requested
        """
        study, numbers = self._optuna, list[int]()  # opened before the turn, which opening takes too
        while not numbers and not stop_requested():
            with ExitStack() as turn, one_thread():
                turn.enter_context(self._turn())
                if not self._prepare_draw():
                    return None

                def objective(trial: optuna.Trial, turn: ExitStack = turn) -> float:
                    drawn = {name: _suggest(trial, name, tried) for name, tried in self.space.items()}
                    known = [other.user_attrs.get(SETTINGS) for other in self._optuna.get_trials(states=ACTIVE)]
                    trial.set_user_attr(SETTINGS, drawn)
                    if drawn in known:
                        raise optuna.TrialPruned
                    # Others may draw as soon as this draw is stored; to train takes longer than
                    # all their draws.
                    turn.close()
                    numbers.append(trial.number)
                    return self._train(trial, drawn, data)

                study.optimize(objective, n_trials=1)
        return numbers[0] if numbers else None

    # ------------------------------------------------------------------ trainings

    def _settings(self, drawn: dict[str, Any], seed: int) -> dict[str, Any]:
        """All hyperparameters of one training: on one thread, for the workers share the cores."""
        trained = issubclass(find_method(self.method), GraphMethod)
        return self.fixed | drawn | {"seed": seed} | ({"threads": 1} if trained else {})

    def _train(self, trial: optuna.Trial, drawn: dict[str, Any], data: Dataset) -> float:
        """Train in memory, without files and without the test split."""
        began, pruned = time.perf_counter(), False
        blind = replace(data, test=Pairs.of([], []))
        curve: list[float] = []
        outcome: dict[str, Any] = {"curve": curve}

        def on_epoch(report: EpochReport) -> None:
            # The first epoch is always validated; where a later one is not, nothing better is known.
            curve.append(round(report.valid[MONITOR], 6) if report.valid else curve[-1])
            since = report.epoch - self.prune_after
            if self.prune_after and since >= 0 and since % PRUNE_EVERY == 0:
                trial.report(max(curve), report.epoch)
                if trial.should_prune():
                    raise optuna.TrialPruned

        try:
            method = make_method(blind, self.method, self._settings(drawn, self.seed))
            callbacks = Callbacks(on_epoch=on_epoch, stop_requested=stop_requested)
            model = fit_method(method, blind, callbacks, pretrained=self._pretrained(method, data), dial=False)
            outcome["metrics"] = self.goal.measure(model.method, blind)
            outcome["best_epoch"] = model.entry("training").get("best_epoch")
            outcome["lookups"] = model.manifest.get("lookups") or 1
        except optuna.TrialPruned:
            pruned = True
        except DivergedError as error:
            pruned, outcome["diverged"] = True, str(error)
        # Before the state, so that no finished trial lacks its outcome.
        trial.set_user_attr(OUTCOME, outcome | {"seconds": round(time.perf_counter() - began, 3)})
        if pruned:
            raise optuna.TrialPruned
        return self.goal.merit(outcome["metrics"], [trial.metrics for trial in self.trials() if trial.metrics])

    def retrain(self, data: Dataset, trial: Trial, seed: int) -> dict[str, Any]:
        """Train the hyperparameters of a trial with another seed into a run folder, unless that is done.

        Parameters
        ----------
        data : of the study
        trial : whose hyperparameters
        seed : of the training

        Returns
        -------
        Seed, folder and metrics on validation, for `--json`
        """
        folder = check_within(self.folder / "runs" / f"trial-{trial.number}-seed-{seed}", self.folder)
        with one_thread():
            method = make_method(data, self.method, self._settings(trial.settings, seed))
            how: dict[str, Any] = {"pretrained": self._pretrained(method, data), "trials": self.wanted}
            callbacks = Callbacks(stop_requested=stop_requested)
            model = fit_into(folder, data, method, resume=folder.exists(), callbacks=callbacks, **how)
        metrics = self.goal.measure(model.method, data)
        return {"seed": seed, "folder": str(folder)} | {f"valid_{key}": value for key, value in metrics.items()}

    def _pretrained(self, method: Method, data: Dataset) -> Pretrained | None:
        """For methods that start from a pre-trained model: LightGCN with the hyperparameters that are not searched.

        Searched ones (the learning rate, say) have their defaults in it: one model for all trials of a seed, as the
        weights that are compared must not come from models of different quality.
        """
        layers = needed_layers(method)
        if layers is None:
            return None
        settings = type(method)(**self._settings({}, method.seed))
        assert isinstance(settings, GraphMethod)
        return train_or_reuse(data, settings, layers, self.folder, Callbacks(stop_requested=stop_requested))


def _key(trial: FrozenTrial) -> str:
    return json.dumps(trial.user_attrs.get(SETTINGS, {}))


def _suggest(trial: optuna.Trial, name: str, tried: Dimension) -> Any:
    if isinstance(tried, tuple):
        return trial.suggest_categorical(name, tried)
    if tried.whole:
        return trial.suggest_int(name, int(tried.low), int(tried.high), log=tried.log)
    return tried.neat(trial.suggest_float(name, tried.low, tried.high, log=tried.log))


def _record(frozen: FrozenTrial, goal: TuningGoal) -> Trial:
    """Convert a trial of Optuna."""
    outcome = frozen.user_attrs.get(OUTCOME, {})
    value = outcome.get("metrics", {}).get(goal.key, max(outcome.get("curve", ()), default=None))
    state = "diverged" if "diverged" in outcome else {"FAIL": "lost"}.get(frozen.state.name, frozen.state.name.lower())
    return Trial(frozen.number, state, frozen.user_attrs.get(SETTINGS, {}), value, **outcome)
