"""Dataset and method become a model, in memory or in a run folder."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dpaa._machine import memory_at_hand
from dpaa._text import counted, finite
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_type
from dpaa.evaluation.dial_curve import dial_curve, without_curve
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods import find_method
from dpaa.methods.base import ChosenAfterwards, ClosedForm, Method
from dpaa.methods.graph_method import EARLIER_DEFAULTS, PAPER_TRAINING, GraphMethod, with_earlier_defaults
from dpaa.methods.pretrained import Pretrained, UsesPretrained, needed_layers
from dpaa.plugins import origin_of
from dpaa.ranking.reranker import Reranker, stored_reranker
from dpaa.runs.distributed import announce, check_shared
from dpaa.runs.folder import CONFIG, RunFolder, now
from dpaa.runs.measure import FINAL, evaluate, need_dataset
from dpaa.runs.model import Model, load, make_method
from dpaa.runs.pretrained import read_pretrained, train_or_reuse
from dpaa.runs.progress import Callbacks, watched
from dpaa.runs.tracking import LogTo, tracked
from dpaa.runs.warm_start import ORIGIN, continue_training, in_words
from dpaa.runs.warm_start import warm_start as start_from
from dpaa.training.checkpoint import STARTED_FROM, Checkpoint
from dpaa.training.start import Start
from dpaa.training.trainer import EpochReport, Interrupted, Trainer

DEFAULT = "lightgcn"
"""The method where none is named."""
__all__ = [
    "DEFAULT",
    "Callbacks",
    "evaluate",
    "final_training",
    "fit",
    "fit_final",
    "fit_into",
    "fit_method",
    "make_method",
    "plan_training",
]


def fit(
    data: Dataset,
    method: str | type[Method] | Method | None = None,
    *,
    pretrained: str | Path | None = None,
    rerank: Reranker | None = None,
    progress: bool | None = None,
    warm_start: Model | str | Path | None = None,
    log_to: LogTo = None,
    **hyperparameters: Any,
) -> Model:
    """Train a method on a dataset.

    Early stopping looks at recall@20 of the validation split; the test split is not opened.

    Parameters
    ----------
    data : the dataset
    method : name (`"dpaa"`), configured object (`dpaa.DPAA(layers=2)`) or class; default: LightGCN
    pretrained : run folder or embeddings, for methods that use a model trained before; default: LightGCN is trained
    rerank : re-ranker that makes lists from scores; the model keeps it
    progress : show a progress bar or lines; None = in notebooks only
    warm_start : model or run of earlier data: known users and items keep their vectors, new ones begin at their
        neighbours', and training is shorter; method and hyperparameters are the model's where none are given
    log_to : "mlflow", "wandb", both, or objects of `dpaa.runs.tracking`
    hyperparameters : as `dpaa methods` lists them

    Returns
    -------
    the fitted model
    """
    need_dataset(data)
    before = load(warm_start) if isinstance(warm_start, str | Path) else warm_start
    if before is not None:
        need_type(before, Model, "warm_start", "give a model of dpaa.fit or dpaa.load, or a run folder")
        method, hyperparameters = _like(before, method, hyperparameters)
    if not isinstance(pretrained, str | Path | None):
        raise InputError(f"pretrained must be a path, got {pretrained!r}; give a run folder or files of embeddings")
    fitted = make_method(data, DEFAULT if method is None else method, hyperparameters)
    with tracked(log_to, fitted, data, watched(progress)) as (callbacks, finished):
        return finished(fit_method(fitted, data, callbacks, pretrained=pretrained, rerank=rerank, warm_start=before))


def _like(before: Model, method: Any, hyperparameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Method and hyperparameters of a training that starts from a model: its own, where none are given."""
    own = before.method
    if method is None:
        method = type(own)
    if find_method(method) is not type(own) or isinstance(method, Method):
        return method, hyperparameters
    return method, own.get_params({"device", "threads"}) | hyperparameters


def plan_training(
    folder: Path,
    method: str | None,
    hyperparameters: dict[str, Any],
    before: Model | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    finish: bool = False,
) -> tuple[str, dict[str, Any]]:
    """Complete a call from the run that it resumes, finishes, continues or starts from.

    Parameters
    ----------
    folder : the run folder
    method, hyperparameters : as given; they come on top of the run's
    before : model of earlier data to start from
    resume, overwrite, finish : as in `fit_into`

    Returns
    -------
    name and hyperparameters of the method
    """
    run = RunFolder.to_finish(folder, overwrite) if finish else RunFolder(folder)
    if finish or (resume and not overwrite and run.finished):
        if before is not None and not finish:
            raise InputError(f"{folder} is finished and is trained further from itself; leave --warm-start out")
        config = run.read_json(CONFIG)
        own = str(config.pop("method", DEFAULT))
        chosen = own if method is None else str(method)
        kind = find_method(chosen)
        return chosen, (with_earlier_defaults(kind, config) if kind.name == own else {}) | hyperparameters
    chosen = (DEFAULT if before is None else before.method.name) if method is None else str(method)
    if before is not None:
        hyperparameters = _like(before, chosen, hyperparameters)[1]
    begun = RunFolder.to_resume(folder, overwrite) if resume else None
    config = begun.read_json(CONFIG) if begun else {}
    if config.get("kernel") is None or config.get("method") != find_method(chosen).name:
        return chosen, hyperparameters
    # The kernel that was chosen stays, and so do defaults that were others when the run began.
    kept = {name: config[name] for name in ("kernel", *PAPER_TRAINING) if name in config}
    return chosen, EARLIER_DEFAULTS | kept | hyperparameters


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
    """Train into a run folder: history line by line, checkpoints, and the finished run.

    A wrong hyperparameter that shows on the way (a loss that is no number) leaves no folder behind; an interrupted
    training does.

    Parameters
    ----------
    folder : the run folder
    data, method : from `make_method`
    overwrite : replace a run in the folder, once the new one is whole
    resume : continue from a checkpoint, or a finished run where more epochs are allowed now
    finish : train no more; the best epoch of the checkpoint of an unfinished run becomes the model
    callbacks, how : as in `fit_method`

    Returns
    -------
    the fitted model
    """
    callbacks = callbacks or Callbacks()
    done = RunFolder(folder)
    continued = resume and not overwrite and done.finished
    if finish:
        how["finish"] = resume = True
        checkpoint = RunFolder.to_finish(folder, overwrite).checkpoints.load()
        started = checkpoint is not None and STARTED_FROM in checkpoint.progress["identity"]
        continued = started and done.finished and not how.get("warm_start")
    if continued:
        stored = stored_reranker(done.read_manifest()[0].get("rerank"), done.path)
        how["rerank"] = how.get("rerank") or stored
        if not finish and done.finished_before(method, data.fingerprint, how["rerank"]):
            callbacks.say(f"{folder} is finished already, with these hyperparameters on this dataset")
            return load(folder)
        if further := continue_training(folder, method, data):
            how["start"], how["pretrained"] = further[0], how.get("pretrained") or further[1]
            overwrite = True  # the new run takes the place of the old one when it is whole
    with RunFolder.begin(folder, overwrite=overwrite, resume=resume) as run:
        if not run.has_config:  # that of a run to be resumed stays until its checkpoint is loaded
            run.write_config(method)
        model = fit_method(method, data, callbacks, run, resume, **how)
        run.write_config(method)
        written = run.write_model(model)
    return replace(model, path=Path(folder), digest=written)


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
    callbacks : functions that are called on the way, and may stop it
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
    if isinstance(method, UsesPretrained) and (n_layers := needed_layers(method)) is not None:
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


def fit_final(before: Model | str | Path, data: Dataset, callbacks: Callbacks | None = None) -> Model:
    """Fit the method of a run on train, validation and test pairs, for production.

    Parameters
    ----------
    before, data : as in `final_training`
    callbacks : as in `fit_method`

    Returns
    -------
    the fitted model, which cannot be evaluated: nothing is held out
    """
    method, whole, how = final_training(before, data)
    return fit_method(method, whole, callbacks, **how)


def final_training(before: Model | str | Path, data: Dataset) -> tuple[Method, Dataset, dict[str, Any]]:
    """Prepare the fit of a run's method on all pairs of its dataset.

    Methods are trained for as many epochs as were best on validation; one that was started from an earlier run starts
    from the chosen run itself.  Strengths that were chosen on validation, the dial and the re-ranker stay.

    Parameters
    ----------
    before : model or run folder whose hyperparameters and epoch were chosen on validation
    data : the dataset that it was trained on

    Returns
    -------
    the method, the dataset of all pairs, and further arguments of `fit_method` or `fit_into`
    """
    chosen = load(before) if isinstance(before, str | Path) else before
    need_dataset(data)
    chosen.check_trained_on(data, "name the dataset that the run was trained on")
    whole = data.with_all_pairs()
    method, how = _final(chosen, whole)
    return method, whole, how


def _final(before: Model, whole: Dataset) -> tuple[Method, dict[str, Any]]:
    own, manifest = before.method, before.manifest
    hyperparameters = own.get_params({"device", "threads"}) | manifest.get("tuned", {})
    how: dict[str, Any] = {"dial": False, "rerank": before.reranker()}
    if isinstance(own, GraphMethod):
        hyperparameters["epochs"] = max(1, (manifest.get("training") or {}).get("best_epoch") or 1)
        how |= {"keep_last": True, "warm_start": before if ORIGIN in manifest else None}
    method = make_method(whole, type(own), hyperparameters)
    if (layers := needed_layers(method)) is not None:
        how["pretrained"] = _final_pretrained(before, whole, layers)
    how["about"] = {
        FINAL: {
            "run": str(before.path) if before.path else None,
            "dataset": whole.name,
            "epochs": hyperparameters.get("epochs"),
        },
        "dataset": {"name": whole.name, "path": before.trained_on.path, "fingerprint": whole.fingerprint},
        "dial": manifest.get("dial"),
    }
    return method, how


def _final_pretrained(before: Model, whole: Dataset, layers: int) -> Pretrained | str:
    """The pre-trained model, fitted on all pairs too; embeddings from files are taken as they are."""
    origin = before.manifest.get("pretrained") or {}
    if "embeddings" in origin:
        return str(origin["embeddings"])
    path = origin.get("run")
    if not path or not Path(path).is_dir():
        raise InputError(
            f"the pre-trained model of {before.path} is no longer at {path}; train the run again and keep the folder"
        )
    method, how = _final(load(path), whole)
    fitted = fit_method(method, whole, **how).method
    assert isinstance(fitted, GraphMethod)
    return Pretrained.of(fitted, layers, {"method": fitted.name, FINAL: str(path)})


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
