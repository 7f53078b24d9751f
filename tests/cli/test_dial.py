"""The popularity dial on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dpaa.runs import measure
from tests.cli.conftest import TINY
from tests.command import dpaa_ok, run_dpaa


def edit_manifest(run: Path, **changes: object) -> None:
    file = run / "manifest.json"
    content = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def manifest(run: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((run / "manifest.json").read_text())
    return found


# ---------------------------------------------------------------------- evaluate


def test_evaluate_shows_the_stored_curve_and_what_it_means(run: Path) -> None:
    stored = manifest(run)["dial"]
    assert isinstance(stored, dict)
    said = dpaa_ok("evaluate", run)
    assert "Popularity dial on validation, lists of 20" in said.out
    assert "0 active" in said.out
    assert f"{stored['suggested']:g} suggested" in said.out
    assert stored["in_words"] in said.out
    assert "unbiased exposure" in said.out
    found = json.loads(dpaa_ok("evaluate", run, "--json").out)
    assert found["dial"] == stored
    assert found["protocol"]["popularity_dial"] == 0.0


@pytest.mark.parametrize("dial", ["-0.5", "2", "run"])
def test_evaluate_says_which_kappa_was_active(run: Path, dial: str) -> None:
    stored = manifest(run)["dial"]
    assert isinstance(stored, dict)
    kappa = stored["kappa"] if dial == "run" else float(dial)
    found = json.loads(dpaa_ok("evaluate", run, "--popularity-dial", dial, "--json").out)
    assert found["protocol"]["popularity_dial"] == kappa
    said = dpaa_ok("evaluate", run, "--popularity-dial", dial).out
    assert (f"popularity dial at κ = {kappa:g}" in said) == (kappa != 0)
    assert manifest(run)["dial"] == stored


@pytest.mark.parametrize(
    "other", [("--popularity-dial", "-0.5"), ("--rerank", "xquad,strength=0.5"), ("--rerank", "dial,kappa=1")], ids=str
)
def test_an_evaluation_of_other_lists_leaves_the_metrics_of_the_runs_own(run: Path, other: tuple[str, str]) -> None:
    dpaa_ok("evaluate", run)
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    said = dpaa_ok("evaluate", run, *other, "--json")
    assert said.err.splitlines()[-1] == (
        f"note: the metrics were not written into {run}: its own dial, re-ranker or dataset is another"
    )
    assert json.loads(said.out)["metrics"] != json.loads(before["metrics.json"])["metrics"]
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before
    said = dpaa_ok("evaluate", run, "--popularity-dial", "0", "--rerank", "none", "--k", "5")
    assert f"the metrics are written into {run}" in said.err
    assert json.loads((run / "metrics.json").read_text())["protocol"]["k"] == [5]


def test_a_run_that_is_replaced_while_it_is_evaluated_gets_no_metrics(
    run: Path, walk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = measure.measured

    def replaced_meanwhile(*words: Any, **more: Any) -> Any:
        found = measured(*words, **more)
        dpaa_ok("train", walk / "data", *TINY, "--seed", 6, "--out", run, "--overwrite")
        return found

    monkeypatch.setattr(measure, "measured", replaced_meanwhile)
    said = run_dpaa("evaluate", run, "--dial-objective", "recall")
    assert said.code == 2
    assert f"{run} was replaced while its model was measured" in said.err.replace("\n", " ")
    assert not (run / "metrics.json").exists()
    dial = manifest(run)["dial"]
    assert isinstance(dial, dict)
    assert dial["objective"] != "recall"


def test_lists_of_a_setting_have_the_metrics_of_the_setting(run: Path, walk: Path, tmp_path: Path) -> None:
    dpaa_ok("recommend", run, "--popularity-dial", "-1", "--out", tmp_path / "recs.parquet")
    of_file = json.loads(
        dpaa_ok("evaluate", "--recs", tmp_path / "recs.parquet", "--dataset", walk / "data", "--json").out
    )
    of_run = json.loads(dpaa_ok("evaluate", run, "--popularity-dial", "-1", "--json").out)
    assert of_file["metrics"] == pytest.approx(of_run["metrics"])
    assert of_file["metrics"]["arp@20"] < json.loads(dpaa_ok("evaluate", run, "--json").out)["metrics"]["arp@20"]
    assert "dial" not in of_file


@pytest.mark.parametrize("dial", [[], ["--popularity-dial", "run"]])
def test_choosing_again_is_kept_and_every_command_follows_it(run: Path, tmp_path: Path, dial: list[str]) -> None:
    before = manifest(run)
    said = dpaa_ok("evaluate", run, "--dial-objective", "niche:60", *dial)
    after = manifest(run)
    chosen = after["dial"]
    assert isinstance(chosen, dict)
    assert chosen["objective"] == "niche:60"
    assert before | {"dial": chosen} == after
    assert chosen["in_words"] in said.out
    assert json.loads((run / "metrics.json").read_text())["protocol"]["popularity_dial"] == chosen["kappa"]
    assert chosen["kappa"] == chosen["suggested"] < 0  # niche items need popularity held back
    again = json.loads(dpaa_ok("evaluate", run, "--json").out)
    assert again["protocol"]["popularity_dial"] == chosen["kappa"]
    said = dpaa_ok("recommend", run, "--out", tmp_path / "recs.parquet")
    assert f"popularity dial at κ = {chosen['kappa']:g}" in said.out
    explicit = tmp_path / "explicit.parquet"
    dpaa_ok("recommend", run, "--popularity-dial", chosen["kappa"], "--out", explicit)
    assert pl.read_parquet(tmp_path / "recs.parquet").equals(pl.read_parquet(explicit))


def test_a_number_measures_and_an_objective_keeps(run: Path) -> None:
    (run / "metrics.json").unlink(missing_ok=True)
    said = dpaa_ok("evaluate", run, "--dial-objective", "niche:60", "--popularity-dial", "2")
    assert "popularity dial at κ = 2" in said.out
    assert not (run / "metrics.json").exists()
    kept = manifest(run)["dial"]
    assert isinstance(kept, dict)
    assert kept["kappa"] < 0


def test_compare_and_report_use_the_kept_choice(run: Path, walk: Path, tmp_path: Path) -> None:
    dpaa_ok("evaluate", run, "--dial-objective", "niche:60")
    kept = manifest(run)["dial"]
    assert isinstance(kept, dict)
    found = json.loads(dpaa_ok("compare", walk / "run", run, "--json").out)
    names = [entry["name"] for entry in found["entries"]]
    assert names == [str(walk / "run"), str(run)], "one entry with two seeds they are not"
    metrics = json.loads((run / "metrics.json").read_text())["metrics"]
    assert found["entries"][1]["metrics"]["arp@20"] == pytest.approx(metrics["arp@20"])
    assert f"{run}: popularity dial at κ = {kept['kappa']:g}, as the run keeps it" in found["notes"]
    assert f"{walk / 'run'}: popularity dial" not in " ".join(found["notes"])
    pytest.importorskip("altair")
    dpaa_ok("report", run, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"{kept['kappa']:g} (applied)" in page
    assert "--dial-objective niche:60" in page


def test_a_wrong_call_changes_nothing_of_the_run(run: Path) -> None:
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    for wrong in (("--overlap", "some"), ("--popularity-dial", "much")):
        assert run_dpaa("evaluate", run, "--dial-objective", "recall", *wrong).code == 2
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before


def test_a_run_without_a_curve(run: Path) -> None:
    edit_manifest(run, dial=None)
    assert "Popularity dial on validation" not in dpaa_ok("evaluate", run).out
    dpaa_ok("recommend", run, "--popularity-dial", "run", "--users", "u0001")
    assert json.loads(dpaa_ok("evaluate", run, "--json").out)["dial"] is None
    dpaa_ok("evaluate", run, "--dial-objective", "ndcg")
    assert "Popularity dial on validation" in dpaa_ok("evaluate", run).out


def test_a_damaged_curve_is_drawn_again(run: Path) -> None:
    edit_manifest(run, dial={"kappa": 3})
    said = run_dpaa("evaluate", run)
    assert said.code == 2
    assert "--dial-objective ndcg" in said.err
    dpaa_ok("recommend", run, "--popularity-dial", 1, "--users", "u0001")  # the curve is not needed for a number
    dpaa_ok("evaluate", run, "--dial-objective", "ndcg")
    dpaa_ok("evaluate", run)


# ---------------------------------------------------------------------- recommend


def test_recommendations_lean_as_they_are_told(run: Path, tmp_path: Path) -> None:
    counts = pl.read_parquet(run / "items.parquet").select("item_id", "count")
    means = []
    for dial in ("-2", "0", "2"):
        said = dpaa_ok("recommend", run, "--k", 5, "--popularity-dial", dial, "--out", tmp_path / f"{dial}.csv")
        assert f"popularity dial at κ = {dial}" in said.out
        means.append(pl.read_csv(tmp_path / f"{dial}.csv").join(counts, on="item_id")["count"].mean())
    assert means[0] < means[1] < means[2]
    dpaa_ok("recommend", run, "--k", 5, "--out", tmp_path / "plain.csv")
    assert (tmp_path / "plain.csv").read_bytes() == (tmp_path / "0.csv").read_bytes()


def test_newcomers_get_it_too(run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("user_id,item_id\nann,i0003\nann,i0009\nbob,i0003\n")
    lists = []
    for dial in ("-1", "run", "3"):
        file = tmp_path / f"{dial}.parquet"
        dpaa_ok("recommend", run, "--history", tmp_path / "new.csv", "--k", 5, "--popularity-dial", dial, "--out", file)
        lists.append(pl.read_parquet(file))
    assert all(set(found["user_id"]) == {"ann", "bob"} for found in lists)
    assert not lists[0]["item_id"].equals(lists[2]["item_id"])
