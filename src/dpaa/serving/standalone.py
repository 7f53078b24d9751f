"""The live page as a file: the lists of a sample of customers at every step of the dial, and nothing to ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.files import check_file_target, write_file
from dpaa.ranking.reranker import Reranker, parse_reranker
from dpaa.runs.model import load
from dpaa.serving.about import about
from dpaa.serving.engine import Answer, Ask, answer
from dpaa.serving.live import standalone_page
from dpaa.serving.sample import lists_of, sample_asks, sampled_users
from dpaa.serving.snapshot import Snapshot, open_snapshot, write_snapshot
from dpaa.serving.titles import read_titles
from dpaa.temporary import enough_room, temporary_folder

K = 20
STEP = 0.25
STEPS = 8
"""On either side of 0."""
STRENGTHS = 5
"""Of each re-ranker."""
SHOWN_TAKEN = 30
SIMILAR = 10
BATCH = 32


def write_live(run: str | Path, file: str | Path, customers: int = 60, titles: Path | None = None) -> int:
    """Write the page of a run to a file.  Returns how many customers it holds."""
    check_file_target(file, (".html", ".htm"), "a page", make_folders=True)
    model = load(run)
    named = None if titles is None else read_titles(titles, model.item_ids)
    with temporary_folder("dpaa-live-") as folder:
        with enough_room(Path(folder), "the run"):
            write_snapshot(model, Path(folder) / "run", titles=named)
        snapshot = open_snapshot(Path(folder) / "run")
        content = embedded(snapshot, customers)
    write_file(file, standalone_page(content), "make room or choose another place with --live", make_folders=True)
    return len(content["users"])


def embedded(snapshot: Snapshot, customers: int) -> dict[str, Any]:
    """All that the page shows."""
    kappas = sorted({STEP * step for step in range(-STEPS, STEPS + 1)} | {snapshot.kappa})
    users, everybody = sampled_users(snapshot, customers), sampled_users(snapshot)
    items = _Items(snapshot)
    rows: list[dict[str, Any]] = []
    for user in users.tolist():
        taken = snapshot.taken(user)
        shown = taken[np.argsort(-snapshot.counts[taken], kind="stable")][:SHOWN_TAKEN]
        row: dict[str, Any] = {"id": snapshot.users.id(user), "interactions": len(taken), "taken": items.places(shown)}
        rows.append(row | {"lists": [], "kept": [], "reranked": {}})
    audits, own = [], snapshot.model.reranker()
    for kappa in kappas:
        if own is not None:
            for row, listed in zip(rows, _answers(snapshot, users, kappa, own), strict=True):
                row["kept"].append(items.places(listed.items))
        for row, listed in zip(rows, _answers(snapshot, users, kappa), strict=True):
            row["lists"].append(items.places(listed.items))
        audits.append(lists_of(snapshot, everybody, kappa, K, _answers(snapshot, everybody, kappa)).numbers())
    described = about(snapshot, None)
    rerankers: dict[str, Any] = {}
    for one in described["rerankers"]:
        if one["name"] != "dial":
            rerankers[one["name"]] = {"values": _strengths(one)}
            for words in _words(one):
                found = _answers(snapshot, users, snapshot.kappa, parse_reranker(words))
                for row, listed in zip(rows, found, strict=True):
                    row["reranked"].setdefault(one["name"], []).append(items.places(listed.items))
    return {
        "about": described,
        "k": K,
        "step": STEP,
        "kappas": kappas,
        "users": rows,
        "audits": audits,
        "rerankers": rerankers,
        "items": items.described(),
    }


def _strengths(one: dict[str, Any]) -> list[float]:
    """Of its first setting that is a number."""
    if not one["settings"]:
        return [0.0]
    first = one["settings"][0]
    found = np.linspace(first["least"], first["most"], STRENGTHS).tolist()
    return sorted({round(value) for value in found}) if isinstance(first["default"], int) else found


def _words(one: dict[str, Any]) -> Iterator[str]:
    for value in _strengths(one):
        yield f"{one['name']},{one['settings'][0]['name']}={value}" if one["settings"] else one["name"]


def _answers(snapshot: Snapshot, users: NDArray[Any], kappa: float, reranker: Reranker | None = None) -> list[Answer]:
    return _all(sample_asks(snapshot, users, kappa, K, reranker))


def _all(asks: Sequence[Ask]) -> list[Answer]:
    found: list[Answer] = []
    for first in range(0, len(asks), BATCH):
        for one in answer(asks[first : first + BATCH]):
            if isinstance(one, Exception):
                raise one
            found.append(one)
    return found


@dataclass
class _Items:
    """The items that the page names, each once."""

    snapshot: Snapshot
    _place: dict[int, int] = field(default_factory=dict)

    def places(self, items: Any) -> list[int]:
        return [self._place.setdefault(item, len(self._place)) for item in np.asarray(items).tolist()]

    def described(self) -> list[dict[str, Any]]:
        """With what is like those of the lists; of these others the page knows no more than their names."""
        snapshot, own = self.snapshot, list(self._place)
        near: list[list[int] | None] = [[] for _ in own]
        if snapshot.unit is not None:
            asks = [Ask(snapshot, SIMILAR, kind="similar", number=item) for item in own]
            near = [self.places(one.items) for one in _all(asks)]
        every = list(self._place)
        rows = snapshot.items.shown(every)
        for place, (row, item) in enumerate(zip(rows, every, strict=True)):
            row["interactions"] = int(snapshot.counts[item])
            row["group"] = "popular" if snapshot.popular[item] else "niche"
            if place < len(own):
                row["similar"] = near[place]
        return rows
