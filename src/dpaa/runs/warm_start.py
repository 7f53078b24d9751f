"""Training that starts from a model: one of earlier data, or a finished run that is trained for more epochs.

Of a model of earlier data, known users and items keep their vectors; new ones begin at their neighbours':

    e_new = s · v / ‖v‖,     v = Σ over known neighbours j of e_j / √d_j

s is the mean length of the known rows on the same side.  New users begin first, from known items; then new items, from
all users that have a row by then; then users who have taken none but new items.  Nodes without such neighbours begin
at random numbers, as in any training.  All rows are then made shorter (`SHRINK`), which changes no ranking.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from dpaa._text import counted
from dpaa.data.dataset import Dataset
from dpaa.data.ids import encode, is_text, kind
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.tables import INITIAL_DEVIATION
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model, load
from dpaa.training.start import Start

SHRINK = 0.4
"""What the start's rows are multiplied by.  Tables that were trained to their best go on to fit what they know already;
shorter rows, of the same directions, leave room for what is new (after Ash & Adams, NeurIPS 2020)."""
PATIENCE_SHARE = 1 / 3
ORIGIN = "warm_start"
"""Key of the manifest."""
SIDES = ("users", "items")
MAY_CHANGE = ("epochs", "patience", "patience_steps", "minimum_steps", "validation_steps", "threads")
"""Hyperparameters that may change where a finished run is trained for more epochs: they say when training ends."""
KEPT, NEIGHBOURS, RANDOM = "kept", "from_neighbours", "random"


def warm_start(before: Model, data: Dataset, method: GraphMethod) -> Start:
    """Start of a training from a model of earlier data.

    Parameters
    ----------
    before : the model
    data, method : what is to be trained

    Returns
    -------
    tables and parameters to start from, with counts for the manifest
    """
    old = before.method
    name = before.path or "the model"
    if not isinstance(old, GraphMethod):
        raise InputError(
            f"{name} is a run of {old.name}, which has no trained vectors to start from; "
            "start from a run of a method that is trained in epochs"
        )
    width, wanted = old.embedding_size, method.embedding_size
    if width != wanted:
        raise InputError(
            f"{name} has vectors of {width} columns, this training wants {wanted}; set embedding_size={width}"
        )
    graph = method.graph
    table = torch.empty(graph.n_nodes, width).normal_(0.0, INITIAL_DEVIATION, generator=method.generator(0))
    known = np.zeros(graph.n_nodes, dtype=bool)
    counts: dict[str, Any] = {}
    sides = (
        (before.user_ids, data.user_ids, old.tables.user_ego, 0),
        (before.item_ids, data.item_ids, old.tables.item_ego, 1),
    )
    for ids, current, rows, side in sides:
        _check_kind(ids, current, SIDES[side], name)
        index, first = encode(current, ids), side * graph.n_users
        there = np.flatnonzero(index >= 0)
        table[torch.from_numpy(first + there)] = rows[torch.from_numpy(index[there].astype(np.int64))].cpu()
        known[first + there] = True
        counts[SIDES[side]] = {KEPT: len(there)}
    if not known[: graph.n_users].any() and not known[graph.n_users :].any():
        raise InputError(f"{name} knows no user and no item of {data.name}; start from a run on earlier rows of it")
    begun = _begin_at_neighbours(graph, table, known)
    for side_name, part in zip(SIDES, (slice(graph.n_users), slice(graph.n_users, None)), strict=True):
        added = int((begun & ~known)[part].sum())
        counts[side_name] |= {NEIGHBOURS: added, RANDOM: int((~begun[part]).sum())}
    same = old.name == method.name
    step = method.warmup_steps  # the learning rate need not rise from 0 again
    about = {
        "run": str(before.path.resolve()) if before.path else None,
        "method": old.name,
        "fingerprint": before.trained_on.fingerprint,
        "step": step,
        **counts,
    }
    parameters = carried_parameters(method, old) if same else {}
    table = (SHRINK * table).to(method.graph.device)
    return Start(table, parameters, step=step, patience_share=PATIENCE_SHARE, origin={ORIGIN: about})


def _begin_at_neighbours(graph: BipartiteGraph, table: Tensor, known: Any) -> Any:
    """Fill rows of nodes that are not known from neighbours that are; which nodes have a row then.  (n_nodes,)."""
    user, item = (part.cpu().long() for part in (graph.edge_user, graph.edge_item))
    item = item + graph.n_users
    scale = torch.cat([graph.user_degree, graph.item_degree]).cpu().clamp(min=1).rsqrt()
    parts = (slice(graph.n_users), slice(graph.n_users, None))
    length = [_mean_length(table[part][torch.from_numpy(known[part])]) for part in parts]
    have = torch.from_numpy(known.copy())
    for side, (own, other) in ((0, (user, item)), (1, (item, user)), (0, (user, item))):
        edges = (~have[own] & have[other]).nonzero().squeeze(1)
        nodes, row = torch.unique(own[edges], return_inverse=True)
        if not len(nodes):
            continue
        senders = other[edges]
        total = torch.zeros(len(nodes), table.shape[1])
        total.index_add_(0, row, table[senders] * scale[senders, None])
        norm = total.norm(dim=1, keepdim=True)
        reached = norm.squeeze(1) > 0
        scaled = length[side] if length[side] > 0 else length[1 - side]
        table[nodes[reached]] = (scaled * total / norm.clamp(min=1e-30))[reached]
        have[nodes[reached]] = True
    return have.numpy()


def in_words(start: Start) -> str:
    """What is kept, and where the others begin."""
    about = start.origin[ORIGIN]
    kept = " and ".join(counted(about[side][KEPT], side[:-1], side) for side in SIDES)
    new = {origin: [about[side][origin] for side in SIDES] for origin in (NEIGHBOURS, RANDOM)}
    begin = [
        f"{counted(new[origin][0], 'new user', 'new users')} and {counted(new[origin][1], 'new item', 'new items')} "
        f"begin {words}"
        for origin, words in ((NEIGHBOURS, "at their neighbours'"), (RANDOM, "at random numbers"))
        if sum(new[origin])
    ]
    return f"warm start from a run of {about['method']}: {', '.join([f'{kept} keep their vectors', *begin])}"


def _mean_length(rows: Tensor) -> float:
    return float(rows.norm(dim=1).mean()) if len(rows) else 0.0


def _check_kind(ids: pl.Series, current: pl.Series, what: str, name: object) -> None:
    if is_text(ids) != is_text(current):
        raise InputError(
            f"the {what} of {name} have {kind(ids)} for ids (such as {ids[0]!r}), those of the dataset {kind(current)} "
            f"(such as {current[0]!r}); make the dataset with ids of one type"
        )


def carried_parameters(method: GraphMethod, before: GraphMethod) -> dict[str, Tensor]:
    """Parameters besides the table that a training takes over from a model of the same method.

    Those of another shape there, on other data, are drawn again.
    """
    kept, drawn = before.state(), method.parameters()
    return {name: kept[name] for name in drawn if name in kept and kept[name].shape == drawn[name].shape}


# ------------------------------------------------------------------ more epochs


def continue_training(folder: str | Path, method: Method, data: Dataset) -> tuple[Start, str | None] | None:
    """Where a finished run is continued.

    Adam's moments went when the run was finished, so the result is not that of one long training, bit for bit.

    Parameters
    ----------
    folder : the finished run
    method, data : what is to be trained

    Returns
    -------
    the start and the run of the pre-trained model, if any; None where the hyperparameters are those of another training
    """
    model = load(folder)
    old, trained = model.method, model.manifest.get("training") or {}
    if not _same(old, method):
        return None
    epochs = trained.get("epochs")
    if not isinstance(old, GraphMethod) or not isinstance(epochs, int):
        raise InputError(
            f"{folder} is a finished run of {old.name}, which is not one training in epochs; "
            "train it again with --overwrite, or into another folder"
        )
    assert isinstance(method, GraphMethod)
    if model.trained_on.fingerprint != data.fingerprint:
        raise InputError(
            f"{folder} was trained on another dataset than {data.name} (fingerprints differ); "
            f"start from it in another folder with --warm-start {folder}"
        )
    if method.epochs <= epochs:
        raise InputError(
            f"{folder} has been trained for {counted(epochs, 'epoch', 'epochs')} already; set epochs above {epochs:,}"
        )
    begun = model.manifest.get("warm_start")
    before = int(begun.get("step", 0)) if isinstance(begun, dict) else 0
    origin: dict[str, Any] = {"trained_further": {"epochs": epochs, "best_epoch": trained.get("best_epoch")}}
    if begun is not None:
        origin["warm_start"] = begun
    start = Start(
        old.tables.ego.rows(),
        carried_parameters(method, old),
        epoch=epochs + 1,
        step=before + epochs * method.compute.n_batches,
        best_epoch=int(trained.get("best_epoch") or 0),
        history=tuple(RunFolder(folder).history()),
        origin=origin,
    )
    pretrained = model.manifest.get("pretrained")
    path = pretrained.get("run") if isinstance(pretrained, dict) else None
    return start, path if isinstance(path, str) and Path(path).is_dir() else None


def _same(old: Method, method: Method) -> bool:
    """Whether method and hyperparameters are the same, but for those that say when training ends."""
    before, now = (one.get_params(set(MAY_CHANGE)) for one in (old, method))
    longer = old.get_params({"threads"}) != method.get_params({"threads"})
    return old.name == method.name and before == now and longer
