"""`dpaa reproduce` as a user types it, on a world small enough to train in moments."""

import json
from pathlib import Path

import pytest

from dpaa.reproduction import BUDGETS
from dpaa.reproduction import _paper as paper
from tests.command import dpaa_ok
from tests.reproduction.conftest import ROWS, SMOKE, cells, folders

TABLES = ("datasets", "overall", "groups", "severity", "ablation", "settings")


def test_all_tables_figures_and_the_page_are_there(made: tuple[Path, str, str]) -> None:
    folder, out, err = made
    names = {file.name for file in (folder / "out").iterdir()}
    figures = ("severity-smoke", *(f"ablation-{preset}-smoke" for preset in paper.PRESETS))
    assert names == {f"{name}-smoke.csv" for name in TABLES} | {"all-smoke.md"} | {
        f"{name}.{form}" for name in figures for form in ("png", "svg")
    }
    page = (folder / "out" / "all-smoke.md").read_text(encoding="utf-8")
    assert page.count("\n## ") == len(TABLES)
    rows = "".join(f" --method {row}" for row in ROWS[1::2])
    assert f"`dpaa reproduce all --budget smoke --data coat=DIR --data kuairec=DIR{rows} --severity 9`" in page
    assert "(0.0278, " in out, "the paper's recall of LightGCN at severity 9"
    assert " trained, " in err
    left = {run.parent.name.rpartition("-")[0] for run in (folder / ".dpaa-work").glob("*/*/config.json")}
    assert left == {"pretrained-lightgcn"}, "finished trainings are removed"


def test_numbers_are_the_results_and_no_table_mixes_conventions(twice: Path) -> None:
    results = [json.loads(file.read_text()) for file in (twice / "results" / "overall").iterdir()]
    rows = [row for row in cells(twice, "overall") if row["row"] == "ips" and row["column"] == "recall@20"]
    assert [row["table"] for row in rows] == ["coat-drop", "coat-mask", "coat-keep"]
    for row in rows:
        overlap = row["table"].removeprefix("coat-")
        values = [one["metrics"][overlap]["recall@20"] for one in results if one["method"] == "ips"]
        assert len(values) == int(row["seeds"]) == 2
        assert float(row["mean"]) == pytest.approx(sum(values) / 2)
        assert float(row["difference"]) == pytest.approx(sum(values) / 2 - 0.2107)
    assert any(row["row"] == "most-popular" for row in cells(twice, "overall")), "though it was not named"


def test_the_ablation_takes_its_variants_from_hyperparameters(made: tuple[Path, str, str]) -> None:
    rows = [row["row"] for row in cells(made[0], "ablation") if row["table"] == "dpaa-as-printed recall@20"]
    assert rows == ["DPAA", "γ0", "w/o c", "γ0 w/o c", "w/o m", "γ0 w/o m", "w/o IIW", "w/o LW"]
    results = [json.loads(file.read_text()) for file in (made[0] / "results" / "severity").iterdir()]
    names = ("iiw", "estimate", "first_layer_only", "layer_emphasis")
    kinds = {tuple(one["settings"][name] for name in names) for one in results if one["method"] == "dpaa"}
    blend, first, every = "blend", 1.0, 0.0
    assert kinds == {
        (True, blend, first, 1.0), (True, blend, every, 1.0), (True, "pretrained", first, 1.0),
        (True, "pretrained", every, 1.0), (True, "current", first, 1.0), (True, "current", every, 1.0),
        (False, blend, first, 1.0), (True, blend, first, 0.0),
    }  # fmt: skip


def test_dpaa_as_printed_has_the_hyperparameters_that_the_paper_reports(made: tuple[Path, str, str]) -> None:
    names = ("half_trust_shift", "layer_emphasis", "initial_residual", "layer_weight_norm")
    for kind, c, eta in (("overall", 1e-4, 2.0), ("severity", 1e-3, 3.0)):
        results = [json.loads(file.read_text()) for file in (made[0] / "results" / kind).glob("dpaa-as-printed-*")]
        whole = [one["settings"] for one in results if one["settings"]["layer_emphasis"]]
        assert {tuple(one[name] for name in names) for one in whole} == {(c, eta, 0.2, "none")}


def test_again_nothing_is_trained(made: tuple[Path, str, str], files: Path) -> None:
    call = ("reproduce", "groups", "--data", f"coat={files / 'coat'}", *ROWS, *SMOKE, *folders(made[0]), "--json")
    done = dpaa_ok(*call)
    assert "0 trained, 6 results taken from" in done.err
    assert [table["table"] for table in json.loads(done.out)["groups"]] == ["coat-drop", "coat-mask", "coat-keep"]


def test_a_training_that_diverges_stops_no_other(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = {"embedding_size": 4, "layers": 1, "epochs": 2, "learning_rate": 1e30}
    monkeypatch.setitem(BUDGETS, "smoke", BUDGETS["smoke"].model_copy(update={"hyperparameters": fast}))
    call = ("reproduce", "severity", "--data", f"kuairec={files / 'kuairec'}", "--method", "lightgcn", "--severity", 0,
            *SMOKE, *folders(tmp_path))  # fmt: skip
    assert "the loss became" in dpaa_ok(*call).err
    rows = {row["row"]: row["mean"] for row in cells(tmp_path, "severity") if row["table"] == "recall@20"}
    assert rows["lightgcn"] == ""
    assert float(rows["most-popular"]) > 0
    assert "0 trained" in dpaa_ok(*call).err
