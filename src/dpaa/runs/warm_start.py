"""Yesterday's model as the start of today's: who is known keeps the vector, who is new begins at the neighbours'.

    e_new = s · v / ‖v‖,     v = Σ over known neighbours j of e_j / √d_j

s is the mean length of the known rows on the same side.  New users begin first, from known items; then new items, from
all users that have a row by then; then users who have taken none but new items.  Who has no such neighbour begins at
random numbers, as in any training.  All rows are then made shorter (`SHRINK`), which changes no ranking.
"""

from __future__ import annotations

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
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.tables import INITIAL_DEVIATION
from dpaa.runs.model import Model
from dpaa.training.start import Start

SHRINK = 0.4
"""What the start's rows are multiplied by.  Tables that were trained to their best go on to fit what they know already;
shorter rows, of the same directions, leave room for what is new (after Ash & Adams, NeurIPS 2020)."""
PATIENCE_SHARE = 1 / 3
ORIGIN = "warm_start"
"""Key of the manifest."""
SIDES = ("users", "items")
KEPT, NEIGHBOURS, RANDOM = "kept", "from_neighbours", "random"


def warm_start(before: Model, data: Dataset, method: GraphMethod) -> Start:
    """What a training of `method` on `data` begins with."""
    old = before.method
    place = before.path or "the model"
    if not isinstance(old, GraphMethod):
        raise InputError(
            f"{place} is a run of {old.name}, which has no trained vectors to start from; "
            "start from a run of a method that is trained in epochs"
        )
    width, wanted = old.embedding_size, method.embedding_size
    if width != wanted:
        raise InputError(
            f"{place} has vectors of {width} columns, this training wants {wanted}; set embedding_size={width}"
        )
    graph = method.graph
    table = torch.empty(graph.n_nodes, width).normal_(0.0, INITIAL_DEVIATION, generator=method.generator(0))
    known = np.zeros(graph.n_nodes, dtype=bool)
    told: dict[str, Any] = {}
    sides = (
        (before.user_ids, data.user_ids, old.tables.user_ego, 0),
        (before.item_ids, data.item_ids, old.tables.item_ego, 1),
    )
    for ids, now, rows, side in sides:
        _check_kind(ids, now, SIDES[side], place)
        index, first = encode(now, ids), side * graph.n_users
        there = np.flatnonzero(index >= 0)
        table[torch.from_numpy(first + there)] = rows[torch.from_numpy(index[there].astype(np.int64))].cpu()
        known[first + there] = True
        told[SIDES[side]] = {KEPT: len(there)}
    if not known[: graph.n_users].any() and not known[graph.n_users :].any():
        raise InputError(f"{place} knows no user and no item of {data.name}; start from a run on earlier rows of it")
    begun = begin_at_neighbours(graph, table, known)
    for name, part in zip(SIDES, (slice(graph.n_users), slice(graph.n_users, None)), strict=True):
        added = int((begun & ~known)[part].sum())
        told[name] |= {NEIGHBOURS: added, RANDOM: int((~begun[part]).sum())}
    same = old.name == method.name
    step = method.warmup_steps  # the learning rate need not rise from 0 again
    about = {
        "run": str(before.path.resolve()) if before.path else None,
        "method": old.name,
        "fingerprint": before.trained_on.fingerprint,
        "step": step,
        **told,
    }
    parameters = carried_parameters(method, old) if same else {}
    table = (SHRINK * table).to(method.graph.device)
    return Start(table, parameters, step=step, patience_share=PATIENCE_SHARE, origin={ORIGIN: about})


def begin_at_neighbours(graph: BipartiteGraph, table: Tensor, known: Any) -> Any:
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
        found = norm.squeeze(1) > 0
        reach = length[side] if length[side] > 0 else length[1 - side]
        table[nodes[found]] = (reach * total / norm.clamp(min=1e-30))[found]
        have[nodes[found]] = True
    return have.numpy()


def in_words(start: Start) -> str:
    """What is kept, and where the others begin."""
    about = start.origin[ORIGIN]
    kept = " and ".join(counted(about[side][KEPT], side[:-1], side) for side in SIDES)
    told = [f"{kept} keep their vectors"]
    new = {place: [about[side][place] for side in SIDES] for place in (NEIGHBOURS, RANDOM)}
    begin = [
        f"{counted(new[place][0], 'new user', 'new users')} and {counted(new[place][1], 'new item', 'new items')} "
        f"begin {words}"
        for place, words in ((NEIGHBOURS, "at their neighbours'"), (RANDOM, "at random numbers"))
        if sum(new[place])
    ]
    return f"warm start from a run of {about['method']}: {', '.join([*told, *begin])}"


def _mean_length(rows: Tensor) -> float:
    return float(rows.norm(dim=1).mean()) if len(rows) else 0.0


def _check_kind(ids: pl.Series, now: pl.Series, what: str, place: object) -> None:
    if is_text(ids) != is_text(now):
        raise InputError(
            f"the {what} of {place} have {kind(ids)} for ids (such as {ids[0]!r}), those of the dataset {kind(now)} "
            f"(such as {now[0]!r}); make the dataset with ids of one type"
        )


def carried_parameters(method: GraphMethod, before: GraphMethod) -> dict[str, Tensor]:
    """Parameters besides the table that a training takes over from a model of the same method.

    Those of another shape there, on other data, are drawn again.
    """
    kept, drawn = before.state(), method.parameters()
    return {name: kept[name] for name in drawn if name in kept and kept[name].shape == drawn[name].shape}
