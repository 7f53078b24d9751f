"""How many lists of each exported index are ours: writes docs/results/exports.md.

python -m scripts.exports [--users 300]     # Coat too where $DPAA_REAL_DATA is set

Every export is asked by the code its own folder brings, for the best 20 of every user at κ −.5, 0 and .5, and held
against `Model.recommend`, which is exact.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.postgres import Postgres, running

import dpaa
from dpaa.data.sources.published import coat
from dpaa.data.sources.world import simulate
from dpaa.exporting import export
from dpaa.runs.model import Model

KAPPAS = (-0.5, 0.0, 0.5)
K = 20
PAGE = Path("docs/results/exports.md")
SYSTEMS = (("npz", None), ("onnx", None), ("faiss", "exact"), ("faiss", "hnsw"), ("faiss", "ivf"), ("hnswlib", None))
Ask = Callable[[float], dict[Any, list[Any]]]


def main() -> None:
    """Train, export, ask, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=300, help="Users of the generated world.")
    asked = parser.parse_args()
    lines = [
        "# Exports: how many lists are ours",
        "",
        "Made by `python -m scripts.exports`. LightGCN, default training. Every export is asked for the best 20 of",
        "every user, without what the user has taken, by the code its own folder brings ([exports.md](../exports.md)),",
        "and held against `Model.recommend`. *Equal*: the same items in the same order. *Recall*: the share of our 20",
        "items that is found. *Other order by rounding*: lists, of all three κ, with the same items where those in",
        "another place have scores that float32 cannot tell apart.",
    ]
    worlds = [("a generated world", simulate(users=asked.users, items=4_000, seed=3))]
    if place := os.environ.get("DPAA_REAL_DATA"):
        worlds.append(("Coat", coat(Path(place) / "coat")))
    with tempfile.TemporaryDirectory() as home, postgres() as server:
        for name, data in worlds:
            model = dpaa.fit(data, "lightgcn", seed=0)
            lines += ["", f"## {name}: {data.n_users:,} users, {data.n_items:,} items", ""]
            header = [f"{what}, κ = {kappa:g}" for what in ("equal", "recall") for kappa in KAPPAS]
            header.append("other order by rounding")
            lines += [f"| index | {' | '.join(header)} |", f"|---|{'---:|' * len(header)}"]
            for title, ask in asks(model, Path(home) / name, server):
                lines.append(f"| {title} | {' | '.join(row(model, ask))} |")
                print(lines[-1], flush=True)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def asks(model: Model, home: Path, server: Postgres | None) -> Iterator[tuple[str, Ask]]:
    """Every index, with what it is asked by."""
    for to, index in SYSTEMS:
        title = f"{to}, {index}" if index else to
        if index in ("hnsw", "ivf") and len(model.item_ids) < 2_000:
            continue
        try:
            about = export(model, home / title, to, index=index)
        except dpaa.InputError as error:
            print(f"{title} is left out: {error}")
            continue
        approximate = "" if about["index"] == "exact" else f" (approximate, width {about['width']:,})"
        yield title + approximate, asker(model, home / title)
    if server is not None:
        export(model, home / "pgvector", "pgvector")
        server.psql("-f", "load.sql", cwd=home / "pgvector")
        version = server.psql("-A", "-t", "-c", "SELECT extversion FROM pg_extension WHERE extname = 'vector'").strip()
        yield f"pgvector {version}, no index", sql(model, server, "", "")
        if len(model.item_ids) >= 2_000:
            server.psql("-c", "CREATE INDEX ON dpaa_items USING hnsw (vector vector_ip_ops)")
            width = "SET enable_seqscan = off; SET hnsw.ef_search = 400; "
            yield f"pgvector {version}, hnsw (approximate, width 400)", sql(model, server, ", 100", width)


def asker(model: Model, folder: Path) -> Ask:
    """The folder's own query.py."""
    place = importlib.util.spec_from_file_location("query", folder / "query.py")
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    recommender = module.Recommender(folder)
    users = model.user_ids.to_list()
    return lambda kappa: {user: [item for item, _ in recommender.recommend(user, K, kappa)] for user in users}


def sql(model: Model, server: Postgres, more: str, before: str) -> Ask:
    """The function that load.sql makes."""
    text = model.item_ids.dtype == pl.String

    def ask(kappa: float) -> dict[Any, list[Any]]:
        lists = f"dpaa_users u, dpaa_recommend(u.user_id, {K}, {kappa}{more}) r ORDER BY u.user_id, r.rank"
        said = server.psql("-c", f"{before}COPY (SELECT u.user_id, r.item_id FROM {lists}) TO STDOUT WITH (FORMAT csv)")
        found: dict[Any, list[Any]] = {user: [] for user in model.user_ids.to_list()}
        for user, item in csv.reader(io.StringIO(said)):
            found[user if text else int(user)].append(item if text else int(item))
        return found

    return ask


def row(model: Model, ask: Ask) -> list[str]:
    """Shares of equal lists, then recalls, one per κ; then how many differ where our own scores tie to rounding."""
    equal, recall, tied = [], [], 0
    for kappa in KAPPAS:
        ours: dict[Any, dict[Any, float]] = {user: {} for user in model.user_ids.to_list()}
        for user, item, score, *_ in model.recommend(k=K, popularity_dial=kappa).iter_rows():
            ours[user][item] = score
        theirs = ask(kappa)
        other = [user for user, listed in ours.items() if theirs[user] != list(listed)]
        equal.append(1 - len(other) / len(ours))
        shares = [len(set(theirs[user]) & set(listed)) / max(len(listed), 1) for user, listed in ours.items()]
        recall.append(sum(shares) / len(shares))
        tied += sum(_rounding(ours[user], theirs[user]) for user in other)
    return [*(f"{share:.2%}" for share in (*equal, *recall)), str(tied)]


def _rounding(ours: dict[Any, float], theirs: list[Any]) -> bool:
    """Whether two lists have the same items, those in other places with scores that float32 cannot tell apart."""
    if set(ours) != set(theirs):
        return False
    room = 8 * 2**-23 * max(map(abs, ours.values()))
    return all(abs(ours[one] - score) <= room for one, score in zip(theirs, ours.values(), strict=True))


@contextmanager
def postgres() -> Iterator[Postgres | None]:
    """None where there is no server with pgvector."""
    try:
        with running(with_vector=True) as server:
            yield server
    except pytest.skip.Exception as reason:
        print(f"pgvector is left out: {reason}")
        yield None


if __name__ == "__main__":
    main()
