"""`dpaa train`: a dataset becomes a run folder."""

from __future__ import annotations

import signal
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dpaa._io import SMALL_JSON, read_text
from dpaa.cli import options
from dpaa.cli.console import err, out, print_notes
from dpaa.cli.dial import KeptRerank
from dpaa.cli.interrupts import StopSignals
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.runs.model import Model


def train(
    dataset: options.DatasetArgument,
    out_folder: Annotated[Path, Option("--out", help="Run folder to write.")],
    method: Annotated[
        str | None,
        Option(help="Method; `dpaa methods` lists them; default: lightgcn, or that of the run it starts from."),
    ] = None,
    config: Annotated[Path | None, Option(help="TOML file of hyperparameters.")] = None,
    assignments: options.Assignments = None,
    seed: Annotated[int | None, Option(help="Random seed.")] = None,
    pretrained: Annotated[
        Path | None,
        Option(
            metavar="RUN",
            help="For methods that use a model trained before; without it LightGCN is trained first and kept beside "
            "the run.",
        ),
    ] = None,
    warm_start: Annotated[
        Path | None,
        Option(
            metavar="RUN",
            help="Start from a run of earlier data: known users and items keep their vectors, new ones begin at their "
            "neighbours', training is shorter; method and hyperparameters are the run's where none are given.",
        ),
    ] = None,
    rerank: KeptRerank = None,
    resume: Annotated[
        bool,
        Option(
            "--resume",
            help="Resume from the last checkpoint of the run, with its hyperparameters; a finished run is trained "
            "further with --set epochs=N, and an unfinished one ends with the epochs that are done.",
        ),
    ] = False,
    final: Annotated[
        Path | None,
        Option(
            metavar="RUN",
            help="Fit for production: the run's method on train, validation and test pairs, with its hyperparameters "
            "and best epoch; such a run cannot be evaluated.",
        ),
    ] = None,
    log_to: Annotated[
        list[str] | None,
        Option(metavar="mlflow|wandb", help="Log the training there as well; repeatable."),
    ] = None,
    checkpoint_seconds: Annotated[float, Option(min=0, help="Seconds between checkpoints.")] = 30.0,
    overwrite: options.Overwrite = False,
) -> None:
    """Train a method with early stopping on validation recall@20; the best epoch is kept.

    \b
    Example:
      dpaa train data/coat --method lightgcn --set layers=2 --set learning_rate=1e-3 --out runs/lightgcn
      dpaa train data/tuesday --warm-start runs/monday --out runs/tuesday
      dpaa train data/coat --out runs/lightgcn --resume --set epochs=2000
      dpaa train data/shop --final runs/tonight --out runs/live
      torchrun --nproc-per-node 4 -m dpaa train data/kuairec --set embedding_size=256 --out runs/wide
    """
    from dpaa.data.dataset import read_dataset
    from dpaa.ranking.reranker import parse_reranker
    from dpaa.runs.fit import final_training, fit_into, make_method, plan_training
    from dpaa.runs.model import load
    from dpaa.runs.progress import Callbacks, watched_training
    from dpaa.runs.tracking import tracked
    from dpaa.training import distributed
    from dpaa.training.trainer import Interrupted
    from dpaa.tuning.trial import trials_behind

    how: dict[str, Any] = {"overwrite": overwrite}
    if final is None:
        hyperparameters = read_settings(config, assignments or [], seed)
        before = None if warm_start is None else load(warm_start)
        method, hyperparameters = plan_training(
            out_folder, hyperparameters.pop("method", method), hyperparameters, before, resume, overwrite
        )
        data = read_dataset(dataset)
        fitted = make_method(data, method, hyperparameters)
        how |= {"resume": resume, "pretrained": pretrained, "warm_start": before}
        how |= {"rerank": parse_reranker(rerank) if rerank else None, "trials": trials_behind(config) if config else 0}
    elif resume or any(one is not None for one in (method, config, assignments, seed, pretrained, warm_start, rerank)):
        raise InputError("--final takes everything from the run that it names; leave the other options out")
    else:
        fitted, data, more = final_training(final, read_dataset(dataset))
        how |= more
    signals = StopSignals()
    stopping: dict[str, Any] = {
        "stop_requested": lambda: signals.received is not None,
        "checkpoint_seconds": checkpoint_seconds,
    }
    with distributed.process_group():
        first = not distributed.rank()  # of several processes, this one shows and logs
        watched = watched_training(fitted, **stopping) if first else nullcontext(Callbacks(**stopping))
        try:
            with signals, watched as shown, tracked(log_to if first else None, fitted, data, shown) as callbacks:
                model = fit_into(out_folder, data, fitted, callbacks=callbacks, **how)
        except Interrupted:
            if first:
                err.print(f"stopped; continue with the same command and --resume (what is done is in {out_folder})")
            sys.exit(128 + (signals.received or signal.SIGINT))
    if first:
        known = f"--plugin {method} " if method and ":" in method else ""
        following = f"dpaa {known}{'evaluate' if len(data.test) else 'recommend'} {out_folder}"
        _print_result(model, f"run written to {out_folder}; next: {following}")


def _print_result(model: Model, following: str) -> None:
    """Print the best epoch, a warning where training ended too early, and the next command."""
    from dpaa.comparison import TrainingBudget, unfinished

    training = model.manifest.get("training")
    if training and training["best_valid_recall@20"] is not None:
        best = f"best epoch {training['best_epoch']} of {training['epochs']}"
        out.print(f"{model.method.name}: {best}, validation recall@20 {training['best_valid_recall@20']:.4f}")
    elif training:
        out.print(f"{model.method.name}: epoch {training['epochs']}, the last, is kept")
    warning = unfinished(model.method.name, [TrainingBudget.of_model(model)])
    print_notes([warning] if warning else [])
    out.print(following)


def read_settings(config: Path | None, assignments: list[str], seed: int | None) -> dict[str, Any]:
    """Hyperparameters of a call: of the file, then of `--set`, then `--seed`; the later wins.

    Parameters
    ----------
    config : TOML file
    assignments : NAME=VALUE
    seed : random seed

    Returns
    -------
    name → value, `method` among them where the file names one
    """
    settings: dict[str, Any] = {}
    if config is not None:
        try:
            settings |= tomllib.loads(read_text(config, SMALL_JSON))
        except (tomllib.TOMLDecodeError, RecursionError, OverflowError) as error:
            raise InputError(f"{config} is not valid TOML ({error}); write lines such as layers = 2") from None
        named = settings.get("method", "")
        if not isinstance(named, str) or ":" in named or any(isinstance(one, dict) for one in settings.values()):
            raise InputError(
                f'{config} must hold lines such as layers = 2 or method = "dpaa", without tables or classes'
            )
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set takes NAME=VALUE, got {assignment!r}; write for example --set layers=2")
        settings[name.strip()] = value.strip()
    if seed is not None:
        settings["seed"] = seed
    return settings
