"""Every export, asked the way its own folder shows, against `Model.recommend` at several κ."""

import csv
import io
import json
import runpy
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpaa import InputError, Model, export
from dpaa.data.attributes import ItemAttributes
from dpaa.data.pairs import Pairs
from dpaa.exporting._export import TARGETS
from tests.postgres import Postgres, running
from tests.serving.made import drawn_model

SYSTEMS = [name for name in TARGETS if name != "pgvector"]


@pytest.fixture(scope="module", params=["text", "whole numbers", "candidates"])
def model(request: pytest.FixtureRequest) -> Model:
    return drawn_model(
        n_users=40, n_items=300, size=12, text=request.param == "text", candidates=request.param == "candidates"
    )


def opened(folder: Path) -> Any:
    """The `Recommender` of the folder's own query.py."""
    return runpy.run_path(str(folder / "query.py"))["Recommender"](folder)


@pytest.mark.parametrize("to", SYSTEMS)
def test_one_export_serves_every_dial(model: Model, to: str, tmp_path: Path) -> None:
    if to != "npz":
        pytest.importorskip(to, reason=f"{to} is not installed")
    about = export(model, tmp_path / "made", to)
    ask = opened(tmp_path / "made").recommend
    for kappa in KAPPAS:
        expected = lists_of(model, 20, kappa)
        found = {user: ask(user, 20, kappa) for user in expected}
        share = equal_lists(expected, {user: [item for item, _ in listed] for user, listed in found.items()})
        assert share == 1.0 if about["index"] == "exact" else share > 0.9
        scores = {
            (user, item): score for user, item, score, _ in model.recommend(k=20, popularity_dial=kappa).iter_rows()
        }
        pairs = [(scores.get((user, item)), score) for user, listed in found.items() for item, score in listed]
        both = np.array([pair for pair in pairs if pair[0] is not None], dtype=np.float64)
        np.testing.assert_allclose(both[:, 0], both[:, 1], atol=2e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made"]


def test_what_is_there_is_replaced_only_when_asked_for(tmp_path: Path) -> None:
    model, folder = drawn_model(n_users=5, n_items=60, size=4), tmp_path / "made"
    export(model, folder, "npz")
    with pytest.raises(InputError, match="already exists; pass --overwrite"):
        export(model, folder, "npz")
    export(model, folder, "npz", users=["u00001"], overwrite=True)
    assert json.loads((folder / "export.json").read_text())["users"] == 1


def test_some_users_alone_and_titles_go_along(tmp_path: Path) -> None:
    model = drawn_model(n_users=9, n_items=60, size=4, candidates=True)
    named = replace(model, attributes=ItemAttributes(pl.DataFrame({"title": [f"Film {n}" for n in range(60)]})))
    warm = model.train.user != 5  # whose vector would be noise
    named = replace(named, train=Pairs.of(model.train.user[warm], model.train.item[warm]))
    about = export(named, tmp_path / "made", "npz", users=["u00007", "u00005", "u00003"])
    assert [about["users"], about["users_without_training_pairs"]] == [2, 1]
    assert pl.read_parquet(tmp_path / "made" / "users.parquet")["user_id"].to_list() == ["u00003", "u00007"]
    assert set(pl.read_parquet(tmp_path / "made" / "seen.parquet")["user_id"]) == {"u00003", "u00007"}
    assert np.load(tmp_path / "made" / "vectors.npz")["users"].shape == (2, 4)
    items = pl.read_parquet(tmp_path / "made" / "items.parquet")
    assert items.columns == ["item_id", "title"]
    assert items["title"].to_list() == [f"Film {int(item[1:])}" for item in items["item_id"]]


def test_without_a_dial_it_is_the_one_that_the_run_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = drawn_model(n_users=9, n_items=60, size=4, text=False)
    turned = replace(model, manifest=model.manifest | {"dial": model.manifest["dial"] | {"kappa": -1.5}})
    export(turned, tmp_path / "made", "npz")
    expected = lists_of(turned, 5, -1.5)
    assert expected != lists_of(turned, 5, 0.0)
    monkeypatch.setattr(sys, "argv", ["query.py", "3", "--k", "5"])
    runpy.run_path(str(tmp_path / "made" / "query.py"), run_name="__main__")
    assert [int(line.split("\t")[1]) for line in capsys.readouterr().out.splitlines()] == expected[3]


KAPPAS = (-0.5, 0.0, 0.5)


def lists_of(model: Model, k: int, kappa: float) -> dict[Any, list[Any]]:
    """User → our exact list."""
    lists: dict[Any, list[Any]] = {user: [] for user in model.user_ids.to_list()}
    for user, item, *_ in model.recommend(k=k, popularity_dial=kappa).iter_rows():
        lists[user].append(item)
    return lists


def equal_lists(expected: dict[Any, list[Any]], found: dict[Any, list[Any]]) -> float:
    """The share of users with the same items in the same order."""
    return sum(found[user] == listed for user, listed in expected.items()) / len(expected)


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
