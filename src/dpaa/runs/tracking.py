"""Trainings in MLflow or Weights & Biases: hyperparameters at the start, then the numbers of each epoch.

Where to, and whether online, is set by those tools' own variables (`MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME`,
`WANDB_PROJECT`, `WANDB_MODE`).  A tool that cannot be opened is an error; one that fails later is reported once and not
called again, since a training is worth more than its log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, MissingExtraError, reason
from dpaa.methods.base import Method
from dpaa.runs.progress import Callbacks
from dpaa.training.trainer import EpochReport

Log = Callable[[dict[str, float], int], object]
Close = Callable[[bool], object]


def _mlflow(title: str, params: dict[str, Any], tags: dict[str, str]) -> tuple[Log, Close]:
    import mlflow

    mlflow.start_run(run_name=title, nested=mlflow.active_run() is not None, tags=tags)
    mlflow.log_params(params)
    return (
        lambda numbers, epoch: mlflow.log_metrics(numbers, step=epoch),
        lambda finished: mlflow.end_run("FINISHED" if finished else "KILLED"),
    )


def _wandb(title: str, params: dict[str, Any], tags: dict[str, str]) -> tuple[Log, Close]:
    import wandb

    run = wandb.init(name=title, config=params | tags)
    return (
        lambda numbers, epoch: run.log(numbers | {"epoch": epoch}),
        lambda finished: run.finish(exit_code=0 if finished else 1),
    )


TRACKERS = {"mlflow": _mlflow, "wandb": _wandb}


@contextmanager
def tracked(
    log_to: str | Sequence[str] | None, method: Method, data: Dataset, callbacks: Callbacks
) -> Iterator[Callbacks]:
    """Log a training while the context is open.

    Parameters
    ----------
    log_to : "mlflow", "wandb" or both
    method, data : what is trained on what
    callbacks : called as well

    Returns
    -------
    a context with callbacks that log
    """
    with ExitStack() as stack:
        for name in [log_to] if isinstance(log_to, str) else log_to or ():
            callbacks = stack.enter_context(_logged(name, method, data, callbacks))
        yield callbacks


@contextmanager
def _logged(name: str, method: Method, data: Dataset, callbacks: Callbacks) -> Iterator[Callbacks]:
    if name not in TRACKERS:
        raise InputError(f"there is no tracker {name!r}; log to {' or '.join(TRACKERS)}")
    tags = {"method": method.name, "dataset": data.name, "dataset_fingerprint": data.fingerprint}
    try:
        log, close = TRACKERS[name](f"{method.name} on {data.name}", method.get_params(), tags)
    except ImportError:
        raise MissingExtraError(f"logging to {name}", name) from None
    except Exception as error:  # another tool's, which may raise anything
        raise InputError(f"cannot log to {name} ({reason(error)}); correct it or leave --log-to out") from error
    working, trained = True, method

    def attempt(call: Callable[..., object], *values: object) -> None:
        nonlocal working
        try:
            if working:
                call(*values)
        except Exception as error:  # another tool's
            working = False
            callbacks.say(f"{name} failed ({reason(error)}); nothing more is logged there")

    def on_start(started: Method, notes: list[str]) -> None:
        nonlocal trained
        trained = started
        callbacks.on_start(started, notes)

    def on_epoch(report: EpochReport) -> None:
        numbers = {name: getattr(report, name) for name in ("loss", "seconds", "learning_rate", "best_epoch")}
        numbers |= report.extras | {f"valid_{key}": value for key, value in report.valid.items()}
        prefix = "" if trained is method else f"{trained.name}/"  # of a pre-trained model
        named = {f"{prefix}{key.replace('@', '_at_')}": value for key, value in numbers.items()}
        attempt(log, {key: float(one) for key, one in named.items() if isinstance(one, int | float)}, report.epoch)
        callbacks.on_epoch(report)

    finished = False
    try:
        yield replace(callbacks, on_start=on_start, on_epoch=on_epoch)
        finished = True
    finally:
        attempt(close, finished)
