"""What a plan trains: rows, draws of the data, and hyperparameters that a study chose."""

import json
from pathlib import Path
from typing import Any

from dpaa.reproduction import BUDGETS, Plan
from tests.command import dpaa_ok
from tests.reproduction.conftest import folders


def plan(budget: str, folder: Path, **given: Any) -> Plan:
    return Plan(BUDGETS[budget], {}, folder, folder / "work", **given)


def test_standard_2_has_one_draw_and_one_training_whatever_the_defaults_become(
    files: Path, tmp_path: Path, studies: list[dict[str, Any]]
) -> None:
    for name in ("standard", "standard-2"):
        each = plan(name, tmp_path, given_severities=(9.0,))
        each.folders["kuairec"] = files / "kuairec"
        specs = [each.severity_spec("lightgcn", "lightgcn", 9.0, seed) for seed in (0, 2)]
        assert (specs[0].folder == specs[1].folder) is (name == "standard-2")
    hyperparameters = BUDGETS["standard-2"].hyperparameters
    for method in ("lightgcn", "dpaa", "ips"):
        spec = each.severity_spec(method, method, 9.0, 1)
        fixed = {name: value for name, value in hyperparameters.items() if name != "learning_rate"}
        assert {name: spec.hyperparameters[name] for name in fixed} == fixed
        assert spec.protocol == "standard-2"
    trials = {one["method"]: one["trials"] for one in studies if one["space"] == "lists"}
    assert trials == {"lightgcn": 4, "dpaa": 24, "ips": 8}, "four per searched hyperparameter"
    assert {one["prune_after"] for one in studies if one["space"] == "lists"} == {0}


def test_dpaa_as_printed_is_not_tuned(files: Path, tmp_path: Path, studies: list[dict[str, Any]]) -> None:
    each = plan("standard", tmp_path)
    each.folders["kuairec"] = files / "kuairec"
    spec = each.severity_spec("dpaa-as-printed", "dpaa-as-printed", 4.0, 0)
    reported = {"half_trust_shift": 1e-3, "layer_emphasis": 3.0, "initial_residual": 0.2}  # on KuaiRec
    assert spec.hyperparameters.items() >= reported.items()
    assert studies == []


def test_standard_tunes_at_0_5_9_others_near_them(files: Path, tmp_path: Path, studies: list[dict[str, Any]]) -> None:
    rows = ("--method", "lightgcn", "--method", "dpaa")
    call = ("reproduce", "severity", "--budget", "standard", "--data", f"kuairec={files / 'kuairec'}", *rows,
            "--severity", 1, "--severity", 8, "--seeds", 1, *folders(tmp_path))  # fmt: skip
    dpaa_ok(*call)
    assert {(one["data"], one["method"]) for one in studies} == {
        ("kuairec-s0-seed0", "lightgcn"), ("kuairec-s0-seed0", "dpaa"),
        ("kuairec-s9-seed0", "lightgcn"), ("kuairec-s9-seed0", "dpaa"),
    }  # fmt: skip
    first = studies[0]
    assert (first["space"], first["trials"], first["prune_after"], first["seeds"]) == ("wide", 12, 30, 0)
    assert first["values"] == {"learning_rate": (1e-3, 1e-4)}
    assert first["settings"] == BUDGETS["smoke"].hyperparameters
    results = [json.loads(file.read_text()) for file in (tmp_path / "results" / "severity").iterdir()]
    rates = {(one["method"], one["data"]): one["settings"].get("learning_rate") for one in results}
    assert rates["lightgcn", "s=1"] == rates["dpaa", "s=1"] == 1e-2
    assert rates["lightgcn", "s=8"] == rates["dpaa", "s=8"] == 1e-4
    # The pre-trained model has the hyperparameters that were not searched, as in the trials.
    plain = (tmp_path / ".dpaa-work").glob("*/pretrained-*/config.json")
    assert {json.loads(file.read_text())["learning_rate"] for file in plain} == {1e-3}
    choices = [json.loads(file.read_text()) for file in (tmp_path / "results" / "tuned").iterdir()]
    assert all(len(one["tried"]) == one["trials"] == 2 for one in choices)
    studies.clear()
    assert "0 trained" in dpaa_ok(*call).err
    assert studies == []
