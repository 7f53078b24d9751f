"""`dpaa compare` as a user types it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from dpaa.comparison import read_entries
from dpaa.errors import InputError
from dpaa.report._documents import comparison
from dpaa.report._inputs import Comparison
from tests.cli.conftest import TINY
from tests.command import dpaa_ok, run_dpaa


@pytest.fixture(scope="module")
def shop(walk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The walk's dataset and run, another seed of it, another method, and files of recommendations."""
    folder = tmp_path_factory.mktemp("shop")
    shutil.copytree(walk / "run", folder / "run")
    dpaa_ok("train", walk / "data", *TINY, "--seed", 6, "--out", folder / "again")
    dpaa_ok("train", walk / "data", "--method", "most-popular", "--out", folder / "popular")
    for run in ("run", "popular"):
        dpaa_ok("recommend", folder / run, "--k", 20, "--out", folder / f"{run}.csv")
    return folder


def test_two_runs(walk: Path, shop: Path) -> None:
    said = dpaa_ok("compare", shop / "popular", shop / "run")
    for part in (
        "run against popular",
        "95% interval",
        "p corrected",
        "harm to popular items",
        "Items that gain and lose most",
        "overlap convention 'drop'",
        "Holm's correction for 6 tests",
    ):
        assert part in said.out, part
    assert "not for the randomness of training" in said.err
    found = json.loads(dpaa_ok("compare", shop / "popular", shop / "run", "--json").out)
    alone = json.loads(dpaa_ok("evaluate", shop / "run", "--json").out)
    assert found["entries"][1]["metrics"] == pytest.approx(alone["metrics"], nan_ok=True)
    # Entries may have their dials at different places, so a comparison names none.
    assert found["protocol"] == alone["protocol"] | {"popularity_dial": None}


def test_seeds_become_one_entry(shop: Path) -> None:
    _, entries = read_entries([shop / "popular", shop / "run", shop / "again"])
    assert [entry.name for entry in entries] == ["popular", "lightgcn"]
    assert entries[1].seeds == (5, 6)
    said = dpaa_ok("compare", shop / "popular", shop / "run", shop / "again")
    assert "lightgcn (2 seeds)" in said.out
    assert "one run of popular:" in said.err


def test_the_same_seed_twice_is_no_second_training(shop: Path, tmp_path: Path) -> None:
    shutil.copytree(shop / "run", tmp_path / "run")
    _, entries = read_entries([shop / "run", tmp_path / "run", shop / "again"])
    assert [entry.name for entry in entries] == [str(shop / "run"), str(tmp_path / "run"), "again"]


def test_a_file_says_what_its_run_says(walk: Path, shop: Path) -> None:
    """The run's own lists from a file: no difference anywhere."""
    found = json.loads(dpaa_ok("compare", shop / "run", shop / "run.csv", "--json").out)
    assert [delta["delta"] for delta in found["deltas"]] == [0] * 8
    assert found["overlap"][0]["jaccard"] == 1
    files = ("compare", shop / "popular.csv", shop / "run.csv", "--dataset", walk / "data", "--json")
    assert json.loads(dpaa_ok(*files).out)["protocol"]["lists"] == "given"


def test_users_without_a_list_have_misses(walk: Path, shop: Path, tmp_path: Path) -> None:
    lists = pl.read_csv(shop / "run.csv")
    users = lists["user_id"].unique().sort()
    lists.filter(pl.col("user_id").is_in(users[::2].implode())).write_csv(tmp_path / "half.csv")
    said = dpaa_ok("compare", shop / "run.csv", tmp_path / "half.csv", "--dataset", walk / "data", "--json")
    found = json.loads(said.out)
    assert any("test users have no list" in note for note in found["notes"])
    assert found["entries"][1]["metrics"]["recall@20"] < found["entries"][0]["metrics"]["recall@20"]


def test_choices(shop: Path, tmp_path: Path) -> None:
    words = ("compare", shop / "run", shop / "popular", "--baseline", "popular", "--metric", "ndcg", "--metric",
             "recall@5/niche", "--metric", "ndcg/niche-tastes", "--k", 5, "--margin", 0.2,
             "--overlap", "mask", "--mask-valid")  # fmt: skip
    found = json.loads(dpaa_ok(*words, "--json").out)
    assert found["baseline"] == "popular"
    assert [delta["metric"] for delta in found["deltas"]] == ["ndcg@5", "recall@5/niche", "ndcg@5/niche-tastes"]
    assert found["no_harm"][0]["margin"] == 0.2
    assert found["protocol"]["overlap"] == "mask"
    assert dpaa_ok(*words, "--json").out == dpaa_ok(*words, "--json").out


def test_the_file_that_is_written_is_what_is_printed(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "comparison.json"
    words = ("compare", shop / "run", shop / "popular", "--out", file)
    said = dpaa_ok(*words, "--json")
    assert json.loads(file.read_text()) == json.loads(said.out)
    assert run_dpaa(*words).code == 2
    assert f"written to {file}" in dpaa_ok(*words, "--overwrite").err
    assert [path.name for path in tmp_path.iterdir()] == ["comparison.json"]


def test_a_dataset_that_has_moved(walk: Path, shop: Path, tmp_path: Path) -> None:
    shutil.copytree(walk / "data", tmp_path / "moved")
    dpaa_ok("compare", shop / "run", shop / "popular", "--dataset", tmp_path / "moved")
    dpaa_ok("data", "demo", "--users", 50, "--items", 40, "--out", tmp_path / "other")
    with pytest.raises(InputError, match="was trained on another dataset than"):
        read_entries([shop / "run", shop / "popular"], tmp_path / "other")


def test_help_does_not_import_scipy() -> None:
    """It takes a second that nobody who asks for help should wait for."""
    code = (
        "import sys; from dpaa.cli import main; sys.argv = ['dpaa', '--help']\ntry: main()\nexcept SystemExit: pass\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", f"{code}print('scipy' in sys.modules)"], capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines()[-1] == "False"


def test_interval_and_p_are_named_for_what_they_are(shop: Path) -> None:
    one = dpaa_ok("compare", shop / "popular", shop / "run").out
    assert "p-values from 2,000 random sign flips of the users' differences; Holm's" in " ".join(one.split())
    several = dpaa_ok("compare", shop / "popular", shop / "run", shop / "again").out
    assert "p-values from Student's t for users crossed with runs; Holm's" in " ".join(several.split())


def test_a_small_loss_is_told_in_one_sentence(walk: Path, shop: Path, tmp_path: Path) -> None:
    """Worse by more than chance and within the margin: "no harm" may not stand beside "worse" for the same number."""
    train = pl.read_parquet(walk / "data" / "train.parquet")
    popular = train.group_by("item_id").len().sort("len", "item_id", descending=True)["item_id"]
    test = pl.read_parquet(walk / "data" / "test.parquet").select("user_id", "item_id").unique()
    test = test.join(train.select("user_id", "item_id"), on=["user_id", "item_id"], how="anti").sort(
        "user_id", "item_id"
    )
    test.write_csv(tmp_path / "all.csv")  # every list is what is to be found
    some = test["user_id"].unique().sort()[::3]
    lost = test.filter(pl.col("user_id").is_in(some.implode()) & pl.col("item_id").is_in(popular[:20].implode()))
    kept = test.join(lost.unique("user_id", keep="first", maintain_order=True), on=["user_id", "item_id"], how="anti")
    kept.write_csv(tmp_path / "most.csv")
    files = (tmp_path / "all.csv", tmp_path / "most.csv", "--dataset", walk / "data", "--metric", "recall/popular")
    said = " ".join(dpaa_ok("compare", *files, "--margin", 0.7).out.split())
    assert "the loss on popular items is small: most.csv loses less than 70% of" in said
    assert "no harm" not in said
    dpaa_ok("compare", *files, "--margin", 0.7, "--out", tmp_path / "c.json")
    page = comparison(Comparison.model_validate_json((tmp_path / "c.json").read_text())).content
    assert "worse, more than chance" in page
    assert "Popular items lose less than the margin" in page
    assert "no harm" not in page.lower()


def test_a_base_near_zero_gives_the_difference_everywhere(shop: Path, walk: Path, tmp_path: Path) -> None:
    """A share of niche items of .0009 before: the gain is told as +0.9991, in words, in the table and on the page."""
    train = pl.read_parquet(walk / "data" / "train.parquet")
    by_count = train.group_by("item_id").len().sort("len", "item_id")["item_id"]
    users = train["user_id"].unique().sort()
    for name, items in (("head", by_count[-3:]), ("tail", by_count[:3])):
        rows = pl.DataFrame({"user_id": users}).join(pl.DataFrame({"item_id": items}), how="cross")
        rows.write_csv(tmp_path / f"{name}.csv")
    head = pl.read_csv(tmp_path / "head.csv")
    test = pl.read_parquet(walk / "data" / "test.parquet")["user_id"].unique().sort()
    one = (head["user_id"] == test[0]) & (head["item_id"] == by_count[-1])
    head.with_columns(item_id=pl.when(one).then(pl.lit(by_count[0])).otherwise("item_id")).write_csv(
        tmp_path / "head.csv"
    )
    files = (tmp_path / "head.csv", tmp_path / "tail.csv", "--dataset", walk / "data", "--out", tmp_path / "c.json")
    said = dpaa_ok("compare", *files, "--metric", "aplt", "--metric", "recall").out
    found = json.loads((tmp_path / "c.json").read_text())["deltas"][0]
    assert 0 < found["baseline"] < 0.05
    assert found["relative"] is None
    assert f"tail.csv is better than head.csv in aplt@20 ({found['delta']:+.4f})" in said
    assert "%" not in said.partition("aplt@20")[2].partition("\n")[0]
    chapter = comparison(Comparison.model_validate_json((tmp_path / "c.json").read_text()))
    assert not any("aplt@20" in figure.description for figure in chapter.figures)
