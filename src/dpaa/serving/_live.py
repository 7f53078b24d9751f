"""The live page: served, or as one file that holds its answers; and the lists of a sample of users that it shows."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa._io import check_file_target, write_file
from dpaa._text import json_text
from dpaa.evaluation.concentration import gini
from dpaa.ranking.reranker import Reranker, parse_reranker
from dpaa.runs.model import load
from dpaa.serving._engine import Answer, Ask, answer_all
from dpaa.serving._snapshot import Snapshot, about, make_snapshot

K = 20
STEP, STEPS = 0.25, 8
"""Of the dial, and how many on either side of 0."""
STRENGTHS = 5
"""Of each re-ranker."""
SHOWN_TAKEN, SIMILAR = 30, 10
MOST_SAMPLED = 200
POLICY = (
    "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; connect-src {asks}; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""The page runs its own script, known by its hash, and sends requests to its own service alone."""


# ------------------------------------------------------------------ a sample of users


@dataclass(frozen=True, eq=False)
class SampleLists:
    """The lists of a sample of users at one κ."""

    snapshot: Snapshot
    kappa: float
    k: int
    users: NDArray[Any]
    items: list[NDArray[Any]]

    def numbers(self) -> dict[str, float | None]:
        """Metrics over the sample, by name."""
        run, k = self.snapshot, self.k
        every = np.concatenate([*self.items, np.empty(0, dtype=np.int64)]).astype(np.int64)
        counts = np.bincount(every, minlength=len(run.items))
        if run.model.candidates is not None:
            counts = counts[run.model.candidates]
        niche = [float(np.mean(~run.popular[one])) for one in self.items if len(one)]
        popularity = [float(np.mean(run.counts[one])) for one in self.items if len(one)]
        return {
            f"aplt@{k}": float(np.mean(niche)) if niche else None,
            f"arp@{k}": float(np.mean(popularity)) if popularity else None,
            f"head_share@{k}": float(np.mean(run.head[every])) if len(every) else None,
            f"coverage@{k}": float(np.count_nonzero(counts) / len(counts)),
            f"gini@{k}": gini(counts) if counts.sum() else None,
        }

    def receivers(self, item: int) -> list[int]:
        """Users of the sample who get an item."""
        return [int(user) for user, listed in zip(self.users, self.items, strict=True) if item in listed]


def sampled_users(snapshot: Snapshot, most: int = MOST_SAMPLED) -> NDArray[Any]:
    """Users with training pairs, evenly spaced."""
    warm = np.flatnonzero(snapshot.model.method.graph.user_degree.numpy())
    return warm if len(warm) <= most else warm[np.linspace(0, len(warm) - 1, most).round().astype(np.int64)]


def sample_asks(
    snapshot: Snapshot, users: NDArray[Any], kappa: float, k: int, reranker: Reranker | None = None
) -> list[Ask]:
    """The questions whose answers are the lists of these users."""
    return [Ask(snapshot, k, number=int(user), kappa=kappa, reranker=reranker) for user in users]


# ------------------------------------------------------------------ the page


@cache
def live_page() -> tuple[str, str]:
    """The page of a service, and its content security policy."""
    html, policy = _page(None)
    return html, f"{policy}; frame-ancestors 'none'"  # which only a header can say


def _page(content: dict[str, Any] | None) -> tuple[str, str]:
    folder = resources.files("dpaa.serving").joinpath("assets")
    style, script, html = (
        folder.joinpath(f"live.{kind}").read_text(encoding="utf-8") for kind in ("css", "js", "html")
    )
    policy = POLICY.format(style=_digest(style), script=_digest(script), asks="'self'" if content is None else "'none'")
    data = "null" if content is None else _embedded(content)
    for mark, part in {"policy": policy, "style": style, "script": script, "data": data}.items():
        html = html.replace(f"{{{{{mark}}}}}", part, 1)
    return html, policy


def _embedded(content: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in, whatever ids and titles say."""
    text = json_text(content, indent=None)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# ------------------------------------------------------------------ the page as a file


def write_live(run: str | Path, file: str | Path, customers: int = 60, titles: Path | None = None) -> int:
    """Write the live page of a run, with everything it shows, to one file.

    Parameters
    ----------
    run : the run folder
    file : an HTML file; its folders are made
    customers : how many users it shows
    titles : a table of item_id and title to use instead of the run's own titles

    Returns
    -------
    how many users it shows
    """
    check_file_target(file, (".html", ".htm"), "a page", make_folders=True)
    content = _content(make_snapshot(load(run), titles=titles), customers)
    write_file(file, _page(content)[0], "make room or choose another place with --live", make_folders=True)
    return len(content["users"])


def _content(snapshot: Snapshot, customers: int) -> dict[str, Any]:
    """All that the page shows: `assets/live.js` reads it."""
    kappas = sorted({STEP * step for step in range(-STEPS, STEPS + 1)} | {snapshot.kappa})
    users, everybody = sampled_users(snapshot, customers), sampled_users(snapshot)
    items = _Items(snapshot)
    rows: list[dict[str, Any]] = [
        {
            "id": snapshot.users.ids[user],
            "interactions": len(snapshot.taken(user)),
            "taken": items.numbers(snapshot.most_popular_taken(user, SHOWN_TAKEN)),
            "lists": [],
            "kept": [],
            "reranked": {},
        }
        for user in users.tolist()
    ]

    def lists(kappa: float, reranker: Reranker | None = None, who: NDArray[Any] = users) -> list[Answer]:
        return answer_all(sample_asks(snapshot, who, kappa, K, reranker))

    audits, own = [], snapshot.model.reranker()
    for kappa in kappas:
        for row, listed in zip(rows, lists(kappa, own) if own is not None else (), strict=own is not None):
            row["kept"].append(items.numbers(listed.items))
        for row, listed in zip(rows, lists(kappa), strict=True):
            row["lists"].append(items.numbers(listed.items))
        sample = [listed.items for listed in lists(kappa, who=everybody)]
        audits.append(SampleLists(snapshot, kappa, K, everybody, sample).numbers())
    description = about(snapshot)
    rerankers: dict[str, Any] = {}
    for one in description["rerankers"]:
        if one["name"] == "dial":
            continue
        rerankers[one["name"]] = {"values": (values := _strengths(one))}
        for value in values:
            words = f"{one['name']},{one['settings'][0]['name']}={value}" if one["settings"] else one["name"]
            for row, listed in zip(rows, lists(snapshot.kappa, parse_reranker(words)), strict=True):
                row["reranked"].setdefault(one["name"], []).append(items.numbers(listed.items))
    return {
        "about": description,
        "k": K,
        "step": STEP,
        "kappas": kappas,
        "users": rows,
        "audits": audits,
        "rerankers": rerankers,
        "items": items.described(),
    }


def _strengths(reranker: dict[str, Any]) -> list[float]:
    """Values of its first numeric parameter."""
    if not reranker["settings"]:
        return [0.0]
    first = reranker["settings"][0]
    values = np.linspace(first["least"], first["most"], STRENGTHS).tolist()
    return sorted({round(value) for value in values}) if isinstance(first["default"], int) else values


@dataclass
class _Items:
    """The items that the page names, each once, numbered in the order they are met."""

    snapshot: Snapshot
    _number: dict[int, int] = field(default_factory=dict)

    def numbers(self, items: NDArray[Any]) -> list[int]:
        return [self._number.setdefault(item, len(self._number)) for item in items.tolist()]

    def described(self) -> list[dict[str, Any]]:
        """With similar items for those of the lists; of the similar ones the page knows no more than their names."""
        similar: list[list[int]] = [[] for _ in self._number]
        if self.snapshot.unit is not None:
            asks = [Ask(self.snapshot, SIMILAR, kind="similar", number=item) for item in self._number]
            similar = [self.numbers(one.items) for one in answer_all(asks)]
        rows = self.snapshot.described(np.array(list(self._number), dtype=np.int64))
        for row, near in zip(rows, similar, strict=False):
            row["similar"] = near
        return rows
