"""`dpaa evaluate`: of a run, and of anybody's recommendations."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.command import dpaa_ok


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
    assert shown.err.splitlines()[-1].startswith(f"note: the metrics are written into {run}")
    assert "Off-policy estimates" in dpaa_ok("evaluate", run, "--off-policy").out
    found = json.loads(dpaa_ok("evaluate", run, "--overlap", "keep", "--mask-valid", "--off-policy", "--json").out)
    assert 0 < found["off_policy"]["metrics"]["snips_recall@20"] < 1
    assert found["metrics"].keys() >= {"recall@20", "ndcg@20/niche", "hit@20", "arp@20"}
    assert found["protocol"]["overlap"] == "keep"
    assert found["protocol"]["mask_valid"] is True
    assert json.loads((run / "metrics.json").read_text())["protocol"] == found["protocol"]
    assert "user_id" in pl.read_parquet(run / "per_user.parquet").columns
