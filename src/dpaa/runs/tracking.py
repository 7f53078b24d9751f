"""Trainings in MLflow or Weights & Biases: settings at the start, a line per epoch, what came of it at the end.

Where to, and whether online, is said by those tools' own variables (`MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME`,
`WANDB_PROJECT`, `WANDB_MODE`) or by the fields here.  What goes wrong before the first epoch is an error; a tool that
fails later is told of once and asked no more, for a training is worth more than its log.
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
from dpaa.runs.callbacks import Callbacks
from dpaa.runs.model import Model
from dpaa.training.trainer import EpochReport


class Tracker(ABC):
    """One training in one tool."""

    name: str

    @abstractmethod
    def begin(self, title: str, settings: Mapping[str, Any], about: Mapping[str, str]) -> None:
        """Open a run with these parameters and tags."""

    @abstractmethod
    def log(self, metrics: Mapping[str, float], epoch: int) -> None:
        """Numbers of an epoch."""

    @abstractmethod
    def end(self, summary: Mapping[str, float], finished: bool) -> None:
        """Close it."""


@dataclass
class MLflow(Tracker):
    """`pip install 'dpaa[mlflow]'`."""

    experiment: str | None = None
    """Name; without it `MLFLOW_EXPERIMENT_NAME`, or the tool's default."""
    tracking_uri: str | None = None
    """Where to; without it `MLFLOW_TRACKING_URI`, or the tool's default."""
    run_name: str | None = None
    name = "mlflow"
    _tool: Any = field(default=None, init=False, repr=False)

    def begin(self, title: str, settings: Mapping[str, Any], about: Mapping[str, str]) -> None:
        """A run of its own; inside one that is open, a nested one."""
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
        mlflow.log_params(dict(settings))

    def log(self, metrics: Mapping[str, float], epoch: int) -> None:
        """By epoch."""
        self._tool.log_metrics(dict(metrics), step=epoch)

    def end(self, summary: Mapping[str, float], finished: bool) -> None:
        """What came of it, as metrics without an epoch."""
        if summary:
            self._tool.log_metrics(dict(summary))
        self._tool.end_run("FINISHED" if finished else "KILLED")


@dataclass
class WandB(Tracker):
    """Weights & Biases: `pip install 'dpaa[wandb]'`."""

    project: str | None = None
    """Without it `WANDB_PROJECT`, or the tool's default."""
    run_name: str | None = None
    mode: str | None = None
    """`online`, `offline` or `disabled`; without it `WANDB_MODE`."""
    name = "wandb"
    _run: Any = field(default=None, init=False, repr=False)

    def begin(self, title: str, settings: Mapping[str, Any], about: Mapping[str, str]) -> None:
        """Settings and what it was made with are its configuration."""
        try:
            import wandb
        except ImportError:
            raise MissingExtraError("logging to Weights & Biases", "wandb") from None
        mode: Any = self.mode
        config = {**settings, **about}
        self._run = wandb.init(project=self.project, name=self.run_name or title, config=config, mode=mode)

    def log(self, metrics: Mapping[str, float], epoch: int) -> None:
        """With the epoch beside them: steps must not fall, epochs of a second part do."""
        self._run.log({**metrics, "epoch": epoch})

    def end(self, summary: Mapping[str, float], finished: bool) -> None:
        """What came of it, as the run's summary."""
        self._run.summary.update(dict(summary))
        self._run.finish(exit_code=0 if finished else 1)


TRACKERS: dict[str, type[MLflow] | type[WandB]] = {"mlflow": MLflow, "wandb": WandB}
LogTo = str | Tracker | Sequence[str | Tracker] | None


def find_trackers(log_to: LogTo) -> list[Tracker]:
    """By name, or as they are."""
    several = [log_to] if isinstance(log_to, str | Tracker) else list(log_to or [])
    found: list[Tracker] = []
    for one in several:
        if isinstance(one, Tracker):
            found.append(one)
        elif one in TRACKERS:
            found.append(TRACKERS[one]())
        else:
            raise InputError(f"there is no tracker {one!r}; log to {' or '.join(TRACKERS)}")
    return found


@contextmanager
def tracked(
    log_to: LogTo, method: Method, data: Dataset, callbacks: Callbacks
) -> Iterator[tuple[Callbacks, Callable[[Model], Model]]]:
    """Callbacks that log as well, and what is told of the finished model, inside of which it must end."""
    trackers = find_trackers(log_to)
    if not trackers:
        yield callbacks, lambda model: model
        return
    about = {"method": method.name, "dataset": data.name, "dataset_fingerprint": data.fingerprint}
    settings = method.get_params()
    with ExitStack() as open_runs:
        logs = [_Log(one, callbacks.say, method) for one in trackers]
        for log in logs:
            log.begin(f"{method.name} on {data.name}", settings, about)
            open_runs.callback(log.close)

        def finished(model: Model) -> Model:
            for log in logs:
                log.finish(model)
            return model

        yield (
            replace(
                callbacks,
                on_epoch=_then(callbacks.on_epoch, [log.epoch for log in logs]),
                on_part=_then(callbacks.on_part, [log.part for log in logs]),
                on_start=_then(callbacks.on_start, [log.start for log in logs]),
            ),
            finished,
        )


def _then(first: Callable[..., None], others: Sequence[Callable[..., None]]) -> Callable[..., None]:
    def call(*args: Any) -> None:
        for one in (first, *others):
            one(*args)

    return call


class _Log:
    """One tracker, until it fails."""

    def __init__(self, tracker: Tracker, say: Callable[[str], None], method: Method) -> None:
        self._tracker, self._say, self._method = tracker, say, method
        self._prefix = ""
        self._open = True
        self._parts: dict[int, str] = {}

    def begin(self, title: str, settings: Mapping[str, Any], about: Mapping[str, str]) -> None:
        try:
            self._tracker.begin(title, settings, about)
        except InputError:
            raise
        except Exception as error:  # a tool of somebody else's: whatever it raises
            raise InputError(
                f"cannot log to {self._tracker.name} ({reason(error)}); correct its settings or leave --log-to out"
            ) from error

    def part(self, label: str, method: Method) -> None:
        self._parts[id(method)] = f"{re.sub(r'[^a-z0-9]+', '-', label.lower()).strip('-')}/"
        self.start(method)

    def start(self, method: Method, _notes: object = None) -> None:
        """Epochs of a part have names of their own."""
        own = "" if method is self._method else f"{method.name}/"
        self._prefix = self._parts.get(id(method), own)

    def epoch(self, report: EpochReport) -> None:
        numbers = {"loss": report.loss, "seconds": report.seconds}
        numbers |= {f"valid_{logged_name(key)}": value for key, value in report.valid.items()}
        rest = {"learning_rate": report.learning_rate, **report.extras}
        numbers |= {key: float(value) for key, value in rest.items() if isinstance(value, int | float)}
        self._try(self._tracker.log, {f"{self._prefix}{key}": value for key, value in numbers.items()}, report.epoch)

    def finish(self, model: Model) -> None:
        training = model.manifest.get("training") or {}
        told = {f"{logged_name(key)}": value for key, value in training.items() if isinstance(value, int | float)}
        told |= {"popularity_dial": model.kappa(), "total_seconds": float(model.manifest.get("seconds", 0.0))}
        self._end({key: float(value) for key, value in told.items()}, finished=True)

    def close(self) -> None:
        """A training that was stopped or failed."""
        self._end({}, finished=False)

    def _end(self, summary: Mapping[str, float], finished: bool) -> None:
        if self._open:
            self._try(self._tracker.end, summary, finished)
        self._open = False

    def _try(self, call: Callable[..., None], *args: Any) -> None:
        if not self._open:
            return
        try:
            call(*args)
        except Exception as error:  # see above: the training goes on
            self._open = False
            self._say(f"{self._tracker.name} failed ({reason(error)}); nothing more is logged there")


def logged_name(key: str) -> str:
    """`recall@20/niche` as tools allow it: `recall_at_20/niche`."""
    return key.replace("@", "_at_")
