"""Dataset and method become a model, in memory or in a run folder."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch

from dpaa._machine import memory_at_hand
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_type
from dpaa.evaluation.dial_curve import dial_curve, without_curve
from dpaa.evaluation.evaluator import Evaluation, Evaluator, Overlap
from dpaa.methods import find_method
from dpaa.methods.base import ChosenAfterwards, ClosedForm, Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import Pretrained, UsesPretrained, needed_layers
from dpaa.plugins import origin_of
from dpaa.ranking.reranker import Reranker
from dpaa.runs.build import make_method
from dpaa.runs.callbacks import Callbacks
from dpaa.runs.final import final_training
from dpaa.runs.folder import RunFolder, now
from dpaa.runs.further import train_further
from dpaa.runs.measure import measured
from dpaa.runs.model import Model, load
from dpaa.runs.notebook import watched
from dpaa.runs.pretrained import read_pretrained, train_or_reuse
from dpaa.runs.together import announce, check_shared
from dpaa.runs.tracking import LogTo, tracked
from dpaa.runs.warm_start import in_words
from dpaa.runs.warm_start import warm_start as start_from
from dpaa.text import finite
from dpaa.training.checkpoint import STARTED_FROM, Checkpoint
from dpaa.training.start import Start
from dpaa.training.trainer import EpochReport, Interrupted, Trainer
from dpaa.words import counted

DEFAULT = "lightgcn"
"""The method where none is named."""
__all__ = ["DEFAULT", "Callbacks", "evaluate", "fit", "fit_into", "fit_method", "make_method"]


def fit(
    data: Dataset,
    method: str | type[Method] | Method | None = None,
    *,
    pretrained: str | Path | None = None,
    rerank: Reranker | None = None,
    progress: bool | None = None,
    warm_start: Model | str | Path | None = None,
    log_to: LogTo = None,
    **settings: Any,
) -> Model:
    """Train a method on a dataset.

    The method is a name (`"dpaa"`), a configured object (`dpaa.DPAA(layers=2)`) or a class, of a plug-in for example
    (LightGCN without it); settings by name, as `dpaa methods` lists them.  Early stopping looks at recall@20 of the
    validation split; the test split is not opened.  `pretrained` is for methods that use a model trained before: a run
    folder or embeddings; without it LightGCN is trained first.  `rerank` changes the lists after scoring; the model
    keeps it.  `warm_start` is a model or a run of earlier data: known users and items keep their vectors, new ones
    begin at their neighbours', and training is shorter; method and settings are the model's where none are given.
    `progress` shows how far it is: a bar in notebooks unless False, lines on standard error elsewhere if True.
    `log_to`: "mlflow", "wandb" or both, or one of `dpaa.runs.tracking` with settings of its own.
    """
    _need_dataset(data)
    before = load(warm_start) if isinstance(warm_start, str | Path) else warm_start
    if before is not None:
        need_type(before, Model, "warm_start", "give a model of dpaa.fit or dpaa.load, or a run folder")
        method, settings = like(before, method, settings)
    if not isinstance(pretrained, str | Path | None):
        raise InputError(f"pretrained must be a path, got {pretrained!r}; give a run folder or files of embeddings")
    fitted = make_method(data, DEFAULT if method is None else method, settings)
    with tracked(log_to, fitted, data, watched(progress)) as (callbacks, told):
        return told(fit_method(fitted, data, callbacks, pretrained=pretrained, rerank=rerank, warm_start=before))


def like(
    before: Model, method: str | type[Method] | Method | None, settings: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Method and settings of a training that starts from a model: its own, as far as none are given."""
    own = before.method
    if method is None:
        method = type(own)
    if find_method(method) is not type(own) or isinstance(method, Method):
        return method, settings
    return method, own.get_params({"device", "threads"}) | settings


def fit_into(
    folder: str | Path,
    data: Dataset,
    method: Method,
    *,
    overwrite: bool = False,
    resume: bool = False,
    finish: bool = False,
    callbacks: Callbacks | None = None,
    **how: Any,
) -> Model:
    """Train into a run folder: history line by line, checkpoints, and the finished run; `how` as in `fit_method`.

    A wrong setting found on the way (a loss that is no number) leaves no folder behind; an interrupted training does.
    `resume` goes on from a checkpoint, or trains a finished run further where more epochs are allowed now.  `finish`
    trains no more: the best epoch of the checkpoint of an unfinished run becomes the model.
    """
    callbacks = callbacks or Callbacks()
    if finish:
        how["finish"] = resume = True
        checkpoint = RunFolder.to_finish(folder, overwrite).checkpoints.load()
        if checkpoint and STARTED_FROM in checkpoint.progress["identity"] and not how.get("warm_start"):
            how |= _begun_further(folder, method, data, how)
    elif resume and not overwrite and RunFolder(folder).finished:
        if RunFolder(folder).finished_before(method, data.fingerprint, how.get("rerank")):
            callbacks.say(f"{folder} is finished already, with these settings on this dataset")
            return load(folder)
        if further := train_further(folder, method, data):
            how["start"], how["pretrained"] = further[0], how.get("pretrained") or further[1]
            overwrite = True  # the new run takes the place of the old one when it is whole
    with RunFolder.begin(folder, overwrite=overwrite, resume=resume) as run:
        if not run.has_config:  # what a run to be resumed was begun with stays until the checkpoint is taken up
            run.write_config(method)
        model = fit_method(method, data, callbacks, run, resume, **how)
        run.write_config(method)
        written = run.write_model(model)
    return replace(model, path=Path(folder), digest=written)


def _begun_further(folder: str | Path, method: Method, data: Dataset, how: dict[str, Any]) -> dict[str, Any]:
    """What a finished run that is trained further goes on from; nothing where there is no such run."""
    further = train_further(folder, method, data) if RunFolder(folder).finished else None
    if further is None:
        return {}
    return {
        "start": further[0],
        "pretrained": how.get("pretrained") or further[1],
        "rerank": how.get("rerank") or load(folder).reranker(),
    }


def fit_method(
    method: Method,
    data: Dataset,
    callbacks: Callbacks | None = None,
    run: RunFolder | None = None,
    resume: bool = False,
    *,
    pretrained: str | Path | Pretrained | None = None,
    dial: bool = True,
    trials: int = 0,
    start: Start | None = None,
    keep_last: bool = False,
    rerank: Reranker | None = None,
    warm_start: Model | None = None,
    about: dict[str, Any] | None = None,
    finish: bool = False,
) -> Model:
    """Fit a method that is attached to the dataset's graph.

    Parameters
    ----------
    method, data : from `make_method`
    callbacks : who is told of the progress, and may stop it
    run : the folder that keeps history and checkpoints
    resume : continue from the folder's checkpoint
    pretrained : for methods that use a model trained before; trained first by default
    dial : whether the curve of the popularity dial is measured on validation
    trials : how many configurations were tried before this one, for the manifest
    start, keep_last : as in `Trainer`
    rerank : re-ranker that the model keeps
    warm_start : model of earlier data to start from
    about : further entries of the manifest
    finish : train no more, keep the best epoch of the checkpoint

    Returns
    -------
    the fitted model
    """
    callbacks = callbacks or Callbacks()
    if pretrained and needed_layers(method) is None:
        raise InputError(f"{method.name} with these hyperparameters uses no pre-trained model; leave --pretrained out")
    clock = time.perf_counter()
    dataset_path = str(data.path.resolve()) if data.path else None
    manifest: dict[str, Any] = {
        "method": method.name,
        "method_origin": origin_of(type(method)),
        "seed": method.seed,
        "dataset": {"name": data.name, "path": dataset_path, "fingerprint": data.fingerprint},
        "started": now(),
        "tuning": {"trials": trials},
    }
    vectors = None
    if isinstance(method, UsesPretrained) and (n_layers := method.pretrained_layers()) is not None:
        assert isinstance(method, GraphMethod)
        vectors = _pretrained_vectors(method, data, callbacks, run, pretrained, n_layers, warm_start, finish)
        method.take_pretrained(vectors)
        manifest["pretrained"] = vectors.origin
    if isinstance(method, ClosedForm):
        _learn(method, callbacks, warm_start)
    else:
        assert isinstance(method, GraphMethod)
        manifest |= _train(method, data, callbacks, run, resume, vectors, start, keep_last, warm_start, finish)
    if callbacks.stop_requested():
        raise Interrupted
    drawn = dial_curve(method, Evaluator(data, 20, "valid", "drop")) if dial and len(data.valid) else None
    manifest["dial"] = finite(drawn.as_json()) if drawn else without_curve()
    if rerank is not None:
        manifest["rerank"] = rerank.as_json()
    manifest |= about or {}
    manifest |= {"finished": now(), "seconds": round(time.perf_counter() - clock, 3)}
    return Model(
        method,
        data.user_ids,
        data.item_ids,
        data.train,
        data.candidates,
        manifest,
        run.path if run else None,
        attributes=data.attributes,
        popularity=data.recent_popularity,
    )


def _learn(method: ClosedForm, callbacks: Callbacks, warm_start: Model | None) -> None:
    """Compute a method in one go."""
    if isinstance(method, GraphMethod):
        _check_memory(method)
    notes = [] if warm_start is None else [f"{method.name} is computed in one go: there is nothing to start from"]
    if callbacks.together.peers.count > 1:
        notes.append(f"{method.name} is computed in one go, by one process")
    callbacks.on_start(method, notes)
    method.learn()


def _train(
    method: GraphMethod,
    data: Dataset,
    callbacks: Callbacks,
    run: RunFolder | None,
    resume: bool,
    vectors: Pretrained | None,
    start: Start | None,
    keep_last: bool,
    before: Model | None,
    finish: bool,
) -> dict[str, Any]:
    """Train in epochs with early stopping on validation; returns entries of the manifest."""
    validation = Evaluator(data, 20, "valid", "drop") if len(data.valid) else None
    processes = callbacks.together.peers.count
    check_shared(method, callbacks.together)
    _check_memory(method)
    notes = _sampling_notes(method)
    manifest: dict[str, Any] = {}
    identity: dict[str, Any] = {
        "dataset": data.fingerprint,
        "method": method.name,
        "settings": method.get_params({"threads"}),
        "kernel": method.compute.kernel,
    }
    if vectors is not None:
        identity["pre-trained model"] = vectors.digest
    if before is not None:
        start = start_from(before, data, method)
        notes.append(in_words(start))
    if start is not None and start.origin:
        manifest |= start.origin
        identity[STARTED_FROM] = start.digest
    if validation is None:
        notes.append(f"the validation split is empty: all {method.epochs:,} epochs are trained, the last is kept")
    reports: list[EpochReport] = []

    def on_epoch(report: EpochReport) -> None:
        reports.append(report)
        if run:
            run.append_history(report)
        callbacks.on_epoch(report)

    trainer = Trainer(
        method,
        validate=validation.recall if validation else None,
        on_epoch=on_epoch,
        checkpoints=run.checkpoints if run else None,
        identity=identity,
        stop_requested=callbacks.stop_requested,
        checkpoint_seconds=callbacks.checkpoint_seconds,
        start=start,
        keep_last=keep_last,
        together=callbacks.together,
        finish=finish,
    )
    checkpoint = run.checkpoints.load() if run and resume else None
    if checkpoint:
        trainer.check(checkpoint)
        if STARTED_FROM in checkpoint.progress["identity"] and STARTED_FROM not in identity:
            raise InputError("the training started from another run; name it with --warm-start, as when it began")
    notes += _resume_history(run, checkpoint, start, resume)
    if finish:
        callbacks.say("nothing is trained: the best epoch of the checkpoint is kept")
    else:
        callbacks.on_start(method, notes)
    announce(trainer, vectors if processes > 1 else None, checkpoint)
    stopping = trainer.run(checkpoint)
    chosen = method.choose(validation) if validation and isinstance(method, ChosenAfterwards) else {}
    done = reports[-1].epoch if reports else (checkpoint.epoch - 1 if checkpoint else 0)
    return manifest | {
        "validation": validation.protocol.as_json() if validation else None,
        "compute": method.compute.as_json() | ({"processes": processes} if processes > 1 else {}),
        "training": {
            "epochs": done,
            "best_epoch": start.best_epoch if start and stopping.best_epoch < start.epoch else stopping.best_epoch,
            "best_valid_recall@20": stopping.best_measured if validation else None,
            **({"stopped": f"finished early after epoch {done}"} if finish else {}),
        },
        "tuned": chosen,
    }


def _resume_history(
    run: RunFolder | None, checkpoint: Checkpoint | None, start: Start | None, resume: bool
) -> list[str]:
    """Cut or begin the run's history; returns a note on what is continued."""
    if run and checkpoint:
        run.cut_history(checkpoint.epoch - 1)
    elif run:
        run.write_history(start.history if start else ())
    if checkpoint:
        return [f"resuming in epoch {checkpoint.epoch:,}"]
    if start is not None and start.epoch > 1:
        return [f"the finished run is trained further, from epoch {start.epoch:,} on"]
    return ["there is no checkpoint to resume from: training starts afresh"] if resume else []


def _pretrained_vectors(
    method: GraphMethod,
    data: Dataset,
    callbacks: Callbacks,
    run: RunFolder | None,
    given: str | Path | Pretrained | None,
    n_layers: int,
    before: Model | None,
    finish: bool,
) -> Pretrained:
    """Vectors of the pre-trained model: those given, or of a LightGCN that is trained first."""
    if isinstance(given, Pretrained):
        return given
    if given:
        return read_pretrained(given, data, n_layers)

    def train(folder: Path | None, plain: GraphMethod) -> Model:
        if finish:
            raise InputError(
                f"the pre-trained model that {method.name} started from is not at {folder}; name it with "
                "--pretrained, as when the training began"
            )
        kept = f" and kept in {folder}" if folder else ""
        callbacks.on_part(f"pre-training for {method.name}", plain)
        callbacks.say(f"{method.name} starts from a pre-trained model: LightGCN is trained first{kept}")
        if folder is None:
            return fit_method(plain, data, callbacks, warm_start=before)
        return fit_into(folder, data, plain, resume=folder.exists(), callbacks=callbacks, warm_start=before)

    return train_or_reuse(data, method, n_layers, run.path.parent if run else None, train, before)


def evaluate(
    model: Model,
    data: Dataset,
    k: int | tuple[int, ...] = 20,
    overlap: Overlap = "drop",
    mask_valid: bool = False,
    popularity_dial: float | str | None = None,
    rerank: Reranker | str | None = "run",
    group_by: str | None = None,
    split: Literal["valid", "test"] = "test",
) -> Evaluation:
    """Metrics of the test split, overall and for popular and niche items, with the protocol they were made by.

    The model was trained on the dataset, or on an earlier state of the same log (`dpaa.runs.measure`).
    `popularity_dial` and `rerank` as in `Model.recommend`.  `group_by` is a column of the items: accuracy is then also
    counted on the items of each value, as `recall@20/genre=Drama`.  Settings are chosen by
    `split="valid"`, so that the test split stays unseen.
    """
    if split not in ("valid", "test"):
        raise InputError(f"split must be valid or test, got {split!r}")
    need_type(model, Model, "model", "make one with dpaa.fit or read one with dpaa.load")
    _need_dataset(data)
    return measured(model, Evaluator(data, k, split, overlap, mask_valid, group_by), popularity_dial, rerank)


def fit_final(before: Model | str | Path, data: Dataset, callbacks: Callbacks | None = None) -> Model:
    """Fit the method of a run on train, validation and test pairs, for production.

    Hyperparameters, number of epochs, chosen strengths, dial and re-ranker are the run's.  Nothing is held out, so the
    model cannot be evaluated.

    Parameters
    ----------
    before : a model or run folder whose hyperparameters and epoch were chosen on validation
    data : the dataset that it was trained on

    Returns
    -------
    the fitted model
    """
    chosen = load(before) if isinstance(before, str | Path) else before
    _need_dataset(data)
    chosen.check_trained_on(data, "name the dataset that the run was trained on")
    whole = data.with_all_pairs()
    method, how = final_training(chosen, whole, fit_method)
    return fit_method(method, whole, callbacks, **how)


def _need_dataset(data: object) -> None:
    need_type(data, Dataset, "data", "read one with dpaa.read_dataset or make one with dpaa.Dataset.from_frame")


def _check_memory(method: GraphMethod) -> None:
    """Refuse a training whose tables cannot fit: the table, two moments, the best epoch and the read-out."""
    graph, size = method.graph, method.embedding_size
    needed, free = 4 * 5 * size * graph.n_nodes + 80 * graph.n_edges, memory_at_hand()
    if needed > free:
        raise InputError(
            f"training {method.name} would take about {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are "
            f"free; use a smaller embedding_size (now {size}) or a larger machine"
        )


def _sampling_notes(method: GraphMethod) -> list[str]:
    """Users that no triple is drawn for; an error where there are no others."""
    taken = torch.bincount(method.graph.edge_user, minlength=method.graph.n_users)
    without, with_every = int((taken == 0).sum()), int((taken == method.graph.n_items).sum())
    if without + with_every == len(taken):
        raise InputError(
            "no user has both a positive item and one left to draw as a negative; there is nothing to learn from"
        )
    notes = []
    if without:
        users = counted(without, "user has no training item and is", "users have no training item and are")
        notes.append(f"{users} never drawn")
    if with_every:
        users = counted(with_every, "user took every item and is", "users took every item and are")
        notes.append(f"{users} skipped: there is nothing to prefer")
    return notes
