"""Titles and attributes of items, from a file to all that people see; a stranger's titles are text and no more."""

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
