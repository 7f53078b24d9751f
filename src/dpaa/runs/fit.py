"""Dataset and method become a model, in memory or in a run folder."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from dpaa._text import finite
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_type
from dpaa.evaluation.dial_curve import dial_curve, without_curve
from dpaa.evaluation.evaluator import Evaluation, Evaluator, Overlap
from dpaa.methods import find_method
from dpaa.methods.base import Method
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.settings import Settings
from dpaa.plugins import origin_of
from dpaa.reranking.base import Reranker
from dpaa.runs.build import make_method
from dpaa.runs.callbacks import Callbacks, Preview
from dpaa.runs.context import RunContext
from dpaa.runs.final import final_training
from dpaa.runs.folder import RunFolder, now
from dpaa.runs.further import train_further
from dpaa.runs.measure import measured
from dpaa.runs.model import Model, load
from dpaa.runs.notebook import watched
from dpaa.runs.tracking import LogTo, tracked
from dpaa.training.checkpoint import STARTED_FROM
from dpaa.training.start import Start
from dpaa.training.trainer import Interrupted

DEFAULT = "lightgcn"
"""The method where none is named."""
__all__ = ["DEFAULT", "Callbacks", "Preview", "evaluate", "fit", "fit_into", "fit_method", "make_method"]


def fit(
    data: Dataset,
    method: str | type[Method] | type[Settings] | Settings | None = None,
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
    before: Model, method: str | type[Method] | type[Settings] | Settings | None, settings: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Method and settings of a training that starts from a model: its own, as far as none are given."""
    own = before.method
    if method is None:
        method = type(own)
    if find_method(method) is not type(own) or isinstance(method, Settings):
        return method, settings
    return method, own.settings.model_dump(exclude={"device", "threads"}) | settings


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
    """Train and wrap up; with a run folder, keep history and checkpoints there.

    `dial=False` leaves out the popularity dial's curve, which the parts of a staged method need not have; `trials`:
    how many settings were tried before these were taken, for the manifest; `start` and `keep_last` as in `Trainer`;
    `warm_start`: a model to begin with (`dpaa.runs.warm_start`); `about`: further entries of the manifest; `finish`:
    take the best epoch of the run's checkpoint.
    """
    callbacks = callbacks or Callbacks()
    if pretrained and method.pretrained_layers() is None:
        raise InputError(f"{method.name} with these settings uses no pre-trained model; leave --pretrained out")
    started, clock = now(), time.perf_counter()
    manifest: dict[str, Any] = {
        "method": method.name,
        "method_origin": origin_of(type(method)),
        "seed": method.settings.seed,
        "dataset": {
            "name": data.name,
            "path": str(data.path.resolve()) if data.path else None,
            "fingerprint": data.fingerprint,
        },
        "started": started,
        "tuning": {"trials": trials},
    }
    context = RunContext(data, callbacks, run, resume, pretrained, _fit_part, start, keep_last, warm_start, finish)
    manifest |= method.train(context)
    if callbacks.stop_requested():
        raise Interrupted
    drawn = dial_curve(method, Evaluator(data, 20, "valid", "drop")) if dial and len(data.valid) else None
    manifest["dial"] = finite(drawn.as_json()) if drawn else without_curve(method.popularity_dial)
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


def _fit_part(method: Method, data: Dataset, callbacks: Callbacks, folder: Path | None, **how: Any) -> Model:
    """A training that another one needs: taken up where it was begun before."""
    if folder is None:
        return fit_method(method, data, callbacks, **how)
    return fit_into(folder, data, method, resume=folder.exists(), callbacks=callbacks, **how)


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
