"""`dpaa train`: a dataset becomes a run folder."""

from __future__ import annotations

import signal
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from dpaa.cli import options
from dpaa.cli.console import err, out, print_notes
from dpaa.cli.dial import KeptRerank
from dpaa.errors import InputError
from dpaa.files import SMALL_JSON, read_text


def train(
    dataset: options.DatasetArgument,
    out_folder: Annotated[Path, Option("--out", help="Run folder to write.")],
    method: options.Method = "lightgcn",
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
    rerank: KeptRerank = None,
    resume: Annotated[bool, Option("--resume", help="Resume from the last checkpoint of the run.")] = False,
    checkpoint_seconds: Annotated[float, Option(min=0, help="Seconds between checkpoints.")] = 30.0,
    overwrite: options.Overwrite = False,
    calibrate: Annotated[bool, Option("--calibrate", help="Time the sparse kernels first, use the fastest.")] = False,
) -> None:
    """Train a method with early stopping on validation recall@20; the best epoch is kept.

    \b
    Example:
      dpaa train data/coat --method lightgcn --set layers=2 --set learning_rate=1e-3 --out runs/lightgcn
    """
    from dpaa.cli.progress import EpochDisplay
    from dpaa.comparison import chances
    from dpaa.comparison.chances import Chances
    from dpaa.data.dataset import read_dataset
    from dpaa.methods import find_method
    from dpaa.methods.settings import NOT_YET_SETTINGS, PAPER_TRAINING
    from dpaa.reranking.choose import parse_reranker
    from dpaa.runs.fit import Callbacks, fit_into, make_method
    from dpaa.runs.folder import CONFIG, RunFolder
    from dpaa.training.trainer import Interrupted
    from dpaa.tuning.trial import trials_behind

    settings = read_settings(config, assignments or [], seed)
    chosen = str(settings.pop("method", method))
    if ":" in chosen and chosen != method:
        raise InputError(f"{config} names the class {chosen}; a class is named in the call: --method {chosen}")
    begun = RunFolder.to_resume(out_folder, overwrite) if resume else None
    if begun is not None:  # the kernel that was chosen stays
        calibrate = False
        made_with = begun.read_json(CONFIG)
        kind = find_method(chosen)
        if made_with.get("kernel") is not None and made_with.get("method") == kind.name:
            settings.setdefault("kernel", made_with["kernel"])
            if not NOT_YET_SETTINGS.keys() & made_with.keys():  # begun when defaults were others, which it goes on with
                settings = {name: made_with[name] for name in PAPER_TRAINING if name in made_with} | (
                    NOT_YET_SETTINGS | settings
                )
    data = read_dataset(dataset)
    fitted = make_method(data, chosen, settings)
    if fitted.retired:
        print_notes([f"{fitted.name} is retired and kept for results made with it: {fitted.retired}"])
    if calibrate:
        from dpaa.runs.calibrate import calibrated

        fitted = calibrated(fitted, say=err.print)
    signals = StopSignals()
    display = EpochDisplay(fitted)
    callbacks = Callbacks(
        on_start=display.start,
        on_part=display.part,
        on_preview=display.preview,
        on_epoch=display.epoch,
        stop_requested=lambda: signals.received is not None,
        say=err.print,
        checkpoint_seconds=checkpoint_seconds,
    )
    try:
        with signals, display:
            model = fit_into(
                out_folder,
                data,
                fitted,
                overwrite=overwrite,
                resume=resume,
                callbacks=callbacks,
                pretrained=pretrained,
                rerank=parse_reranker(rerank) if rerank else None,
                trials=0 if config is None else trials_behind(config),
            )
    except Interrupted:
        err.print(f"stopped; continue with the same call and --resume (what is done is in {out_folder})")
        sys.exit(128 + (signals.received or signal.SIGINT))
    training = model.manifest.get("training")
    if training and training["best_valid_recall@20"] is not None:
        best = f"best epoch {training['best_epoch']} of {training['epochs']}"
        out.print(f"{model.method.name}: {best}, validation recall@20 {training['best_valid_recall@20']:.4f}")
    elif training:
        out.print(f"{model.method.name}: epoch {training['epochs']}, the last, is kept")
    unfinished = chances.unfinished(model.method.name, [Chances.of_model(model)])
    print_notes([unfinished] if unfinished else [])
    following = "evaluate" if len(data.test) else "recommend"
    named = f"--plugin {chosen} " if ":" in chosen else ""
    out.print(f"run written to {out_folder}; next: dpaa {named}{following} {out_folder}")


def read_settings(config: Path | None, assignments: list[str], seed: int | None) -> dict[str, Any]:
    """File first, then `--set`, then `--seed`: the later wins."""
    settings: dict[str, Any] = {}
    if config is not None:
        try:
            settings |= tomllib.loads(read_text(config, SMALL_JSON))
        except (tomllib.TOMLDecodeError, RecursionError, OverflowError) as error:
            raise InputError(f"{config} is not valid TOML ({error}); write lines such as layers = 2") from None
        _check_flat(settings, config)
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set takes NAME=VALUE, got {assignment!r}; write for example --set layers=2")
        settings[name.strip()] = value.strip()
    if seed is not None:
        settings["seed"] = seed
    return settings


def _check_flat(settings: dict[str, Any], config: Path) -> None:
    table = next((name for name, value in settings.items() if isinstance(value, dict)), None)
    if table is not None:
        raise InputError(f"{config} has a table [{table}]; write the settings at the top of the file, without tables")
    if not isinstance(settings.get("method", ""), str):
        raise InputError(f"{config} has method = {settings['method']!r}; write the name of a method in quotes")


class StopSignals:
    """Remember SIGINT and SIGTERM instead of dying, so that training can leave a checkpoint; twice ends at once."""

    def __init__(self) -> None:
        self.received: int | None = None

    def _receive(self, number: int, _frame: object) -> None:
        if self.received is not None:
            raise KeyboardInterrupt
        self.received = number

    def __enter__(self) -> None:
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
