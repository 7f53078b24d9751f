"""What a plan trains: rows, draws of the data, and hyperparameters that a study chose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpaa.methods import find_method
from dpaa.reproduction import Plan, Runner, Sources
from dpaa.reproduction._budget import BUDGETS
from dpaa.tuning.space import search_space
from tests.command import dpaa_ok, run_dpaa
from tests.reproduction.conftest import TINY, places


def test_other_severities_take_the_nearest_tuned_one() -> None:
    assert [BUDGETS["standard"].tuned_severity(s) for s in range(10)] == [0, 0, 0, 5, 5, 5, 5, 5, 9, 9]


def test_in_standard_2_methods_with_more_to_choose_get_more_trials() -> None:
    tuning = BUDGETS["standard-2"].tuning
    assert tuning is not None
    spaces = {
        name: search_space(find_method(name), tuning.space, {"learning_rate": 0, "layers": 0}, {})
        for name in ("lightgcn", "dpaa", "ips")
    }
    trials = {name: tuning.trials_for(len(space)) for name, space in spaces.items()}
    assert trials == {"lightgcn": 4, "dpaa": 24, "ips": 8}
    for name in ("layer_emphasis", "initial_residual", "half_trust_shift"):
        assert 0.0 in tuple(spaces["dpaa"][name])  # type: ignore[arg-type]
    assert (tuning.prune_after, tuning.severities) == (0, (5,))


def test_each_row_once_under_the_name_the_paper_knows(tmp_path: Path) -> None:
    given = ("sam_reg", "dpaa", "dpaa", "dpaa_as_printed layer_emphasis=2", "most_popular", "sam-reg")
    plan = Plan(BUDGETS["quick"], Sources(), Runner(tmp_path, tmp_path), given_rows=given)
    assert plan.rows == ("sam-reg", "dpaa", "dpaa-as-printed layer_emphasis=2", "most-popular")


def test_standard_2_has_one_draw_and_one_training_whatever_the_defaults_become(files: Path, tmp_path: Path) -> None:
    def plan(budget: str) -> Plan:
        sources, runner = Sources(kuairec=files / "kuairec"), Runner(tmp_path, tmp_path / "work")
        return Plan(BUDGETS[budget], sources, runner, given_severities=(9.0,))

    first, second = plan("standard"), plan("standard-2")
    row = "lightgcn l2=0"
    folders = [second.severity_spec(row, row, 9.0, seed).folder for seed in (0, 2)]
    assert folders == [first.severity_spec(row, row, 9.0, 0).folder] * 2
    assert first.severity_spec(row, row, 9.0, 2).folder != folders[0]
    settings = BUDGETS["standard-2"].settings
    for method in ("lightgcn", "dpaa", "ips", "macr"):
        spec = second.severity_spec(f"{method} l2=0", method, 9.0, 1)
        assert {name: spec.settings[name] for name in settings} == settings
        assert spec.protocol == "standard-2"


def test_standard_tunes_at_0_5_9_and_others_take_the_nearest(
    files: Path, tmp_path: Path, studies: list[dict[str, Any]]
) -> None:
    rows = ("--method", "lightgcn", "--method", "dpaa", "--method", "ips cap_quantile=1.0")
    call = ("reproduce", "severity", "--budget", "standard", "--kuairec", files / "kuairec", *rows, *TINY,
            "--severity", 1, "--severity", 8, "--seeds", 1, *places(tmp_path))  # fmt: skip
    done = dpaa_ok(*call)
    assert "\n12 trainings in " in done.err  # 8 rows, most-popular's among them, and 4 of 8 trials: half were stored
    assert "In this call: 1 seed; severity 1, 8; embedding_size 4; layers 1; epochs 2." in " ".join(done.out.split())
    assert [(one["data"], one["method"]) for one in studies] == [
        ("kuairec-s0-seed0", "lightgcn"), ("kuairec-s0-seed0", "dpaa"),
        ("kuairec-s9-seed0", "lightgcn"), ("kuairec-s9-seed0", "dpaa"),
    ]  # fmt: skip
    first = studies[0]
    assert (first["space"], first["trials"], first["prune_after"], first["seeds"]) == ("wide", 12, 30, 0)
    assert first["values"] == {"learning_rate": (1e-3, 1e-4)}
    assert first["settings"] == {"embedding_size": "4", "layers": "1", "epochs": "2"}
    results = [json.loads(file.read_text()) for file in (tmp_path / "results" / "severity").iterdir()]
    rates = {(one["method"], one["data"]): one["settings"].get("learning_rate") for one in results}
    assert rates["lightgcn", "s=1"] == rates["dpaa", "s=1"] == 1e-2
    assert rates["lightgcn", "s=8"] == rates["dpaa", "s=8"] == 1e-4
    assert rates["ips", "s=8"] == 1e-3
    # The pre-trained model has the hyperparameters that were not searched, as in the trials.
    plain = (tmp_path / "work").glob("*/pretrained-*/config.json")
    assert {json.loads(file.read_text())["learning_rate"] for file in plain} == {1e-3}
    choices = [json.loads(file.read_text()) for file in (tmp_path / "results" / "tuned").iterdir()]
    assert all(len(one["tried"]) == one["trials"] == 2 for one in choices)
    studies.clear()
    assert "nothing was trained" in dpaa_ok(*call).err
    assert studies == []


def test_a_choice_for_something_else_is_refused(files: Path, tmp_path: Path, studies: list[dict[str, Any]]) -> None:
    call = ("reproduce", "overall", "--budget", "standard", "--coat", files / "coat", "--method", "lightgcn", *TINY,
            "--seeds", 1, *places(tmp_path))  # fmt: skip
    dpaa_ok(*call)
    dpaa_ok(*call, "--set", "layers=2")
    one, other = (tmp_path / "results" / "tuned").glob("lightgcn-*.json")
    one.write_bytes(other.read_bytes())
    done = [run_dpaa(*call), run_dpaa(*call, "--set", "layers=2")]
    assert sorted(one.code for one in done) == [0, 2]
    assert "was chosen for another dataset, method or budget; remove it" in "".join(one.err for one in done)
    assert len(studies) == 2


def test_hyperparameters_beside_the_papers(files: Path, tmp_path: Path, studies: list[dict[str, Any]]) -> None:
    call = ("reproduce", "settings", "--method", "dpaa", *TINY, *places(tmp_path), "--json")
    done = dpaa_ok(*call, "--budget", "paper", "--coat", files / "coat")
    assert (studies[0]["space"], studies[0]["trials"]) == ("paper", None)
    cells = json.loads(done.out)["settings"][0]["cells"]
    shown = {cell["column"]: cell["mean"] for cell in cells if cell["row"] == "dpaa"}
    assert "η 2" in shown["hyperparameters"]
    assert shown["the paper's"] == "C 0.0001, η 2, δ 0.2"
    assert shown["validation recall@20"] == 0.5
    done = dpaa_ok(*call, "--budget", "standard", "--kuairec", files / "kuairec", "--severity", 8, "--severity", 6)
    assert [table["table"] for table in json.loads(done.out)["settings"]] == ["settings s=5", "settings s=9"]
