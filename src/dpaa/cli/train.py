"""`dpaa train`: a dataset becomes a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

import dpaa
from dpaa.cli import options
from dpaa.cli.console import out, print_notes
from dpaa.cli.interrupts import resumable
from dpaa.errors import InputError


def train(
    dataset: options.DatasetArgument,
    out_folder: Annotated[Path, Option("--out", help="Run folder to write.")],
    method: Annotated[str | None, Option(metavar="NAME|ROW@DATA", help="Method (above); default: lightgcn.")] = None,
    config: options.Config = None,
    assignments: options.Assignments = None,
    seed: Annotated[int | None, Option(help="Random seed.")] = None,
    pretrained: Annotated[Path | None, Option(metavar="RUN", help="Pre-trained run; default: train LightGCN.")] = None,
    warm_start: Annotated[Path | None, Option(metavar="RUN", help="Start from a run on earlier data.")] = None,
    rerank: options.Rerank = None,
    resume: Annotated[bool, Option("--resume", help="Resume from the last checkpoint of the run.")] = False,
    final: Annotated[Path | None, Option(metavar="RUN", help="Refit this run's method on all pairs.")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Train a method with early stopping on validation recall@20; the best epoch is kept.

    --method ROW@DATA, a row of `dpaa reproduce field` such as LightGCN@gowalla, uses its authors' hyperparameters.

    --resume --set epochs=N trains a finished run longer, or ends an unfinished one with the epochs already done.  With
    --warm-start, known users and items keep their vectors, new ones start at those of their neighbours, and training
    is shorter.  --final uses the run's hyperparameters and best epoch; its result cannot be evaluated.

    \b
    Example:
      dpaa train data/coat --method lightgcn --set layers=2 --set \\
          learning_rate=1e-3 --out runs/lightgcn
      dpaa train data/gowalla --method LightGCN@gowalla --out runs/gowalla
      dpaa train data/tuesday --warm-start runs/monday --out runs/tuesday
      dpaa train data/coat --out runs/lightgcn --resume --set epochs=2000
      dpaa train data/shop --final runs/tonight --out runs/live
      torchrun --nproc-per-node 4 -m dpaa train data/kuairec --set \\
          embedding_size=256 --out runs/wide
    """
    from dpaa.ranking.reranker import parse_reranker
    from dpaa.reproduction import preset
    from dpaa.runs.fit import final_training, fit_into, make_method, plan_training
    from dpaa.runs.progress import Callbacks, watched_training
    from dpaa.training import distributed
    from dpaa.tuning.trial import trials_behind

    how: dict[str, Any] = {}
    if final is None:
        values = options.read_hyperparameters(assignments, config, seed)
        before = None if warm_start is None else dpaa.load(warm_start)
        named = values.pop("method", method)
        if named is not None and "@" in named and ":" not in named:
            named, authors = preset(named)
            values = authors | values
        method, values = plan_training(out_folder, named, values, before, resume, overwrite)
        data = dpaa.read_dataset(dataset)
        fitted = make_method(data, method, values)
        how |= {"resume": resume, "pretrained": pretrained, "warm_start": before}
        how |= {"rerank": parse_reranker(rerank) if rerank else None, "trials": trials_behind(config) if config else 0}
    elif resume or any(one is not None for one in (method, config, assignments, seed, pretrained, warm_start, rerank)):
        raise InputError("--final takes method and hyperparameters from its run; omit the other options")
    else:
        fitted, data, how = final_training(final, dpaa.read_dataset(dataset))
    with distributed.process_group(), resumable(out_folder, "the same command and --resume") as signals:
        first = not distributed.peers().rank  # of several processes, this one shows
        stop: Any = {"stop_requested": signals.requested}
        callbacks = watched_training(**stop) if first else Callbacks(**stop)
        with signals:
            model = fit_into(out_folder, data, fitted, callbacks=callbacks, overwrite=overwrite, **how)
    if first:
        _print_result(model)
        command = f"{options.plugin_option(model.method.name)}{'evaluate' if len(data.test) else 'recommend'}"
        following = f"dpaa {command} {out_folder}"
        out.print(f"run written to {out_folder}; next: {following}")


def _print_result(model: dpaa.Model) -> None:
    """Print the best epoch, and a warning where training ended too early."""
    from dpaa.comparison import TrainingBudget, unfinished

    training = model.manifest.get("training")
    if training and training["best_valid_recall@20"] is not None:
        best = f"best epoch {training['best_epoch']} of {training['epochs']}"
        out.print(f"{model.method.name}: {best}, validation recall@20 {training['best_valid_recall@20']:.4f}")
    elif training:
        out.print(f"{model.method.name}: epoch {training['epochs']}, the last, is kept")
    warning = unfinished(model.method.name, [TrainingBudget.of_model(model)])
    print_notes([warning] if warning else [])
