"""A model on the test pairs of a dataset: the one it was trained on, or a later state of the same log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.ids import encode, is_text
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluation, Evaluator
from dpaa.ranking.reranker import Reranker
from dpaa.runs.final import FINAL
from dpaa.runs.lists import Dial
from dpaa.runs.model import Model
from dpaa.words import counted

SAME_LOG = 0.5
"""Share of a model's training pairs that a later state of its log must still have."""


def measured(
    model: Model, evaluator: Evaluator, dial: Dial = None, rerank: Reranker | str | None = "run"
) -> Evaluation:
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
    where = str(model.path or "the model")
    if final := model.manifest.get(FINAL):
        raise InputError(
            f"{where} was fitted on all pairs of {final['dataset']}, its test pairs too; evaluate the run that it was "
            f"made from ({final['run']})"
        )
    if model.trained_on.fingerprint == data.fingerprint:
        return evaluator.evaluate(model.method, kappa, reranker)
    check_same_log(model, data, where)
    users = data.user_ids.gather(evaluator.users).alias(Column.USER)
    masked = evaluator.masked
    hidden = pl.DataFrame([data.user_ids.gather(masked.user), data.item_ids.gather(masked.item)])
    lists = model.recommend(
        users,
        evaluator.protocol.k[-1],
        seen=True,
        items=None if data.candidates is None else data.item_ids.gather(data.candidates),
        exclude_pairs=hidden.rename(dict(zip(hidden.columns, (Column.USER, Column.ITEM), strict=True))),
        popularity_dial=kappa,
        rerank=reranker,
    )
    found = np.full((len(users), evaluator.protocol.k[-1]), -1, dtype=np.int64)
    found[encode(lists[Column.USER], users), lists["rank"].to_numpy() - 1] = encode(lists[Column.ITEM], data.item_ids)
    both = ((users, model.user_ids), (data.item_ids, model.item_ids))
    words = None if reranker is None else reranker.in_words()
    known_users, known_items = ((encode(now, ids) >= 0).sum() for now, ids in both)
    note = (
        f"{where} was trained on an earlier state of {data.name}: it knows {known_users:,} of {len(users):,} users and "
        f"{known_items:,} of {data.n_items:,} items"
    )
    return replace(
        evaluator.evaluate_lists(found),
        protocol=replace(evaluator.protocol, popularity_dial=kappa, rerank=words),
        notes=(note,),
    )


def check_same_log(model: Model, data: Dataset, where: str) -> None:
    """Refuse a model of another log, and one that was trained on some of the test pairs."""
    other = f"{where} was trained on another dataset than {data.name}"
    remedy = "compare models on the dataset they were trained on, or on later states of its log"
    for ids, now, what in ((model.user_ids, data.user_ids, "users"), (model.item_ids, data.item_ids, "items")):
        if is_text(ids) != is_text(now):
            raise InputError(f"{other}: its {what} have ids of another type; {remedy}")
    user, item = encode(model.user_ids, data.user_ids), encode(model.item_ids, data.item_ids)
    pairs = user[model.train.user].astype(np.int64) * data.n_items + item[model.train.item]
    pairs = pairs[(user[model.train.user] >= 0) & (item[model.train.item] >= 0)]
    kept = [np.isin(pairs, data.split(split).keys(data.n_items)) for split in ("train", "valid", "test")]
    share = float(np.any(kept, axis=0).sum()) / max(len(model.train), 1)
    if share < SAME_LOG:
        raise InputError(f"{other}: {share:.0%} of its training pairs are there; {remedy}")
    if leaked := int((kept[2] & ~kept[0]).sum()):
        pairs_in_words = counted(leaked, "test pair", "test pairs")
        raise InputError(
            f"{where} was trained on {pairs_in_words} of {data.name}, so it cannot be measured there; split the log by "
            "time, or append to a dataset instead of making it again"
        )
