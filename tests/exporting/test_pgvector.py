"""The tables loaded into a real PostgreSQL with pgvector, and asked by the function they bring."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dpaa.exporting import export
from dpaa.runs.model import Model
from tests.exporting.test_exports import KAPPAS, equal_lists, lists_of
from tests.postgres import Postgres, running
from tests.serving.made import drawn_model

pytestmark = pytest.mark.slow
EVERYBODY = "COPY (SELECT u.user_id, r.item_id, r.score FROM dpaa_users u, dpaa_recommend(u.user_id, 20, {kappa}) r"
EVERYBODY += " ORDER BY u.user_id, r.rank) TO STDOUT WITH (FORMAT csv)"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running() as server:
        yield server


def queried(postgres: Postgres, model: Model, kappa: float) -> dict[Any, list[Any]]:
    said = postgres.psql("-c", EVERYBODY.format(kappa=kappa))
    text = model.item_ids.dtype == pl.String
    found: dict[Any, list[Any]] = {user: [] for user in model.user_ids.to_list()}
    for user, item, _ in csv.reader(io.StringIO(said)):
        found[user if text else int(user)].append(item if text else int(item))
    return found


@pytest.mark.parametrize("text", [True, False])
def test_the_function_gives_our_lists(postgres: Postgres, text: bool, tmp_path: Path) -> None:
    model = drawn_model(n_users=40, n_items=300, size=12, text=text, candidates=True)
    export(model, tmp_path / "made", "pgvector")
    for _ in range(2):  # loading again replaces what was there
        postgres.psql("-f", "load.sql", cwd=tmp_path / "made")
    for kappa in KAPPAS:
        assert equal_lists(lists_of(model, 20, kappa), queried(postgres, model, kappa)) == 1.0
    user = model.user_ids[0]
    literal = f"'{user}'" if text else str(user)
    said = postgres.psql("-A", "-t", "-c", f"SELECT score FROM dpaa_recommend({literal}, 3, -0.5)")
    ours = model.recommend([user], 3, popularity_dial=-0.5)["score"].to_list()
    assert [float(line) for line in said.split()] == pytest.approx(ours, abs=2e-5)


def test_odd_ids_arrive(postgres: Postgres, tmp_path: Path) -> None:
    model = drawn_model(n_users=6, n_items=40, size=4)
    odd = ["", "a,b", 'q"q', "\\.", "line\nend", "'; DROP TABLE x", "ключ"]
    items = pl.Series(sorted([*odd, *(f"i{n:03d}" for n in range(33))]))
    named = Model(model.method, model.user_ids, items, model.train, None, model.manifest)
    export(named, tmp_path / "made", "pgvector")
    postgres.psql("-f", "load.sql", cwd=tmp_path / "made")
    assert queried(postgres, named, 0.0) == lists_of(named, 20, 0.0)
