"""Why readings differ: how much of the item vectors lies on the direction of popularity, trained and not.

The direction is the first singular vector of the training matrix (`trace/direction.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

import torch

from dpaa.data.dataset import read_dataset
from dpaa.methods.weighted_messages import Scaling, WeightedMessages
from dpaa.report.parts import Figure
from dpaa.reproduction.figures import energy_points
from dpaa.reproduction.results import RunResult
from dpaa.reproduction.sources import LAYERS, TITLES
from dpaa.reproduction.tables import Cell, Quantity, Table, cell_of, rank_agreement
from dpaa.runs.model import make_method
from dpaa.trace.direction import Direction, popularity_direction

SHOWN = ("coat", "yahoo-r3", "s=0", "s=5", "s=9")
"""Where the share of energy is shown."""
NEUTRAL = {"iiw": False, "layer_emphasis": 0, "initial_residual": 0, "layer_weight_norm": "none"}
SIZE = 64


def energy_tables(results: Sequence[RunResult], readings: Sequence[str], folders: Mapping[str, Path]) -> list[Table]:
    """Random vectors propagated with each scaling, then every reading beside its ARP, then layer by layer."""
    places = [data for data in SHOWN if data in folders]
    by_layer = [_by_layer(results, readings, data) for data in places]
    return [_untrained({data: folders[data] for data in places}), _beside_arp(results, readings, places), *by_layer]


def untrained(folder: Path, layers: int, scaling: str) -> Direction:
    """Nothing but propagation: a random table, no weights, no residual."""
    settings = NEUTRAL | {"neighbour_scaling": scaling, "layers": layers, "embedding_size": SIZE, "threads": 1}
    method = make_method(read_dataset(folder), "dpaa", settings)
    assert isinstance(method, WeightedMessages)
    method.start()
    return popularity_direction(
        method.graph, [layer.rows() for layer in method.sent_layers()], torch.cat(method.current_readout())
    )


def _untrained(folders: Mapping[str, Path]) -> Table:
    rows = []
    cosines = []
    for data, folder in folders.items():
        layers = LAYERS.get(data, LAYERS["kuairec"])
        for scaling in get_args(Scaling):
            found = untrained(folder, layers, scaling)
            shares = [Cell((100 * share.items,), form=".1f") for share in found.shares]
            padding = [Cell()] * (max(LAYERS.values()) - layers)
            rows.append((f"{TITLES.get(data, data)}, {scaling}", (*shares[:-1], *padding, shares[-1])))
        cosines.append(
            f"{found.cosine:.2f} on {TITLES.get(data, data)} (by chance a share of {found.chance_items:.1%})"
        )
    columns = (*(f"layer {layer}" for layer in range(max(LAYERS.values()) + 1)), "read-out")
    note = f"Cosine of the first singular vector with the items' counts: {', '.join(cosines)}."
    title = "Propagation alone: share of the items' energy on the first singular vector, %, of a random table"
    return Table("energy of propagation", title, "data, scaling", columns, tuple(rows), notes=(note,))


def _beside_arp(results: Sequence[RunResult], readings: Sequence[str], places: Sequence[str]) -> Table:
    rows = []
    for name in readings:
        cells: list[Cell] = []
        for data in places:
            some = [one for one in results if one.data == data and one.label == name]
            shares = tuple(100 * share for one in some if (share := energy_of(one)) is not None)
            cells += [Cell(shares, form=".1f"), cell_of(results, data, name, Quantity("arp@20"))]
        rows.append((name, tuple(cells)))
    columns = tuple(name for data in places for name in (f"{TITLES.get(data, data)}: energy, %", f"{data} arp@20"))
    told = _agreement(results, readings, places)
    notes = (f"Spearman's ρ between the two over the readings: {', '.join(told)}.",) if told else ()
    title = "Trained: share of the items' read-out energy on the first singular vector, and how popular the lists are"
    return Table("energy", title, "reading", columns, tuple(rows), notes=notes)


def _by_layer(results: Sequence[RunResult], readings: Sequence[str], data: str) -> Table:
    """The items' share layer by layer; where the residual is weighted too, layers between cannot be had."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in readings}
    for one in results:
        if one.data == data and one.label in found:
            for share in (one.details.get("direction") or {"shares": []})["shares"]:
                name = "read-out" if share["layer"] is None else f"layer {share['layer']}"
                found[one.label].setdefault(name, []).append(100 * share["items"])
    named = {name for shares in found.values() for name in shares}
    columns = tuple(sorted(named, key=lambda name: (name == "read-out", name)))
    rows = tuple((name, tuple(Cell(tuple(s.get(c, ())), form=".1f") for c in columns)) for name, s in found.items())
    title = f"{TITLES.get(data, data)}, trained: share of the items' energy on the first singular vector, % by layer"
    return Table(f"energy {data}", title, "reading", columns, rows, on_screen=False)


def energy_of(result: RunResult) -> float | None:
    """Share of the items' read-out."""
    direction = result.details.get("direction")
    return float(direction["shares"][-1]["items"]) if direction else None


def energy_pairs(results: Sequence[RunResult], readings: Sequence[str], data: str) -> list[tuple[str, float, float]]:
    """Reading, share of energy and ARP of each training on a dataset."""
    found = []
    for one in results:
        share, popularity = energy_of(one), Quantity("arp@20").of(one)
        if one.data == data and one.label in readings and share is not None and popularity is not None:
            found.append((one.label, share, popularity))
    return found


def _agreement(results: Sequence[RunResult], readings: Sequence[str], places: Sequence[str]) -> list[str]:
    told = []
    for data in places:
        pairs = energy_pairs(results, readings, data)
        rho = rank_agreement([share for _, share, _ in pairs], [arp for *_, arp in pairs])
        if not math.isnan(rho):
            told.append(f"{rho:.2f} on {TITLES.get(data, data)}")
    return told


def energy_figures(results: Sequence[RunResult], readings: Sequence[str], places: Sequence[str]) -> list[Figure]:
    """A dot per reading; none where nothing was traced."""
    chosen = [data for data in SHOWN if data in places]
    shown = {TITLES.get(data, data): energy_pairs(results, readings, data) for data in chosen}
    if not any(shown.values()):
        return []
    return [
        Figure(
            "readings-energy",
            "Energy on the direction of popularity, and how popular the lists are",
            "A dot per reading: share of the items' read-out energy on the first singular vector, and ARP@20.",
            partial(energy_points, shown),
            reading="To the right a reading's item vectors lie more on the direction of popularity; further up its "
            "lists have more popular items.",
        )
    ]
