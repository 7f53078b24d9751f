"""Trainings in MLflow or Weights & Biases: hyperparameters at the start, numbers of each epoch, results at the end.

Where to, and whether online, is set by those tools' own variables (`MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME`,
`WANDB_PROJECT`, `WANDB_MODE`) or by the fields here.  What goes wrong before the first epoch is an error; a tool that
fails later is reported once and not called again, for a training is worth more than its log.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, MissingExtraError, reason
from dpaa.methods.base import Method
from dpaa.runs.model import Model
from dpaa.runs.progress import Callbacks
from dpaa.training.trainer import EpochReport


class Tracker(ABC):
    """One training in one tool."""

    name: str

    @abstractmethod
    def begin(self, title: str, hyperparameters: Mapping[str, Any], about: Mapping[str, str]) -> None:
        """Open a run with these parameters and tags."""

    @abstractmethod
    def log(self, metrics: Mapping[str, float], epoch: int) -> None:
        """Log the numbers of an epoch."""

    @abstractmethod
    def end(self, summary: Mapping[str, float], finished: bool) -> None:
        """Log the results and close the run."""


@dataclass
class MLflow(Tracker):
    """MLflow, with `pip install 'dpaa[mlflow]'`; fields that are None are left to the tool."""

    experiment: str | None = None
    tracking_uri: str | None = None
    run_name: str | None = None
    name = "mlflow"
    _tool: Any = field(default=None, init=False, repr=False)

    def begin(self, title: str, hyperparameters: Mapping[str, Any], about: Mapping[str, str]) -> None:
        """Open a run; inside one that is open, a nested one."""
        try:
            import mlflow
        except ImportError:
            raise MissingExtraError("logging to MLflow", "mlflow") from None
        if self.tracking_uri is not None:
            mlflow.set_tracking_uri(self.tracking_uri)
        if self.experiment is not None:
            mlflow.set_experiment(self.experiment)
        mlflow.start_run(run_name=self.run_name or title, nested=mlflow.active_run() is not None, tags=dict(about))
        self._tool = mlflow
        mlflow.log_params(dict(hyperparameters))

    def log(self, metrics: Mapping[str, float], epoch: int) -> None:
        """Log the numbers of an epoch."""
        self._tool.log_metrics(dict(metrics), step=epoch)

    def end(self, summary: Mapping[str, float], finished: bool) -> None:
        """Log the results as metrics without an epoch, and close the run."""
        if summary:
            self._tool.log_metrics(dict(summary))
        self._tool.end_run("FINISHED" if finished else "KILLED")


@dataclass
class WandB(Tracker):
    """Weights & Biases, with `pip install 'dpaa[wandb]'`; fields that are None are left to the tool."""

    project: str | None = None
    run_name: str | None = None
    mode: str | None = None
    """`online`, `offline` or `disabled`."""
    name = "wandb"
    _run: Any = field(default=None, init=False, repr=False)

    def begin(self, title: str, hyperparameters: Mapping[str, Any], about: Mapping[str, str]) -> None:
        """Open a run whose configuration are the hyperparameters and tags."""
        try:
            import wandb
        except ImportError:
            raise MissingExtraError("logging to Weights & Biases", "wandb") from None
        mode: Any = self.mode
        config = {**hyperparameters, **about}
        self._run = wandb.init(project=self.project, name=self.run_name or title, config=config, mode=mode)

    def log(self, metrics: Mapping[str, float], epoch: int) -> None:
        """Log the numbers with their epoch: the tool's steps must not fall, epochs of a second part do."""
        self._run.log({**metrics, "epoch": epoch})

    def end(self, summary: Mapping[str, float], finished: bool) -> None:
        """Write the results into the run's summary, and close it."""
        self._run.summary.update(dict(summary))
        self._run.finish(exit_code=0 if finished else 1)


TRACKERS: dict[str, type[MLflow] | type[WandB]] = {"mlflow": MLflow, "wandb": WandB}
LogTo = str | Tracker | Sequence[str | Tracker] | None


def find_trackers(log_to: LogTo) -> list[Tracker]:
    """Trackers by name, or as they are."""
    trackers: list[Tracker] = []
    for one in [log_to] if isinstance(log_to, str | Tracker) else log_to or ():
        if not isinstance(one, Tracker) and one not in TRACKERS:
            raise InputError(f"there is no tracker {one!r}; log to {' or '.join(TRACKERS)}")
        trackers.append(one if isinstance(one, Tracker) else TRACKERS[one]())
    return trackers


@contextmanager
def tracked(
    log_to: LogTo, method: Method, data: Dataset, callbacks: Callbacks
) -> Iterator[tuple[Callbacks, Callable[[Model], Model]]]:
    """Log a training while the context is open.

    Parameters
    ----------
    log_to : names or trackers
    method, data : what is trained on what
    callbacks : called as well

    Returns
    -------
    callbacks that log, and a function that takes the fitted model, logs its results and returns it
    """
    logs = [_Log(one, callbacks.say, method) for one in find_trackers(log_to)]
    about = {"method": method.name, "dataset": data.name, "dataset_fingerprint": data.fingerprint}
    with ExitStack() as open_runs:
        for log in logs:
            log.begin(f"{method.name} on {data.name}", method.get_params(), about)
            open_runs.callback(log.end, {}, finished=False)  # of a training that was stopped or failed

        def finished(model: Model) -> Model:
            for log in logs:
                log.finish(model)
            return model

        logging = replace(
            callbacks,
            on_epoch=_each(callbacks.on_epoch, *(log.epoch for log in logs)),
            on_part=_each(callbacks.on_part, *(log.part for log in logs)),
            on_start=_each(callbacks.on_start, *(log.start for log in logs)),
        )
        yield logging, finished


def _each(*functions: Callable[..., None]) -> Callable[..., None]:
    def call(*args: Any) -> None:
        for function in functions:
            function(*args)

    return call


class _Log:
    """One tracker, until it fails or the training ends."""

    def __init__(self, tracker: Tracker, say: Callable[[str], None], method: Method) -> None:
        self._tracker, self._say, self._method = tracker, say, method
        self._prefix = ""  # names of the epochs' numbers, where they are those of a part
        self._parts: dict[int, str] = {}
        self._open = True

    def begin(self, title: str, hyperparameters: Mapping[str, Any], about: Mapping[str, str]) -> None:
        try:
            self._tracker.begin(title, hyperparameters, about)
        except InputError:
            raise
        except Exception as error:  # of a foreign tool, which may raise anything
            raise InputError(
                f"cannot log to {self._tracker.name} ({reason(error)}); correct its settings or leave --log-to out"
            ) from error

    def part(self, label: str, method: Method) -> None:
        self._parts[id(method)] = f"{re.sub(r'[^a-z0-9]+', '-', label.lower()).strip('-')}/"

    def start(self, method: Method, _notes: object) -> None:
        self._prefix = self._parts.get(id(method), "" if method is self._method else f"{method.name}/")

    def epoch(self, report: EpochReport) -> None:
        numbers = {"loss": report.loss, "seconds": report.seconds}
        numbers |= {f"valid_{logged_name(key)}": value for key, value in report.valid.items()}
        rest = {"learning_rate": report.learning_rate, **report.extras}
        numbers |= {key: float(value) for key, value in rest.items() if isinstance(value, int | float)}
        self._try(self._tracker.log, {f"{self._prefix}{key}": value for key, value in numbers.items()}, report.epoch)

    def finish(self, model: Model) -> None:
        results = dict(model.manifest.get("training") or {}) | {"popularity_dial": model.kappa()}
        results["total_seconds"] = model.manifest.get("seconds", 0.0)
        numbers = {logged_name(key): float(value) for key, value in results.items() if isinstance(value, int | float)}
        self.end(numbers, finished=True)

    def end(self, summary: Mapping[str, float], finished: bool) -> None:
        self._try(self._tracker.end, summary, finished)
        self._open = False

    def _try(self, call: Callable[..., None], *args: Any) -> None:
        if not self._open:
            return
        try:
            call(*args)
        except Exception as error:  # the training is worth more than its log
            self._open = False
            self._say(f"{self._tracker.name} failed ({reason(error)}); nothing more is logged there")


def logged_name(key: str) -> str:
    """`recall@20/niche` as tools allow it: `recall_at_20/niche`."""
    return key.replace("@", "_at_")
