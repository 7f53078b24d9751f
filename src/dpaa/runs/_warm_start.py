"""Starting points of a training: a model of earlier data, a finished run, or pre-trained vectors.

Of a model of earlier data, known users and items keep their vectors; new ones begin at their neighbours':

    e_new = s · v / ‖v‖,     v = Σ over known neighbours j of e_j / √d_j

s is the mean length of the known rows on the same side.  New users begin first, from known items; then new items, from
all users that have a row by then; then users who have taken none but new items.  Nodes without such neighbours begin
at random numbers, as in any training.  All rows are then made shorter (`SHRINK`), which changes no ranking.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpaa.data.dataset import Dataset
from dpaa.data.ids import encode
from dpaa.data.pairs import Pairs
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods._options import INITIAL_DEVIATION
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import PRETRAINED, Pretrained
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model, load
from dpaa.training import Start

SHRINK = 0.4
"""What the start's rows are multiplied by.  Tables that were trained to their best continue to fit what they know
already; shorter rows, of the same directions, leave space for what is new (after Ash & Adams, NeurIPS 2020)."""
PATIENCE_SHARE = 1 / 3
ORIGIN = "warm_start"
"""Key of the manifest."""
MAY_CHANGE = frozenset({"epochs", "patience", "patience_steps", "minimum_steps", "validation_steps", "threads"})
"""Hyperparameters that may change where a training is resumed: they say when it ends."""


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
    old, name = before.method, before.path or "the model"
    if not isinstance(old, GraphMethod):
        raise InputError(f"{name} is a run of {old.name}, which has no trained vectors to start from; use another run")
    if old.embedding_size != method.embedding_size:
        raise InputError(f"{name} has vectors of {old.embedding_size} columns; set embedding_size={old.embedding_size}")
    graph = method.graph
    table = torch.empty(graph.n_nodes, old.embedding_size)
    # All rows are drawn, known ones too: what a new node begins with does not depend on who else is known.
    table.normal_(0.0, INITIAL_DEVIATION, generator=method.generator(0))
    index = np.concatenate([encode(data.user_ids, before.user_ids), encode(data.item_ids, before.item_ids)])
    known = index >= 0
    if not known.any():
        raise InputError(f"{name} knows no user and no item of {data.name}; start from a run on earlier rows of it")
    for rows, side in zip((old.tables.user_ego, old.tables.item_ego), _sides(graph), strict=True):
        there = torch.from_numpy(known[side])
        table[side][there] = rows[torch.from_numpy(index[side].astype(np.int64))[there]].cpu()
    begun = _begin_at_neighbours(graph, table, known)
    about = _origin(before) | {"step": method.warmup_steps}  # the learning rate need not rise from 0 again
    for words, side in zip(("users", "items"), _sides(graph), strict=True):
        counts = {"kept": known, "from_neighbours": begun & ~known, "random": ~begun}
        about[words] = {origin: int(nodes[side].sum()) for origin, nodes in counts.items()}
    parameters = _carried_parameters(method, old) if old.name == method.name else {}
    table = (SHRINK * table).to(graph.device)
    return Start(table, parameters, step=method.warmup_steps, patience_share=PATIENCE_SHARE, origin={ORIGIN: about})


def _origin(model: Model) -> dict[str, Any]:
    """Describe, for a manifest, the run that a training begins with."""
    run = str(model.path.resolve()) if model.path else None
    return {"run": run, "method": model.method.name, "fingerprint": model.trained_on.fingerprint}


def _sides(graph: BipartiteGraph) -> tuple[slice, slice]:
    """Nodes that are users, and those that are items."""
    return slice(graph.n_users), slice(graph.n_users, None)


def _begin_at_neighbours(graph: BipartiteGraph, table: Tensor, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Fill rows of nodes that are not known from neighbours that are; which nodes have a row then.  (n_nodes,)."""
    user, item = (part.cpu().long() for part in (graph.edge_user, graph.edge_item))
    item = item + graph.n_users
    scale = torch.cat([graph.user_degree, graph.item_degree]).cpu().clamp(min=1).rsqrt()
    have = torch.from_numpy(known.copy())
    lengths = [float(table[side][have[side]].norm(dim=1).mean()) if have[side].any() else 0.0 for side in _sides(graph)]
    # Users twice: some have taken none but new items, which have a row only after the second pass.
    for side, own, other in ((0, user, item), (1, item, user), (0, user, item)):
        edges = (~have[own] & have[other]).nonzero().squeeze(1)
        nodes, row = torch.unique(own[edges], return_inverse=True)
        senders = other[edges]
        total = torch.zeros(len(nodes), table.shape[1])
        total.index_add_(0, row, table[senders] * scale[senders, None])
        norm = total.norm(dim=1, keepdim=True)
        reached = norm.squeeze(1) > 0
        length = lengths[side] or lengths[1 - side]
        table[nodes[reached]] = (length * total / norm.clamp(min=1e-30))[reached]
        have[nodes[reached]] = True
    return have.numpy()


def _carried_parameters(method: GraphMethod, before: GraphMethod) -> dict[str, Tensor]:
    """Parameters besides the table that a training takes from a model of the same method.

    Parameters
    ----------
    method : what is to be trained
    before : trained

    Returns
    -------
    those of the same shape; others are drawn again
    """
    kept, drawn = before.state(), method.parameters()
    return {name: kept[name] for name in drawn if name in kept and kept[name].shape == drawn[name].shape}


def continue_training(folder: str | Path, method: Method, data: Dataset) -> tuple[Start, str | None] | None:
    """Start of more epochs of a finished run.

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
    old, trained = model.method, model.entry("training")
    if old.name != method.name or old.get_params(set(MAY_CHANGE)) != method.get_params(set(MAY_CHANGE)):
        return None
    epochs = trained.get("epochs")
    if not isinstance(old, GraphMethod) or not isinstance(method, GraphMethod) or not isinstance(epochs, int):
        return None
    model.check_trained_on(data, f"start from it in another folder with --warm-start {folder}")
    if method.epochs <= epochs:
        raise InputError(f"{folder} has been trained for {epochs:,} epochs already; set epochs above {epochs:,}")
    begun = model.entry(ORIGIN)
    origin: dict[str, Any] = {"trained_further": {"epochs": epochs, "best_epoch": trained.get("best_epoch")}}
    origin |= {ORIGIN: begun} if begun else {}
    start = Start(
        old.tables.ego.rows(),
        _carried_parameters(method, old),
        epoch=epochs + 1,
        step=int(begun.get("step", 0)) + epochs * method.compute.n_batches,
        best_epoch=int(trained.get("best_epoch") or 0),
        history=tuple(RunFolder(folder).history()),
        origin=origin,
    )
    path = model.pretrained_run
    return start, path if path and Path(path).is_dir() else None


def read_pretrained(given: Model | str | Path, data: Dataset, n_layers: int) -> Pretrained:
    """Vectors of a trained model for every user and item of a dataset.

    Parameters
    ----------
    given : a model or a run folder; of a LightGCN on the same training pairs every layer is known, of others the
        read-out
    data : the dataset
    n_layers : layers that are needed beyond layer 0

    Returns
    -------
    the vectors, in the order of the dataset's ids
    """
    model = given if isinstance(given, Model) else load(given)
    name, method = str(model.path or "the model"), model.method
    if not isinstance(method, GraphMethod):
        raise InputError(f"{name} is a run of {method.name}, which has no embeddings; give a run of a trained method")
    origin = _origin(model)
    users, items = indices = [encode(data.user_ids, model.user_ids), encode(data.item_ids, model.item_ids)]
    for index, wanted in zip(indices, (data.user_ids, data.item_ids), strict=True):
        if missing := int((index < 0).sum()):
            such = f"(such as {wanted[int((index < 0).argmax())]!r}); give a model of this dataset"
            raise InputError(f"{name} has no vector for {missing:,} of {len(wanted):,} ids of {data.name} {such}")
    seen, train = Pairs.of(users[data.train.user], items[data.train.item], data.train.count), model.train
    same = all(np.array_equal(getattr(seen, part), getattr(train, part)) for part in ("user", "item", "count"))
    # Layers depend on the training pairs alone: validation, test and users without training pairs may differ.
    origin["layers"] = method.name == PRETRAINED and same
    readout = torch.cat([method.user_embedding, method.item_embedding])
    known = Pretrained.of(method, n_layers, origin) if origin["layers"] else Pretrained(readout)
    nodes = torch.from_numpy(np.concatenate([users, items + len(model.user_ids)]).astype(np.int64))
    return Pretrained(known.readout[nodes], tuple(layer[nodes] for layer in known.layers), origin)
