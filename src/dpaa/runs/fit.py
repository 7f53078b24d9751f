"""Dataset and method become a model: the one place where trainer and evaluator meet."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_type
from dpaa.evaluation.dial_curve import dial_curve, without_curve
from dpaa.evaluation.evaluator import Evaluation, Evaluator, Overlap
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import TILE_COLUMNS
from dpaa.kernels.memory import memory_at_hand
from dpaa.methods import find_method
from dpaa.methods.base import Method
from dpaa.methods.dpaa_auto import DpaaAuto
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.settings import make_settings
from dpaa.runs.folder import RunFolder, now
from dpaa.runs.model import Model
from dpaa.runs.pretrained import read_pretrained, train_or_reuse
from dpaa.runs.stages import RunStages
from dpaa.text import finite
from dpaa.training.trainer import CHECKPOINT_SECONDS, EpochReport, Interrupted, Trainer
from dpaa.words import counted


@dataclass(frozen=True)
class Preview:
    """What a training will cost, told before it begins."""

    memory_bytes: int
    seconds_per_epoch: float
    epochs: int
    """At most; early stopping may come sooner."""


@dataclass
class Callbacks:
    """Who wants to know how a fit goes, and whether to stop it; every answer is optional."""

    on_start: Callable[[Method, list[str]], None] = lambda _method, _notes: None
    """The method that is about to be trained, and what its data lacks, in words."""
    on_preview: Callable[[Preview], None] = lambda _preview: None
    on_epoch: Callable[[EpochReport], None] = lambda _report: None
    stop_requested: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = lambda _line: None
    """What else a person would want to know."""
    checkpoint_seconds: float = CHECKPOINT_SECONDS


def fit(
    data: Dataset,
    method: str | type[Method] = "lightgcn",
    *,
    pretrained: str | Path | None = None,
    **settings: Any,
) -> Model:
    """Train a method, given by its name or its class, on a dataset; settings by name, as `dpaa methods` lists them.

    Early stopping looks at recall@20 of the validation split; the test split is not opened.  `pretrained` is for
    methods that use a model trained before: a run folder or embeddings; without it LightGCN is trained first.
    """
    _need_dataset(data)
    if not isinstance(pretrained, str | Path | None):
        raise InputError(f"pretrained must be a path, got {pretrained!r}; give a run folder or files of embeddings")
    return fit_method(make_method(data, method, settings), data, pretrained=pretrained)


def make_method(data: Dataset, name: str | type[Method], settings: Mapping[str, object]) -> Method:
    """The method on the training graph, its settings checked."""
    method_type = find_method(name)
    checked = make_settings(method_type.settings_type, settings, method_type.name)
    device = _resolve_device(getattr(checked, "device", "cpu"))
    return method_type(BipartiteGraph.from_pairs(data.train, data.n_users, data.n_items, device), checked)


def fit_into(
    folder: str | Path,
    data: Dataset,
    method: Method,
    *,
    overwrite: bool = False,
    resume: bool = False,
    callbacks: Callbacks | None = None,
    pretrained: str | Path | Pretrained | None = None,
    dial: bool = True,
    trials: int = 0,
) -> Model:
    """Train into a run folder: history line by line, checkpoints, and the finished run.

    A wrong setting found on the way (a loss that is no number) leaves no folder behind; an interrupted training does.
    `trials`: how many settings were tried before these were taken, for the manifest.
    """
    callbacks = callbacks or Callbacks()
    if resume and not overwrite:
        done = RunFolder(folder).finished_before(method, data.fingerprint)
        if done is not None:
            callbacks.say(f"{folder} is finished already, with these settings on this dataset")
            return done
    with RunFolder.begin(folder, overwrite=overwrite, resume=resume) as run:
        if not run.has_config:  # what a run to be resumed was begun with stays until the checkpoint is taken up
            run.write_config(method)
        model = fit_method(method, data, callbacks, run, resume, pretrained, dial, trials)
        run.write_config(method)
        run.write_model(model)
    return replace(model, path=Path(folder))


def fit_method(
    method: Method,
    data: Dataset,
    callbacks: Callbacks | None = None,
    run: RunFolder | None = None,
    resume: bool = False,
    pretrained: str | Path | Pretrained | None = None,
    dial: bool = True,
    trials: int = 0,
) -> Model:
    """Train and wrap up; with a run folder, keep history and checkpoints there.

    `dial=False` leaves out the popularity dial's curve, which the parts of an assembled method need not have; `trials`
    as in `fit_into`.
    """
    callbacks = callbacks or Callbacks()
    started, clock = now(), time.perf_counter()
    manifest: dict[str, Any] = {
        "method": method.name,
        "seed": method.settings.seed,
        "dataset": {
            "name": data.name,
            "path": str(data.path.resolve()) if data.path else None,
            "fingerprint": data.fingerprint,
        },
        "started": started,
        "tuning": {"trials": trials},
    }
    if method.assembled:
        manifest |= _assemble(method, data, callbacks, run, pretrained)
    elif isinstance(method, LightGCN):
        if method.wants_pretrained():
            vectors = _pretrained(method, data, callbacks, run, pretrained)
            method.take_pretrained(vectors)
            manifest["pretrained"] = vectors.origin
            del vectors  # whole tables, of which only the weights are needed from here on
        elif pretrained:
            raise InputError(f"{method.name} with these settings uses no pre-trained model; leave --pretrained out")
        manifest |= _train(method, data, callbacks, run, resume)
    else:
        callbacks.on_start(method, [])
        method.fit()
    if callbacks.stop_requested():
        raise Interrupted
    drawn = dial_curve(method, Evaluator(data, 20, "valid", "drop")) if dial and len(data.valid) else None
    manifest["dial"] = finite(drawn.as_json()) if drawn else without_curve(method.popularity_dial)
    manifest |= {"finished": now(), "seconds": round(time.perf_counter() - clock, 3)}
    return Model(method, data.user_ids, data.item_ids, data.train, data.candidates, manifest, run.path if run else None)


def evaluate(
    model: Model,
    data: Dataset,
    k: int | tuple[int, ...] = 20,
    overlap: Overlap = "drop",
    mask_valid: bool = False,
    popularity_dial: float | Literal["run"] | None = None,
) -> Evaluation:
    """Metrics of the test split, overall and for popular and niche items, with the protocol they were made by.

    `popularity_dial` as in `Model.recommend`.
    """
    need_type(model, Model, "model", "make one with dpaa.fit or read one with dpaa.load")
    _need_dataset(data)
    trained_on = model.manifest.get("dataset", {}).get("fingerprint")
    if trained_on != data.fingerprint:
        raise InputError(
            f"the model was trained on another dataset than {data.name} (fingerprints differ); "
            "evaluate it on the dataset it was trained on"
        )
    return Evaluator(data, k, "test", overlap, mask_valid).evaluate(model.method, model.kappa(popularity_dial))


def _need_dataset(data: object) -> None:
    need_type(data, Dataset, "data", "read one with dpaa.read_dataset or make one with dpaa.Dataset.from_frame")


def _assemble(
    method: Method,
    data: Dataset,
    callbacks: Callbacks,
    run: RunFolder | None,
    pretrained: str | Path | Pretrained | None,
) -> dict[str, Any]:
    """Let a method be made of several trainings, each a run inside the run's folder until the whole is made."""
    assert isinstance(method, DpaaAuto)
    if pretrained:
        raise InputError(f"{method.name} trains its own model first; leave --pretrained out")
    validation = Evaluator(data, 20, "valid", "drop") if len(data.valid) else None
    stages = RunStages(data, callbacks, run, validation)
    chosen = method.assemble(stages)
    if run is not None:
        run.write_history(stages.history)
    kept = [line["epoch"] for line in stages.history if line["part"] == chosen["chosen"]["part"]]
    return {
        "validation": asdict(validation.protocol) if validation else None,
        "training": {
            "epochs": len(stages.history),
            "best_epoch": kept[-1] if kept else 0,
            "best_valid_recall@20": validation.recall_of(method) if validation else None,
        },
        "tuned": {},
        "auto": finite(chosen),
    }


def _train(
    method: LightGCN, data: Dataset, callbacks: Callbacks, run: RunFolder | None, resume: bool
) -> dict[str, Any]:
    notes = _sampling_notes(method)
    needed = _check_memory(method)
    validation = Evaluator(data, 20, "valid", "drop") if len(data.valid) else None
    if validation is None:
        notes.append(
            f"the validation split is empty: all {method.settings.epochs:,} epochs are trained, the last is kept"
        )
    compute = {
        "device": str(method.device),
        "kernel": method.kernel,
        "tile_columns": TILE_COLUMNS[method.kernel],
        "threads": method.threads,
        "batch_size": method.batch_size,
    }
    identity = {
        "dataset": data.fingerprint,
        "method": method.name,
        "settings": method.settings.model_dump(mode="json", exclude={"threads"}),
        "kernel": method.kernel,
        **method.identity(),
    }
    epochs: list[EpochReport] = []

    def on_epoch(report: EpochReport) -> None:
        epochs.append(report)
        if run:
            run.append_history(report)
        callbacks.on_epoch(report)

    trainer = Trainer(
        method,
        validate=validation.recall if validation else None,
        on_start=lambda seconds: callbacks.on_preview(Preview(needed, seconds, method.settings.epochs)),
        on_epoch=on_epoch,
        checkpoints=run.checkpoints if run else None,
        identity=identity,
        stop_requested=callbacks.stop_requested,
        checkpoint_seconds=callbacks.checkpoint_seconds,
    )
    checkpoint = run.checkpoints.load() if run and resume else None
    if checkpoint:
        trainer.check(checkpoint)
    if run:
        run.cut_history(checkpoint.epoch - 1 if checkpoint else 0)
    if checkpoint:
        notes.append(f"going on in epoch {checkpoint.epoch:,}")
    elif resume:
        notes.append("there is no checkpoint to resume from: training starts afresh")
    callbacks.on_start(method, notes)
    stopping = trainer.run(checkpoint)
    tuned = method.tune(validation) if validation else {}
    return {
        "validation": asdict(validation.protocol) if validation else None,
        "compute": compute,
        "training": {
            "epochs": epochs[-1].epoch if epochs else (checkpoint.epoch - 1 if checkpoint else 0),
            "best_epoch": stopping.best_epoch,
            "best_valid_recall@20": stopping.best_value if validation else None,
        },
        "tuned": tuned,
    }


def _pretrained(
    method: LightGCN, data: Dataset, callbacks: Callbacks, run: RunFolder | None, given: str | Path | Pretrained | None
) -> Pretrained:
    if isinstance(given, Pretrained):
        return given
    if given:
        return read_pretrained(given, data, method.pretrained_layers())

    def train(folder: Path | None, plain: LightGCN) -> Model:
        kept = f" and kept in {folder}" if folder else ""
        callbacks.say(f"{method.name} starts from a pre-trained model: LightGCN is trained first{kept}")
        if folder is None:
            return fit_method(plain, data, callbacks)
        return fit_into(folder, data, plain, resume=folder.exists(), callbacks=callbacks)

    beside = run.path.parent if run else None
    return train_or_reuse(data, method.settings, method.pretrained_layers(), beside, train)


def _check_memory(method: LightGCN) -> int:
    """About the bytes a training takes; more than there are is refused before anything is allocated."""
    needed, free = method.memory_bytes(), memory_at_hand()
    if needed > free:
        raise InputError(
            f"training {method.name} would take about {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free; "
            f"use a smaller embedding_size (now {method.settings.embedding_size}) or a larger machine"
        )
    return needed


def _sampling_notes(method: LightGCN) -> list[str]:
    sampler = method.sampler
    if not sampler.n_usable_users:
        raise InputError("no user has both a training item and an item not taken; there is nothing to learn from")
    notes = []
    if sampler.users_without_items:
        users = counted(
            sampler.users_without_items, "user has no training item and is", "users have no training item and are"
        )
        notes.append(f"{users} never drawn")
    if sampler.users_with_every_item:
        users = counted(sampler.users_with_every_item, "user took every item and is", "users took every item and are")
        notes.append(f"{users} skipped: there is nothing to prefer")
    return notes


def _resolve_device(wanted: str) -> str:
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InputError("setting device: torch finds no CUDA device here; use device=cpu or device=auto")
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return wanted
