"""`dpaa compare` as a user types it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import dpaa
from dpaa.cli.compare import _print_comparison
from dpaa.comparison import read_entries
from tests.cli.conftest import TINY
from tests.command import dpaa_ok, run_dpaa


@pytest.fixture(scope="module")
def shop(walk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The walk's run, with another seed, wider, another method, and files of recommendations."""
    folder = tmp_path_factory.mktemp("shop")
    shutil.copytree(walk / "run", folder / "run")
    dpaa_ok("train", walk / "data", *TINY, "--seed", 6, "--set", "threads=2", "--out", folder / "again")
    dpaa_ok("train", walk / "data", *TINY, "--seed", 7, "--set", "embedding_size=5", "--out", folder / "wider")
    dpaa_ok("train", walk / "data", "--method", "most-popular", "--out", folder / "popular")
    for run in ("run", "popular"):
        dpaa_ok("recommend", folder / run, "--k", 20, "--out", folder / f"{run}.csv")
    return folder


def test_two_runs(walk: Path, shop: Path) -> None:
    said = dpaa_ok("compare", shop / "popular", shop / "run")
    for part in (
        "run against popular",
        "95% interval",
        "p (Holm)",
        "harm to popular items",
        "Items that gain and lose most",
        "overlap convention 'drop'",
        "Holm's correction for 6 tests",
    ):
        assert part in said.out, part
    assert "not for run-to-run training variance" in said.err
    found = json.loads(dpaa_ok("compare", shop / "popular", shop / "run", "--json").out)
    alone = json.loads(dpaa_ok("evaluate", shop / "run", "--json").out)
    assert found["entries"][1]["metrics"] == pytest.approx(alone["metrics"], nan_ok=True)
    # Entries may have their dials at different places, so a comparison names none.
    assert found["protocol"] == alone["protocol"] | {"popularity_dial": None}


def test_differences_of_counts_have_fewer_decimals(walk: Path, shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With four the verdict would leave the line of its metric in a terminal of 80 columns."""
    runs = {name: dpaa.load(shop / name) for name in ("popular", "run")}
    result = dpaa.compare(dpaa.read_dataset(walk / "data"), runs)
    wide = {"delta": -12.2403, "interval": (-12.9563, -11.5306)}
    deltas = [replace(one, **wide) if one.metric == "arp@20" else one for one in result.deltas]
    _print_comparison(replace(result, deltas=deltas))
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "-12.24" in line)
    assert "-12.96 to -11.53 " in line


def test_a_file_says_what_its_run_says(walk: Path, shop: Path) -> None:
    """The run's own lists from a file: no difference anywhere."""
    found = json.loads(dpaa_ok("compare", shop / "run", shop / "run.csv", "--json").out)
    assert [delta["delta"] for delta in found["deltas"]] == [0] * 8
    assert found["overlap"][0]["jaccard"] == 1
    files = ("compare", shop / "popular.csv", shop / "run.csv", "--dataset", walk / "data", "--json")
    assert json.loads(dpaa_ok(*files).out)["protocol"]["lists"] == "given"


def test_runs_that_differ_in_seed_and_threads_alone_are_one_entry(shop: Path) -> None:
    _, entries = read_entries([shop / name for name in ("run", "popular", "again", "wider", "popular.csv")])
    assert [(entry.name, entry.kind, entry.seeds) for entry in entries] == [
        ("lightgcn", "run", (5, 6)),
        ("popular", "run", (0,)),
        ("wider", "run", (7,)),
        ("popular.csv", "file", ()),
    ]
    assert entries[0].sources == (str(shop / "run"), str(shop / "again"))
    assert [len(entry.evaluations) for entry in entries] == [2, 1, 1, 1]


def test_choices(shop: Path, tmp_path: Path) -> None:
    words = ("compare", shop / "popular", shop / "run", "--metric", "ndcg", "--metric",
             "recall@5/niche", "--metric", "ndcg/niche-tastes", "--k", 5,
             "--overlap", "mask")  # fmt: skip
    found = json.loads(dpaa_ok(*words, "--json").out)
    assert found["baseline"] == "popular"
    assert [delta["metric"] for delta in found["deltas"]] == ["ndcg@5", "recall@5/niche", "ndcg@5/niche-tastes"]
    assert found["no_harm"][0]["margin"] == 0.05
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
