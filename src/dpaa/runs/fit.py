"""Training of a method on a dataset, in memory or into a run folder."""

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dpaa._io import check_within, locked
from dpaa._machine import memory_at_hand
from dpaa._text import finite
from dpaa.data.dataset import Dataset, dataset_of
from dpaa.errors import InputError, need_type
from dpaa.evaluation.dial_curve import NO_CURVE, dial_curve
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods import find_method
from dpaa.methods._options import with_earlier_defaults
from dpaa.methods.base import ChosenAfterwards, ClosedForm, Method
from dpaa.methods.graph_method import GraphMethod, WholeTable
from dpaa.methods.pretrained import PRETRAINED, Pretrained, UsesPretrained, needed_layers
from dpaa.plugins import origin_of
from dpaa.ranking.reranker import Reranker, stored_reranker
from dpaa.runs._warm_start import MAY_CHANGE, ORIGIN, continue_training, read_pretrained
from dpaa.runs._warm_start import warm_start as start_from
from dpaa.runs.folder import CONFIG, RunFolder, now
from dpaa.runs.measure import FINAL, evaluate, need_dataset
from dpaa.runs.model import Model, load, make_method
from dpaa.runs.progress import Callbacks, watched_training
from dpaa.training import Checkpoint, Start, distributed
from dpaa.training.trainer import EpochReport, Interrupted, Trainer

DEFAULT = "lightgcn"
"""The method where none is named."""
__all__ = ["Callbacks", "evaluate", "fit", "fit_into", "fit_method", "make_method"]


def fit(
    data: Any,
    method: str | type[Method] | Method | None = None,
    *,
    pretrained: Model | str | Path | None = None,
    rerank: Reranker | None = None,
    progress: bool = False,
    warm_start: Model | str | Path | None = None,
    callbacks: Callbacks | None = None,
    **hyperparameters: Any,
) -> Model:
    """Train a method on a dataset.

    Early stopping looks at recall@20 of the validation split; the test split is not opened.

    Parameters
    ----------
    data : the dataset; or a dataframe of users and items or a SciPy matrix, a tenth of which is held out for validation
    method : name (`"dpaa"`), configured object (`dpaa.DPAA(layers=2)`) or class; default: LightGCN
    pretrained : model or run folder, for methods that use a model trained before; default: LightGCN is trained
    rerank : re-ranker that makes lists from scores; the model keeps it
    progress : show lines on standard error
    warm_start : model or run of earlier data: known users and items keep their vectors, new ones begin at their
        neighbours', and training is shorter; method and hyperparameters are the model's where none are given
    callbacks : functions that are called while it is fitted, instead of a display
    hyperparameters : as `dpaa methods` lists them

    Returns
    -------
    the fitted model
    """
    data = dataset_of(data)
    need_dataset(data)
    before = load(warm_start) if isinstance(warm_start, str | Path) else warm_start
    if before is not None:
        need_type(before, Model, "warm_start", "give a model of dpaa.fit or dpaa.load, or a run folder")
        method, hyperparameters = _like(before, method, hyperparameters)
    fitted = make_method(data, DEFAULT if method is None else method, hyperparameters)
    callbacks = watched_training() if progress and callbacks is None else callbacks
    return fit_method(fitted, data, callbacks, pretrained=pretrained, rerank=rerank, warm_start=before)


def _like(before: Model, method: Any, hyperparameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Complete method and hyperparameters of a training from the model that it starts from."""
    own = before.method
    method = type(own) if method is None else method
    if find_method(method) is not type(own) or isinstance(method, Method):
        return method, hyperparameters
    return method, own.get_params({"device", "threads"}) | hyperparameters


def plan_training(
    folder: Path,
    method: str | None,
    hyperparameters: dict[str, Any],
    before: Model | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> tuple[str, dict[str, Any]]:
    """Complete a call from the run that it resumes or starts from.

    Parameters
    ----------
    folder : the run folder
    method, hyperparameters : as given; they override the run's
    before : model of earlier data to start from
    resume, overwrite : as in `fit_into`

    Returns
    -------
    name and hyperparameters of the method
    """
    run = RunFolder(folder)
    if overwrite and (run.replacement.has_config or run.finished):
        run = run.replacement
    if resume and run.has_config:
        config = run.read_json(CONFIG)
        own = str(config.pop("method", DEFAULT))
        kind = find_method(method or own)
        return method or own, (with_earlier_defaults(kind, config) if kind.name == own else {}) | hyperparameters
    if before is None:
        return method or DEFAULT, hyperparameters
    return method or before.method.name, _like(before, method, hyperparameters)[1]


def fit_into(
    folder: str | Path,
    data: Dataset,
    method: Method,
    *,
    overwrite: bool = False,
    resume: bool = False,
    callbacks: Callbacks | None = None,
    **how: Any,
) -> Model:
    """Train into a run folder: history line by line, checkpoints, and the finished run.

    A wrong hyperparameter that shows while training (a loss that is no number) leaves no folder behind; an interrupted
    training does.

    Parameters
    ----------
    folder : the run folder
    data, method : from `make_method`
    overwrite : replace a run in the folder, once the new one is whole
    resume : continue from a checkpoint, or a finished run for more epochs
    callbacks, how : as in `fit_method`

    Returns
    -------
    the fitted model
    """
    callbacks, done, first = callbacks or Callbacks(), RunFolder(folder), not distributed.peers().rank
    if resume and not overwrite and done.finished:
        how["rerank"] = how.get("rerank") or stored_reranker(done.read_manifest()[0].get("rerank"), done.path)
        if done.finished_before(method, data.fingerprint, how["rerank"]):
            if first:
                done.tidy()  # its process may have been killed in its last moment
            callbacks.say(f"{folder} is finished already, with these hyperparameters on this dataset")
            return load(folder)
        if first and (further := continue_training(folder, method, data)):
            how["start"], how["pretrained"] = further[0], how.get("pretrained") or further[1]
            overwrite = True  # the new run replaces the old one when it is whole
    if not first:  # trains along; rank 0 reads and writes the folder
        return fit_method(method, data, callbacks, **how)
    with RunFolder.begin(folder, overwrite=overwrite, resume=resume) as run:
        if not run.has_config:  # that of a run to be resumed stays until its checkpoint is loaded
            run.write_config(method)
        model = fit_method(method, data, callbacks, run, resume, **how)
        run.write_config(method)  # again: of a resumed run, hyperparameters that say when it ends may have changed
        written = run.write_model(model)
    return replace(model, path=Path(folder), digest=written)


def fit_method(
    method: Method,
    data: Dataset,
    callbacks: Callbacks | None = None,
    run: RunFolder | None = None,
    resume: bool = False,
    *,
    pretrained: Model | str | Path | Pretrained | None = None,
    dial: bool = True,
    trials: int = 0,
    start: Start | None = None,
    keep_last: bool = False,
    rerank: Reranker | None = None,
    warm_start: Model | None = None,
    about: dict[str, Any] | None = None,
) -> Model:
    """Fit a method that is attached to the dataset's graph.

    Parameters
    ----------
    method, data : from `make_method`
    callbacks : functions that are called while it is fitted, and may stop it
    run : the folder that keeps history and checkpoints
    resume : continue from the folder's checkpoint
    pretrained : for methods that use a model trained before; trained first by default
    dial : whether the curve of the popularity dial is measured on validation
    trials : how many configurations were tried before this one, for the manifest
    start, keep_last : as in `Trainer`
    rerank : re-ranker that the model keeps
    warm_start : model of earlier data to start from
    about : further entries of the manifest

    Returns
    -------
    the fitted model; of several processes, that of rank 0 has all vectors
    """
    callbacks, clock = callbacks or Callbacks(), time.perf_counter()
    path = str(data.path.resolve()) if data.path else None
    manifest: dict[str, Any] = {
        "method": method.name,
        "method_origin": origin_of(type(method)),
        "seed": method.seed,
        "dataset": {"name": data.name, "path": path, "fingerprint": data.fingerprint},
        "started": now(),
        "tuning": {"trials": trials},
    }
    identity: dict[str, Any] = {"dataset": data.fingerprint, "method": method.name}
    notes: list[str] = []
    n_layers = needed_layers(method)
    if pretrained is not None and n_layers is None:
        raise InputError(f"{method.name} with these hyperparameters uses no pre-trained model; omit --pretrained")
    if n_layers is not None:
        assert isinstance(method, GraphMethod)
        assert isinstance(method, UsesPretrained)
        if pretrained is None and distributed.peers().count == 1:
            beside = run.path.parent if run else None
            pretrained = train_or_reuse(data, method, n_layers, beside, callbacks, warm_start)
        vectors = _pretrained_vectors(method, data, n_layers, pretrained)
        notes = method.take_pretrained(vectors)
        manifest["pretrained"], identity["pre-trained model"] = vectors.origin, vectors.digest
    if isinstance(method, ClosedForm):
        callbacks.on_start(method, [])
        method.learn()
    else:
        assert isinstance(method, GraphMethod)
        _check_memory(method)
        start = start_from(warm_start, data, method) if warm_start is not None else start
        checkpoint = run.checkpoints.load() if run and resume else None
        manifest |= _train(method, data, callbacks, run, checkpoint, identity, start, keep_last, notes)
    if callbacks.stop_requested():  # a closed form is not interrupted on its way, but nothing is measured after it
        raise Interrupted
    measured = dial and len(data.valid) and not distributed.peers().rank
    # Measured once, here: who turns the dial later reads the curve from the manifest.
    drawn = dial_curve(method, Evaluator(data, 20, "valid", "drop")) if measured else None
    manifest["dial"] = finite(drawn.as_json()) if drawn else dict(NO_CURVE)
    manifest |= ({"rerank": rerank.as_json()} if rerank is not None else {}) | (about or {})
    manifest |= {"finished": now(), "seconds": round(time.perf_counter() - clock, 3)}
    known = data.user_ids, data.item_ids, data.train, data.candidates
    folder = run.path if run else None
    return Model(method, *known, manifest, folder, data.attributes, popularity=data.recent_popularity)


def _pretrained_vectors(
    method: Method, data: Dataset, n_layers: int, given: Model | str | Path | Pretrained | None
) -> Pretrained:
    """Vectors of the given model, in every process; rank 0 alone reads files."""
    if given is None:
        raise InputError(f"{method.name} starts from a pre-trained model; train one first and name it: --pretrained")
    if not isinstance(given, Pretrained) and not distributed.peers().rank:
        given = read_pretrained(given, data, n_layers)
    vectors = distributed.peers().broadcast(given)
    assert isinstance(vectors, Pretrained)
    return vectors


def _train(
    method: GraphMethod,
    data: Dataset,
    callbacks: Callbacks,
    run: RunFolder | None,
    checkpoint: Checkpoint | None,
    identity: dict[str, Any],
    start: Start | None,
    keep_last: bool,
    notes: list[str],
) -> dict[str, Any]:
    """Train in epochs with early stopping on validation; returns entries of the manifest."""
    processes = distributed.peers().count
    if processes > 1 and isinstance(method, WholeTable):
        raise InputError(
            f"{method.name} computes with whole tables and cannot be trained in several processes; train it in one"
        )
    # Rank 0 alone reads files; the others get what it has read.
    start, checkpoint = distributed.peers().broadcast((start, checkpoint))
    identity |= {"kernel": method.compute.kernel} | method.get_params(set(MAY_CHANGE))
    if start is not None:
        identity["start"] = start.digest
    validation = Evaluator(data, 20, "valid", "drop") if len(data.valid) else None
    done = checkpoint.epoch - 1 if checkpoint else 0
    if run:
        run.write_history(run.history(done) if checkpoint else start.history if start else ())

    def on_epoch(report: EpochReport) -> None:
        nonlocal done
        done = report.epoch
        if run:
            run.append_history(report)
        callbacks.on_epoch(report)

    callbacks.on_start(method, [*notes, *_notes(method, start, checkpoint, validation)])
    trainer = Trainer(
        method,
        validate=validation.recall if validation else None,
        callbacks=replace(callbacks, on_epoch=on_epoch),
        checkpoints=run.checkpoints if run else None,
        identity=identity,
        start=start,
        keep_last=keep_last,
    )
    best = trainer.run(checkpoint)
    tuned = {}
    if validation and isinstance(method, ChosenAfterwards) and not distributed.peers().rank:
        tuned = method.choose(validation)
    training: dict[str, Any] = {
        "epochs": done,
        "best_epoch": start.best_epoch if start and best.epoch < start.epoch else best.epoch,
        "best_valid_recall@20": best.value if validation else None,
    }
    if trainer.ended_early:
        training["stopped"] = f"finished early after epoch {done}"
    return (start.origin if start else {}) | {
        "validation": validation.protocol.as_json() if validation else None,
        "compute": method.compute.as_json() | ({"processes": processes} if processes > 1 else {}),
        "training": training,
        "tuned": tuned,
        "lookups": validation.lookups if validation else 0,  # strengths tried on validation, for `tuned`
    }


def _notes(
    method: GraphMethod, start: Start | None, checkpoint: Checkpoint | None, validation: Evaluator | None
) -> list[str]:
    """List what to know of a training; an error where there is nothing to learn."""
    taken = torch.bincount(method.graph.edge_user, minlength=method.graph.n_users)
    unused = int(((taken == 0) | (taken == method.graph.n_items)).sum())
    if unused == len(taken):
        raise InputError("no user has both a positive item and one to draw as a negative; there is nothing to learn")
    notes = [f"{unused:,} users have no training item, or every item, and are never drawn"] if unused else []
    if start and start.epoch == 1:  # of a warm start
        counts = start.origin[ORIGIN]["users"], start.origin[ORIGIN]["items"]
        kept, begun, random = (sum(side[key] for side in counts) for key in ("kept", "from_neighbours", "random"))
        notes.append(
            f"warm start from a run of {start.origin[ORIGIN]['method']}: {kept:,} users and items keep their vectors, "
            f"{begun:,} start at their neighbours', {random:,} at random numbers"
        )
    if validation is None:
        notes.append(f"the validation split is empty: all {method.epochs:,} epochs are trained, the last is kept")
    if checkpoint:
        notes.append(f"resuming in epoch {checkpoint.epoch:,}")
    return notes


def train_or_reuse(
    data: Dataset,
    settings: GraphMethod,
    n_layers: int,
    beside: Path | None,
    callbacks: Callbacks,
    before: Model | None = None,
) -> Pretrained:
    """Train LightGCN on the same data, with the same seed and hyperparameters; later runs reuse it.

    Parameters
    ----------
    data : the dataset
    settings : the method whose hyperparameters are used
    n_layers : layers that are needed beyond layer 0
    beside : folder in which the run is kept; None keeps it in memory
    callbacks : of its training
    before : model that its training starts from

    Returns
    -------
    the vectors
    """
    kind = find_method(PRETRAINED)
    shared = {name: getattr(settings, name) for name in kind.hyperparameters.model_fields}
    plain = make_method(data, PRETRAINED, shared)
    say = f"{settings.name} starts from a pre-trained model: LightGCN is trained first"
    if beside is None or (before is not None and before.digest is None):
        callbacks.say(say)
        return read_pretrained(fit_method(plain, data, callbacks, warm_start=before), data, n_layers)
    relevant = {name: shared[name] for name in shared if name not in ("threads", "device")}
    made_from: list[Any] = [data.fingerprint, relevant, *([] if before is None else [before.digest])]
    made_from += [kind.version] if kind.version > 1 else []
    key = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]
    folder = check_within(beside / f"pretrained-{PRETRAINED}-{key}", beside)
    with locked(beside / f".{folder.name}.turn", wait=True):  # another process may be training the same
        if not RunFolder(folder).finished:
            callbacks.say(f"{say} and kept in {folder}")
            fit_into(folder, data, plain, resume=folder.exists(), callbacks=callbacks, warm_start=before)
    return read_pretrained(folder, data, n_layers)


def final_training(before: Model | str | Path, data: Dataset) -> tuple[Method, Dataset, dict[str, Any]]:
    """Prepare the fit of a run's method on train, validation and test pairs, for production.

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
        hyperparameters["epochs"] = max(1, before.entry("training").get("best_epoch") or 1)
        how |= {"keep_last": True, "warm_start": before if ORIGIN in manifest else None}
    method = make_method(whole, type(own), hyperparameters)
    if needed_layers(method) is not None:  # the pre-trained model is fitted on all pairs, too
        path = before.pretrained_run
        if not path or not Path(path).is_dir():
            raise InputError(f"the pre-trained model of {before.path} is no longer at {path}; train the run again")
        plain, plain_how = _final(load(path), whole)
        how["pretrained"] = fit_method(plain, whole, **plain_how)
    run = str(before.path) if before.path else None
    how["about"] = {
        FINAL: {"run": run, "dataset": whole.name, "epochs": hyperparameters.get("epochs")},
        "dataset": {"name": whole.name, "path": before.trained_on.path, "fingerprint": whole.fingerprint},
        "dial": manifest.get("dial"),
    }
    return method, how


def _check_memory(method: GraphMethod) -> None:
    """Refuse a training whose tables cannot fit: the table, two moments, the best epoch and the read-out."""
    graph, size = method.graph, method.embedding_size
    needed, free = ((4 * 5 * size * graph.n_nodes + 80 * graph.n_edges) / 1e9, memory_at_hand() / 1e9)  # GB
    if needed > free:
        raise InputError(
            f"training {method.name} takes about {needed:.1f} GB, {free:.1f} are free; reduce embedding_size ({size})"
        )
