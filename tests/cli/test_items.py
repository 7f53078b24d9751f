"""`dpaa data` as printed and written; titles and attributes of items, from a file to every place that shows them."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpaa.data.dataset import read_dataset
from tests.command import dpaa_ok, run_dpaa

HOSTILE = "<script>alert(1)</script>\x1b[31m[bold]\u202e=1+1"
GENRES = ["Drama|War", "Comedy", "Drama", None]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with titles and genres, two runs that need no training, their lists."""
    folder = tmp_path_factory.mktemp("titled")
    rng = np.random.default_rng(0)
    weights = 1.0 / np.arange(1, 41)
    share = weights / weights.sum()
    pairs = [(user, int(item)) for user in range(60) for item in rng.choice(40, 12, replace=False, p=share)]
    pl.DataFrame(pairs, schema=["user_id", "item_id"], orient="row").write_csv(folder / "log.csv")
    titles = [HOSTILE if item % 2 else f"Film {item}" for item in range(45)]
    items = pl.DataFrame({"movieId": range(45), "title": titles, "genres": [GENRES[item % 4] for item in range(45)]})
    items.write_csv(folder / "items.csv")
    said = dpaa_ok("data", "log", folder / "log.csv", "--items", folder / "items.csv", "--out", folder / "data")
    assert "items are not in the log" in said.err
    for method in ("item-knn", "most-popular"):
        dpaa_ok("train", folder / "data", "--method", method, "--out", folder / method)
    dpaa_ok("recommend", folder / "item-knn", "--k", 5, "--out", folder / "recs.csv")
    return folder


def test_lists_have_titles_that_do_nothing(shop: Path) -> None:
    said = dpaa_ok("recommend", shop / "item-knn", "--k", 10).out
    assert "Film " in said
    assert "<script>alert(1)</script>\\x1b[31m[bold]\\u202e=1+1" in said
    assert "\x1b" not in said
    table = pl.read_csv(shop / "recs.csv")
    assert table.columns == ["user_id", "item_id", "score", "rank", "title"]
    items = dict(read_dataset(shop / "data").items.select("item_id", "title").iter_rows())
    assert table["title"].to_list() == [items[item] for item in table["item_id"]]


def test_comparison_and_audit_name_items_by_their_title(shop: Path) -> None:
    runs = (shop / "most-popular", shop / "item-knn")
    said = dpaa_ok("compare", *runs, "--k", 5, "--group-by", "genres").out
    assert "recall@5/genres=War" in said
    assert "Film " in said
    assert "\x1b" not in said
    found = json.loads(dpaa_ok("compare", *runs, "--k", 5, "--json").out)
    moved = found["exposure"][0]["gaining"][0]
    titles = dict(read_dataset(shop / "data").items.select("item_id", "title").iter_rows())
    assert moved["title"] == titles[moved["item_id"]]
    audit = json.loads(dpaa_ok("audit", shop / "data", "--recs", shop / "recs.csv", "--json").out)
    winner = audit["recommendations"]["winners"][0]
    assert winner["title"] == titles[winner["item_id"]]


def test_exposure_by_a_column_is_shown_checked_and_guaranteed(shop: Path) -> None:
    run = shop / "item-knn"
    said = dpaa_ok("evaluate", run, "--k", 5, "--group-by", "genres").out
    table = said[said.index("Exposure by genres") : said.index("a place at rank")].splitlines()
    assert any("worst-off group" in line for line in table)
    numbers = json.loads(dpaa_ok("evaluate", run, "--k", 5, "--group-by", "genres", "--json").out)["metrics"]
    ratios = [value for name, value in numbers.items() if name.startswith("exposure@5/genres=") and value is not None]
    assert numbers["exposure@5/genres"] == min(ratios)
    check = ("--group-by", "genres", "--k", 5, "--fail-if", "exposure@5/genres<99 of merit")
    assert run_dpaa("evaluate", run, *check).code == 1
    assert run_dpaa("evaluate", run, "--k", 5, "--fail-if", "exposure@5/genres<0.1").code == 2, "without --group-by"
    for rerank in ("xquad,strength=0.9,by=genres", "steck,by=genres=War", "fairrec,strength=0.3,by=genres"):
        words = ("--rerank", rerank, "--k", 5)
        fairer = dpaa_ok("recommend", run, *words, "--out", shop / "fairer.csv", "--overwrite").err
        assert "written" in fairer or (shop / "fairer.csv").exists()
    audited = dpaa_ok("audit", shop / "data", "--recs", shop / "recs.csv", "--group-by", "genres").out
    assert "the worst-off group, and each" in audited


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    rows = [f"{user},{item},{item % 5 + 1}" for user in range(10) for item in range(20)]
    file = tmp_path / "clicks.csv"
    file.write_text("user,item,rating\n" + "\n".join([*rows, rows[-1]]) + "\n")
    return file


def test_log(clicks: Path, tmp_path: Path) -> None:
    shown = dpaa_ok("data", "log", clicks, "--positive", "rating>=3", "--seed", 3, "--out", tmp_path / "data").out
    assert "Dataset(clicks: 10 users × 12 items, 120 interactions)" in shown
    assert f"dataset written to {tmp_path / 'data'}; next: dpaa train {tmp_path / 'data'} --out RUN" in shown
    dataset = read_dataset(tmp_path / "data")
    assert dataset.about["seed"] == 3
    assert any("1 duplicate pair; each counts once" in note for note in dataset.notes)


def test_append_keeps_the_rules_of_the_dataset(clicks: Path, tmp_path: Path) -> None:
    dpaa_ok("data", "log", clicks, "--out", tmp_path / "data")
    (tmp_path / "more.csv").write_text("user,item,rating\n99,1,5\n")
    words = ("data", "log", tmp_path / "more.csv", "--append", tmp_path / "data")
    for rule in (("--seed", 3), ("--positive", "rating>=3"), ("--test", 0.1)):
        refused = run_dpaa(*words, *rule)
        assert refused.code == 2
        assert "--append keeps the options that the dataset was created with" in refused.err
    dpaa_ok(*words, "--out", tmp_path / "longer")
    dpaa_ok(*words)
    assert read_dataset(tmp_path / "data").n_interactions == read_dataset(tmp_path / "longer").n_interactions == 201


def test_invalid_rows_are_written(clicks: Path, tmp_path: Path) -> None:
    words = ("data", "log", clicks, "--invalid", tmp_path / "invalid.csv", "--out")
    assert "no row is invalid" in dpaa_ok(*words, tmp_path / "whole").err
    clicks.write_text(clicks.read_text() + "1,,5\n2,3,many\n")
    assert f"invalid rows written to {tmp_path / 'invalid.csv'}: 2" in dpaa_ok(*words, tmp_path / "most").err
    assert len(pl.read_csv(tmp_path / "invalid.csv")) == 2


def test_demo_and_describe(tmp_path: Path) -> None:
    words = ("data", "demo", "--size", "60x50", "--severity", 2, "--out", tmp_path / "data")
    dpaa_ok(*words)
    assert "density" in dpaa_ok("data", "describe", tmp_path / "data").out
    about = json.loads(dpaa_ok("data", "describe", tmp_path / "data", "--json").out)
    assert about["fingerprint"] == read_dataset(tmp_path / "data").fingerprint
    assert about["source"] == "simulated world, 60 users, 50 items, severity 2"
    assert "already exists" in run_dpaa(*words).err
    dpaa_ok(*words, "--overwrite")
