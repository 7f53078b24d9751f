"""`dpaa evaluate`: of a run, and of anybody's recommendations."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.command import dpaa_ok, run_dpaa


@pytest.fixture(scope="module")
def recs(walk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run's own recommendations as a file."""
    file = tmp_path_factory.mktemp("recs") / "recs.csv"
    dpaa_ok("recommend", walk / "run", "--k", 20, "--out", file)
    return file


def test_a_runs_own_recommendations_have_the_runs_metrics(walk: Path, recs: Path) -> None:
    of_run = json.loads(dpaa_ok("evaluate", walk / "run", "--k", 5, "--k", 20, "--json").out)
    said = dpaa_ok("evaluate", recs, "--dataset", walk / "data", "--k", 5, "--k", 20, "--json")
    of_file = json.loads(said.out)
    tested = of_file["protocol"]["users"]
    listed = pl.read_csv(recs)["user_id"].n_unique()
    assert said.err.splitlines() == [
        f"note: recs.csv: {listed - tested} lists of users without a relevant test pair are left out, 0 test users "
        "have no list, 0 recommendations are training pairs"
    ]
    assert of_file["metrics"] == pytest.approx(of_run["metrics"])
    assert of_file["exposure"] == of_run["exposure"]
    assert of_file["protocol"] == of_run["protocol"] | {"lists": "given", "popularity_dial": None}


def test_evaluate(run: Path) -> None:
    shown = dpaa_ok("evaluate", run, "--k", 10, "--k", 5)
    assert "lists of 5" in shown.out
    assert "overlap convention 'drop'" in shown.out
    for part in ("lists of 20", "0 active", f"{dial_of(run)['suggested']:g} suggested", dial_of(run)["in_words"]):
        assert part in shown.out.partition("Popularity dial on validation")[2]
    assert shown.err.splitlines()[-1].startswith(f"note: the metrics are written into {run}")
    assert "Off-policy estimates" in dpaa_ok("evaluate", run, "--off-policy").out
    found = json.loads(dpaa_ok("evaluate", run, "--overlap", "keep", "--mask-valid", "--off-policy", "--json").out)
    assert 0 < found["off_policy"]["metrics"]["snips_recall@20"] < 1
    assert found["metrics"].keys() >= {"recall@20", "ndcg@20/niche", "hit@20", "arp@20"}
    assert found["protocol"]["overlap"] == "keep"
    assert found["dial"] == dial_of(run)
    assert found["protocol"]["mask_valid"] is True
    assert json.loads((run / "metrics.json").read_text())["protocol"] == found["protocol"]
    assert "user_id" in pl.read_parquet(run / "per_user.parquet").columns


def dial_of(run: Path) -> dict[str, Any]:
    """What a run keeps of its dial."""
    kept: dict[str, Any] = json.loads((run / "manifest.json").read_text())["dial"]
    return kept


@pytest.mark.parametrize("other", ["--popularity-dial -0.5", "--rerank xquad,strength=0.5", "--split valid"])
def test_an_evaluation_of_other_lists_leaves_the_metrics_of_the_runs_own(run: Path, other: str) -> None:
    dpaa_ok("evaluate", run)
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    said = dpaa_ok("evaluate", run, *other.split(), "--json")
    assert said.err.splitlines()[-1] == (
        f"note: the metrics were not written into {run}: its own dial, re-ranker, dataset or split is another"
    )
    assert json.loads(said.out)["metrics"] != json.loads(before["metrics.json"])["metrics"]
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before
    said = dpaa_ok("evaluate", run, "--popularity-dial", "0", "--rerank", "none", "--k", "5")
    assert f"the metrics are written into {run}" in said.err
    assert json.loads((run / "metrics.json").read_text())["protocol"]["k"] == [5]


def test_a_choice_is_kept_and_every_command_follows_it(run: Path, walk: Path, tmp_path: Path) -> None:
    said = dpaa_ok("evaluate", run, "--popularity-dial", "niche:60")
    chosen = dial_of(run)
    kappa = chosen["kappa"]
    assert chosen["objective"] == "niche:60"
    assert chosen["in_words"] in said.out
    assert kappa == chosen["suggested"] < 0  # niche items need popularity held back
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["protocol"]["popularity_dial"] == kappa
    assert json.loads(dpaa_ok("evaluate", run, "--json").out)["protocol"]["popularity_dial"] == kappa
    said = dpaa_ok("recommend", run, "--out", tmp_path / "recs.parquet")
    assert f"popularity dial at κ = {kappa:g}" in said.out
    dpaa_ok("recommend", run, "--popularity-dial", kappa, "--out", tmp_path / "explicit.parquet")
    assert pl.read_parquet(tmp_path / "recs.parquet").equals(pl.read_parquet(tmp_path / "explicit.parquet"))
    found = json.loads(dpaa_ok("compare", walk / "run", run, "--json").out)
    names = [entry["name"] for entry in found["entries"]]
    assert names == [str(walk / "run"), str(run)], "one entry with two seeds they are not"
    assert found["entries"][1]["metrics"]["arp@20"] == pytest.approx(metrics["metrics"]["arp@20"])
    assert f"{run}: popularity dial at κ = {kappa:g}, as stored in the run" in found["notes"]
    dpaa_ok("report", run, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"{kappa:g} (applied)" in page
    assert "--popularity-dial niche:60" in page


@pytest.mark.parametrize("curve", [None, {"kappa": 3}])
def test_a_missing_or_damaged_curve_is_drawn_again(run: Path, curve: object) -> None:
    manifest = json.loads((run / "manifest.json").read_text()) | {"dial": curve}
    (run / "manifest.json").write_text(json.dumps({key: value for key, value in manifest.items() if value is not None}))
    assert run_dpaa("evaluate", run).code == (2 if curve else 0)
    dpaa_ok("recommend", run, "--popularity-dial", 1, "--users", "u0001")  # the curve is not needed for a number
    dpaa_ok("evaluate", run, "--popularity-dial", "ndcg")
    assert "Popularity dial on validation" in dpaa_ok("evaluate", run).out
