"""Evaluation of a model on its dataset, or on a later state of the same log."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl

from dpaa.data.dataset import Dataset
from dpaa.data.ids import Column, encode
from dpaa.errors import InputError, need_type
from dpaa.evaluation.dial_curve import DialCurve, check_objective, dial_curve
from dpaa.evaluation.evaluator import Evaluation, Evaluator, Overlap
from dpaa.runs.lists import Dial, Rerank
from dpaa.runs.model import Model

SAME_LOG = 0.5
"""Share of a model's training pairs that a later state of its log must still have."""
FINAL = "final"
"""Key of the manifest of a run that was fitted on all pairs."""


def evaluate(
    model: Model | Any,
    data: Dataset,
    k: int | tuple[int, ...] = 20,
    overlap: Overlap = "drop",
    mask_valid: bool = False,
    popularity_dial: float | str | None = None,
    rerank: Rerank = "run",
    group_by: str | None = None,
    split: Literal["valid", "test"] = "test",
) -> Evaluation:
    """Metrics of a model's lists, or of another system's, overall and for popular and niche items, with their protocol.

    Parameters
    ----------
    model : trained on the dataset, or on an earlier state of the same log; or lists, as a frame of user_id, item_id and
        rank or score
    data : the dataset
    k : length of the lists, or several
    overlap : what becomes of test pairs that are training pairs too: drop, mask or keep
    mask_valid : whether validation pairs are masked like training pairs
    popularity_dial, rerank : as in `Model.recommend`
    group_by : column of the items; accuracy is also counted for each of its values, as `recall@20/genre=Drama`
    split : "valid" to choose hyperparameters, so that the test split stays unseen

    Returns
    -------
    the evaluation
    """
    if split not in ("valid", "test"):
        raise InputError(f"split must be valid or test, got {split!r}")
    need_dataset(data)
    evaluator = Evaluator(data, k, split, overlap, mask_valid, group_by)
    if isinstance(model, Model) or not hasattr(model, "columns"):  # which a frame of any library has
        need_type(model, Model, "model", "make one with dpaa.fit, read one with dpaa.load, or give a frame of lists")
        return measured(model, evaluator, popularity_dial, rerank)
    if popularity_dial is not None or rerank not in ("run", None):
        raise InputError("lists are evaluated as they are; for a dial or a re-ranker, make a model with dpaa.given")
    return evaluator.evaluate_recommendations(model)


def need_dataset(data: object) -> None:
    """Refuse what is no dataset."""
    need_type(data, Dataset, "data", "read one with dpaa.read_dataset or make one with dpaa.Dataset.from_frame")


def measured(model: Model, evaluator: Evaluator, dial: Dial = None, rerank: Rerank = "run") -> Evaluation:
    """All metrics of a model's lists for the evaluator's users.

    A model of an earlier state of the log ranks what it knows: users it has no training pairs of get its popularity
    list, items it does not know are never listed.  Pairs are masked as for any other model.

    Parameters
    ----------
    model : the fitted model
    evaluator : the test (or validation) pairs
    dial, rerank : popularity dial and re-ranker, as in `Model.recommend`

    Returns
    -------
    the evaluation; a note says how much of the data a model of an earlier state knows
    """
    data, kappa, reranker = evaluator.dataset, model.kappa(dial), model.reranker(rerank)
    name = str(model.path or "the model")
    if final := model.manifest.get(FINAL):
        raise InputError(
            f"{name} was fitted on all pairs of {final['dataset']}, its test pairs too; evaluate {final['run']}"
        )
    if model.trained_on.fingerprint == data.fingerprint:
        return evaluator.evaluate(model.method, kappa, reranker)
    _check_same_log(model, data, name)
    k = evaluator.protocol.k[-1]
    users, masked = data.user_ids.gather(evaluator.users).alias(Column.USER), evaluator.masked
    owners, items = data.user_ids.gather(masked.user), data.item_ids.gather(masked.item)
    recommended = model.recommend(
        users,
        k,
        seen=True,
        items=data.candidate_ids,
        exclude_pairs=pl.DataFrame({Column.USER: owners, Column.ITEM: items}),
        popularity_dial=kappa,
        rerank=reranker,
    )
    lists = np.full((len(users), k), -1, dtype=np.int64)
    rows, columns = encode(recommended[Column.USER], users), recommended["rank"].to_numpy() - 1
    lists[rows, columns] = encode(recommended[Column.ITEM], data.item_ids)
    known = int((encode(users, model.user_ids) >= 0).sum())
    note = f"{name} was trained on an earlier state of {data.name}: it knows {known:,} of {len(users):,} users"
    words = None if reranker is None else reranker.in_words()
    protocol = replace(evaluator.protocol, popularity_dial=kappa, rerank=words)
    return replace(evaluator.evaluate_lists(lists), protocol=protocol, notes=(note,))


def _check_same_log(model: Model, data: Dataset, name: str) -> None:
    """Refuse a model of another log, and one that was trained on some of the test pairs."""
    user, item = encode(model.user_ids, data.user_ids), encode(model.item_ids, data.item_ids)
    pairs = user[model.train.user].astype(np.int64) * data.n_items + item[model.train.item]
    pairs = pairs[(user[model.train.user] >= 0) & (item[model.train.item] >= 0)]
    kept = [np.isin(pairs, data.split(split).keys(data.n_items)) for split in ("train", "valid", "test")]
    share = float(np.any(kept, axis=0).sum()) / max(len(model.train), 1)
    if share < SAME_LOG:
        other = f"trained on another dataset than {data.name}: {share:.0%} of its training pairs are there"
        raise InputError(f"{name} was {other}; evaluate it on its own dataset")
    # A test pair that the dataset trains on too is a matter of the overlap convention, and no leak.
    if leaked := int((kept[2] & ~kept[0]).sum()):
        raise InputError(
            f"{name} was trained on {leaked:,} test pairs of {data.name}, so do not evaluate it there; split by time"
        )


def choose_dial(model: Model, data: Dataset, objective: str) -> DialCurve:
    """Draw the curve of the popularity dial on validation and choose κ for an objective.

    Parameters
    ----------
    model, data : a model and the dataset it was trained on; the test split is not opened
    objective : `ndcg`, `recall` or `niche:X`

    Returns
    -------
    the curve, whose choice is active
    """
    check_objective(objective)
    model.check_trained_on(data, "choose κ on the dataset it was trained on")
    curve = dial_curve(model.method, Evaluator(data, 20, "valid", "drop"), objective)
    return replace(curve, kappa=curve.suggested, chosen_for=objective)
