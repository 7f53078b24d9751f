"""`dpaa train`: a dataset becomes a run folder."""

from __future__ import annotations

import signal
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dpaa._io import SMALL_JSON, read_text
from dpaa.cli import options
from dpaa.cli.console import err, out, print_notes
from dpaa.cli.dial import KeptRerank
from dpaa.cli.interrupts import StopSignals
from dpaa.cli.processes import launch_if_asked, taking_part
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.data.dataset import Dataset
    from dpaa.methods.base import Method
    from dpaa.runs.model import Model
    from dpaa.training.together import Together


def train(
    dataset: options.DatasetArgument,
    out_folder: Annotated[Path, Option("--out", help="Run folder to write.")],
    method: Annotated[
        str | None,
        Option(help="Method; `dpaa methods` lists them; default: lightgcn, or that of the run it starts from."),
    ] = None,
    config: Annotated[Path | None, Option(help="TOML file of settings.")] = None,
    assignments: options.Assignments = None,
    seed: Annotated[int | None, Option(help="Random seed.")] = None,
    pretrained: Annotated[
        str | None,
        Option(
            metavar="RUN|USERS,ITEMS|FILE",
            help="For methods that use a model trained before: a run, embeddings as two tables (id, v0, v1 …) or a "
            "safetensors file; without it LightGCN is trained first and kept beside the run.",
        ),
    ] = None,
    warm_start: Annotated[
        Path | None,
        Option(
            metavar="RUN",
            help="Start from a run of earlier data: known users and items keep their vectors, new ones begin at their "
            "neighbours', training is shorter; method and settings are the run's where none are given.",
        ),
    ] = None,
    rerank: KeptRerank = None,
    resume: Annotated[
        bool,
        Option(
            "--resume",
            help="Resume from the last checkpoint of the run; a finished run is trained further with --set epochs=N.",
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
    finish: Annotated[
        bool,
        Option(
            "--finish",
            help="Train no more: make a finished run of the best epoch so far, from the checkpoint of a stopped one.",
        ),
    ] = False,
    log_to: Annotated[
        list[str] | None,
        Option(metavar="mlflow|wandb", help="Log the training there as well; repeatable."),
    ] = None,
    checkpoint_seconds: Annotated[float, Option(min=0, help="Seconds between checkpoints.")] = 30.0,
    overwrite: options.Overwrite = False,
    processes: Annotated[
        int,
        Option(
            min=1,
            help="Processes of this machine that share the columns of the tables, 16 or more each; see docs/scale.md.",
        ),
    ] = 1,
) -> None:
    """Train a method with early stopping on validation recall@20; the best epoch is kept.

    \b
    Example:
      dpaa train data/coat --method lightgcn --set layers=2 --set learning_rate=1e-3 --out runs/lightgcn
      dpaa train data/tuesday --warm-start runs/monday --out runs/tuesday
      dpaa train data/coat --out runs/lightgcn --resume --set epochs=2000
      dpaa train data/coat --out runs/lightgcn --finish
      dpaa train data/shop --final runs/tonight --out runs/live
      dpaa train data/kuairec --set embedding_size=256 --processes 4 --out runs/wide
    """
    from dpaa.data.dataset import read_dataset
    from dpaa.ranking.reranker import parse_reranker
    from dpaa.runs.fit import final_training, make_method, plan_training
    from dpaa.runs.model import load
    from dpaa.training.together import ONE_PROCESS
    from dpaa.tuning.trial import trials_behind

    if finish and processes > 1:
        raise InputError("--finish trains nothing and takes one process; leave --processes out")
    if finish and resume:
        raise InputError("--finish keeps the best epoch so far, --resume trains on; give one of them")
    if final is not None:
        given = [method, config, assignments, seed, pretrained, warm_start, rerank]
        if any(one is not None for one in given) or resume or finish or processes > 1:
            raise InputError("--final takes everything from the run that it names; leave the other options out")
        fitted, whole, how = final_training(final, read_dataset(dataset))
        model = _fit(out_folder, whole, fitted, ONE_PROCESS, checkpoint_seconds, log_to, overwrite=overwrite, **how)
        out.print(f"{model.method.name}: fitted on all {len(whole.train):,} pairs, as {final} was chosen")
        out.print(f"run written to {out_folder}; next: dpaa recommend {out_folder} --out recs.parquet")
        return
    launch_if_asked(processes)
    with taking_part(lambda: read_dataset(dataset), method) as together:
        hyperparameters = read_settings(config, assignments or [], seed)
        named = hyperparameters.pop("method", method)
        if named is not None and ":" in str(named) and named != method:
            raise InputError(f"{config} names the class {named}; a class is named in the call: --method {named}")
        before = None if warm_start is None else load(warm_start)
        chosen, hyperparameters = plan_training(
            out_folder, named, hyperparameters, before, resume=resume, overwrite=overwrite, finish=finish
        )
        data = read_dataset(dataset)
        model = _fit(
            out_folder,
            data,
            make_method(data, chosen, hyperparameters),
            together,
            checkpoint_seconds,
            log_to,
            overwrite=overwrite,
            resume=resume,
            finish=finish,
            pretrained=pretrained,
            rerank=parse_reranker(rerank) if rerank else None,
            warm_start=before,
            trials=0 if config is None else trials_behind(config),
        )
    _print_result(model, data, out_folder, chosen)


def _fit(
    folder: Path,
    data: Dataset,
    fitted: Method,
    together: Together,
    checkpoint_seconds: float,
    log_to: list[str] | None,
    **how: Any,
) -> Model:
    """Train and show how it goes; ctrl-C leaves a checkpoint."""
    from dpaa.cli.progress import watched_training
    from dpaa.runs.distributed import check_followers
    from dpaa.runs.fit import fit_into
    from dpaa.runs.tracking import tracked
    from dpaa.training.trainer import Interrupted

    check_followers(together, data)
    signals = StopSignals(patient=together.peers.count > 1)
    watched = watched_training(
        fitted,
        stop_requested=lambda: signals.received is not None,
        checkpoint_seconds=checkpoint_seconds,
        together=together,
    )
    try:
        with signals, watched as callbacks, tracked(log_to, fitted, data, callbacks) as (logged, finished):
            return finished(fit_into(folder, data, fitted, callbacks=logged, **how))
    except Interrupted:
        err.print(
            f"stopped; continue with the same call and --resume, or keep its best epoch so far with --finish (what is "
            f"done is in {folder})"
        )
        sys.exit(128 + (signals.received or signal.SIGINT))


def _print_result(model: Model, data: Dataset, folder: Path, method: str) -> None:
    """Print the best epoch, what to know of it, and the next command."""
    from dpaa.comparison import TrainingBudget, unfinished

    training = model.manifest.get("training")
    if training and training["best_valid_recall@20"] is not None:
        best = f"best epoch {training['best_epoch']} of {training['epochs']}"
        if training["best_epoch"] == 0:
            best = f"no epoch of {training['epochs']} was better than the start"
        if "stopped" in training:
            best += f" ({training['stopped']})"
        out.print(f"{model.method.name}: {best}, validation recall@20 {training['best_valid_recall@20']:.4f}")
    elif training:
        out.print(f"{model.method.name}: epoch {training['epochs']}, the last, is kept")
    warning = unfinished(model.method.name, [TrainingBudget.of_model(model)])
    print_notes([warning] if warning else [])
    following = "evaluate" if len(data.test) else "recommend"
    known = f"--plugin {method} " if ":" in method else ""
    out.print(f"run written to {folder}; next: dpaa {known}{following} {folder}")


def read_settings(config: Path | None, assignments: list[str], seed: int | None) -> dict[str, Any]:
    """Hyperparameters of a call: of the file, then of `--set`, then `--seed`; the later wins."""
    settings: dict[str, Any] = {}
    if config is not None:
        try:
            settings |= tomllib.loads(read_text(config, SMALL_JSON))
        except (tomllib.TOMLDecodeError, RecursionError, OverflowError) as error:
            raise InputError(f"{config} is not valid TOML ({error}); write lines such as layers = 2") from None
        table = next((name for name, value in settings.items() if isinstance(value, dict)), None)
        if table is not None:
            raise InputError(
                f"{config} has a table [{table}]; write the settings at the top of the file, without tables"
            )
        if not isinstance(settings.get("method", ""), str):
            raise InputError(f"{config} has method = {settings['method']!r}; write the name of a method in quotes")
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set takes NAME=VALUE, got {assignment!r}; write for example --set layers=2")
        settings[name.strip()] = value.strip()
    if seed is not None:
        settings["seed"] = seed
    return settings
