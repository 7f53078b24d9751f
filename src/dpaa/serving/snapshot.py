"""A run as workers serve it: every table prepared once, in another process, and mapped from files by all of them.

`write_snapshot` prepares, `open_snapshot` maps: opening copies and computes next to nothing, so that a worker can take
a new run while it answers from the old one, and several workers share one copy in memory.  The files are ours, in a
folder that only we can read; a stranger's run is checked where it is loaded, before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpaa.data.pairs import Pairs
from dpaa.data.popularity import popular_items
from dpaa.evaluation.concentration import head
from dpaa.files import LARGE_JSON, as_json, read_json
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods import METHODS
from dpaa.methods.base import attach
from dpaa.ranking.dial import DialVectors
from dpaa.runs.lists import CodedColumn, ItemColumns
from dpaa.runs.model import Model
from dpaa.serving.index import Index, build_index, read_index
from dpaa.serving.lookup import IdTable
from dpaa.serving.tables import Table, bits_hold

ABOUT = "about.json"
IDS, TITLES, WORDS = "ids", "titles", "words"
TRIED = 128
"""Users an index is tried with."""
GRAPH = ("edge_user", "edge_item", "user_degree", "item_degree", "indptr", "neighbours", "by_item")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One run, ready to be asked; nothing in it changes."""

    name: str
    model: Model
    users: IdTable
    items: IdTable
    plain: Table | None
    """What is ranked at κ = 0, by an inner product; None where the method ranks by anything else."""
    dialled: Table | None
    """The same with the popularity coordinate."""
    unit: Table | None
    """Item vectors of length 1."""
    index: Index | None
    popular: NDArray[np.bool_]
    """(n_items,): the smallest set of items that has 80 % of the interactions; the others are niche."""
    head: NDArray[np.bool_]
    """(n_items,): the fifth of the items with the most interactions."""
    counts: NDArray[np.float32]
    """(n_items,): training interactions."""

    @cached_property
    def fallback_order(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Candidates and their popularity, best first, for users without training pairs or history."""
        model = self.model
        some = np.arange(len(self.items)) if model.candidates is None else np.asarray(model.candidates)
        scores = model.fallback.numpy()[some]
        order = np.argsort(-scores, kind="stable")
        return some[order], scores[order]

    @cached_property
    def kappa(self) -> float:
        """κ that the run keeps in force."""
        return self.model.kappa()

    def taken(self, user: int) -> NDArray[np.int32]:
        """Items of a user's training pairs."""
        pairs, wanted = self.model.train, np.int32(user)
        first, last = (int(np.searchsorted(pairs.user, wanted, side)) for side in ("left", "right"))
        return pairs.item[first:last]

    def warm(self) -> None:
        """Touch what answers read, so that the first of them does not wait for pages."""
        for table in (self.plain, self.dialled, self.unit):
            if table is not None:
                table.rows.sum()
        self.fallback_order  # noqa: B018


def write_snapshot(model: Model, folder: Path, index: str = "exact", titles: pl.Series | None = None) -> None:
    """Prepare a run for `open_snapshot`; the folder must not exist.  `titles`: others than the run's own."""
    folder.mkdir(mode=0o700)
    method, graph = model.method, model.method.graph
    arrays = {f"graph.{name}": getattr(graph, name).numpy() for name in GRAPH}
    if model.train.count is not None:
        arrays["graph.edge_count"] = graph.edge_count.numpy()
    unused = ("user_ego", "item_ego") if method.vectors() is not None else ()  # layer 0 takes no part in the scores
    state = {name: tensor for name, tensor in method.state().items() if name not in unused}
    arrays |= {f"method.{name}": tensor.detach().numpy() for name, tensor in state.items()}
    if model.candidates is not None:
        arrays["candidates"] = np.asarray(model.candidates)
    tables = _tables(model)
    if "dialled" in tables:
        prepared = DialVectors.of(method)
        assert prepared is not None
        arrays["covariance"] = prepared.covariance.numpy()
        arrays["dial"] = prepared.items.numpy()
    for name, table in tables.items():
        if name == "unit" or model.candidates is not None:  # the others are those of the method and the dial
            arrays[f"table.{name}"] = table.numpy()
    arrays["fallback"] = model.fallback.numpy()
    counts = graph.item_degree.numpy()
    arrays |= {"popular": popular_items(counts.astype(np.float64)), "head": head(counts)}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
    pl.DataFrame({IDS: model.user_ids}).write_ipc(folder / "users.arrow", compression="uncompressed")
    items = pl.DataFrame({IDS: model.item_ids})
    titles = model.titles if titles is None else titles
    if titles is not None:
        items = items.with_columns(titles.alias(TITLES))
    items.write_ipc(folder / "items.arrow", compression="uncompressed")
    for place, name in enumerate(model.columns.names):
        column = model.columns[name]
        np.save(folder / f"column.{place}.npy", column.codes, allow_pickle=False)
        pl.DataFrame({WORDS: column.words}).write_ipc(folder / f"column.{place}.arrow", compression="uncompressed")
    about = {
        "method": method.name,
        "settings": method.get_params(),
        "manifest": model.manifest,
        "path": None if model.path is None else str(model.path),
        "columns": model.columns.names,
        "batches": {name: bits_hold(table) for name, table in tables.items()},
        "index": build_index(index, tables.get("dialled"), _queries(model), folder),
    }
    (folder / ABOUT).write_text(as_json(about), encoding="utf-8")


def _queries(model: Model) -> Tensor:
    """Of some users at some κ, such as will be asked: for an index to be tried with."""
    vectors, prepared = model.method.vectors(), DialVectors.of(model.method)
    if vectors is None or prepared is None:
        return torch.empty(0)
    some = np.linspace(0, len(model.user_ids) - 1, TRIED).astype(np.int64)
    plain = vectors.queries(torch.from_numpy(some))
    kappas = (0.0, -1.0, -0.5, 1.0)
    return torch.cat([prepared.queries(plain[number :: len(kappas)], kappa) for number, kappa in enumerate(kappas)])


def _tables(model: Model) -> dict[str, Tensor]:
    """What is ranked by inner products, one row for each column of the scores."""
    method, found = model.method, {}
    some = None if model.candidates is None else torch.from_numpy(np.asarray(model.candidates, dtype=np.int64))
    vectors, prepared = method.vectors(), DialVectors.of(method)
    if vectors is not None and prepared is not None:
        for name, table in (("plain", vectors.items), ("dialled", prepared.items)):
            found[name] = table if some is None else table.index_select(0, some)
    if method.item_vectors() is not None:
        found["unit"] = model.unit_vectors
    return found


def open_snapshot(folder: Path) -> Snapshot:
    """What `write_snapshot` prepared, mapped."""
    about = read_json(folder / ABOUT, LARGE_JSON, "start the service again")
    arrays = {file.stem: _mapped(file) for file in folder.glob("*.npy")}
    users, items = (pl.read_ipc(folder / f"{name}.arrow") for name in ("users", "items"))
    n_users, n_items = len(users), len(items)
    parts = {name: torch.from_numpy(arrays[f"graph.{name}"]) for name in GRAPH}
    pairs = Pairs(arrays["graph.edge_user"], arrays["graph.edge_item"])
    counted = arrays.get("graph.edge_count")
    if counted is not None:
        pairs = Pairs(pairs.user, pairs.item, counted.astype(np.int32))
    ones = torch.ones(1).expand(len(pairs))
    parts["edge_count"] = ones if counted is None else torch.from_numpy(counted)
    graph = BipartiteGraph(n_users, n_items, **parts)
    kind = METHODS.stored(about["method"], None, folder)
    method = attach(kind(**about["settings"]), graph)
    state = {name[7:]: torch.from_numpy(array) for name, array in arrays.items() if name.startswith("method.")}
    method.load_state(state, copy=False)
    path = None if about["path"] is None else Path(about["path"])
    candidates = arrays.get("candidates")
    model = Model(method, users[IDS], items[IDS], pairs, candidates, about["manifest"], path)
    batches, tables = about["batches"], {}
    if "dial" in arrays:
        dial = DialVectors(torch.from_numpy(arrays["dial"]), torch.from_numpy(arrays["covariance"]))
        model.__dict__["prepared_dial"] = dial  # cached properties: made here, and so never again
        vectors = method.vectors()
        assert vectors is not None
        tables = {"plain": vectors.items, "dialled": dial.items}
    model.__dict__["fallback"] = torch.from_numpy(arrays["fallback"])
    if "table.unit" in arrays:
        model.__dict__["unit_vectors"] = torch.from_numpy(arrays["table.unit"])
    model.__dict__["columns"] = ItemColumns(
        None,
        [
            CodedColumn(name, arrays[f"column.{place}"], pl.read_ipc(folder / f"column.{place}.arrow")[WORDS])
            for place, name in enumerate(about["columns"])
        ],
    )
    tables |= {name[6:]: torch.from_numpy(array) for name, array in arrays.items() if name.startswith("table.")}
    made = {name: Table(rows, batches[name], None if name == "unit" else candidates) for name, rows in tables.items()}
    return Snapshot(
        name=folder.name,
        model=model,
        users=IdTable(model.user_ids),
        items=IdTable(model.item_ids, items[TITLES] if TITLES in items.columns else None),
        plain=made.get("plain"),
        dialled=made.get("dialled"),
        unit=made.get("unit"),
        index=read_index(about["index"], folder),
        popular=arrays["popular"],
        head=arrays["head"],
        counts=arrays["graph.item_degree"],
    )


def _mapped(file: Path) -> NDArray[Any]:
    """Shared with all who map it, for reading; torch wants memory that could be written, which is then a copy."""
    array = np.load(file, mmap_mode="c", allow_pickle=False)
    return np.asarray(array)
