"""The committed results were made by earlier versions: today's plans must find them by the same names."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dpaa.data.dataset import ABOUT_FILE
from dpaa.methods._options import known
from dpaa.methods.graph_method import EARLIER_DEFAULTS, PAPER_TRAINING
from dpaa.methods.lightgcn import LightGCN
from dpaa.reproduction import BUDGETS, Plan, _plan
from dpaa.reproduction import _paper as paper
from dpaa.reproduction._paper import FIRST, ROWS
from dpaa.reproduction._results import ResultStore, RunResult, Stored, Study
from dpaa.reproduction._trainings import RunSpec, key_of, relevant_hyperparameters

COMMITTED = Path(__file__).parents[2] / "results"
REMOVED = ("dpaa-auto", "dpaa-reading")
"""Methods that are no more; their results stay readable."""
EARLIER_VERSION = {"dpaa": 1, "dpaa-normalised": 1}
"""Methods whose committed results were made by an earlier version: they stay, and are not shown as today's."""


def committed(kind: str) -> dict[str, Any]:
    model: type[Stored] = Study if kind == "tuned" else RunResult
    store = ResultStore(COMMITTED, kind, model)
    results = {key: store.read(key) for key in pl.read_parquet(COMMITTED / f"{kind}.parquet")["key"]}
    assert len(results) >= {"overall": 233, "severity": 1143, "tuned": 56}[kind]
    return {key: result for key, result in results.items() if result and result.method not in REMOVED}


def keys_of(result: RunResult, folder: Path) -> set[str]:
    """Those that a plan gives to a training with these hyperparameters: alone, or with the plan's pre-trained model."""
    fingerprint = result.details["fingerprint"]
    if version := EARLIER_VERSION.get(result.method):
        common = PAPER_TRAINING | {name: result.settings[name] for name in ("embedding_size", "seed")}
        plain = [relevant_hyperparameters(LightGCN(**common, layers=layers)) for layers in (2, 3, 4)]
        parts = [(fingerprint, result.settings), *((fingerprint, result.settings, one) for one in plain)]
        return {key_of(result.method, *one, version=version) for one in parts}
    (folder / ABOUT_FILE).write_text(json.dumps({"fingerprint": fingerprint}))
    pinned: dict[str, Any] = known(PAPER_TRAINING, result.method) | result.settings
    return {RunSpec(result.data, folder, result.label, result.method, pinned).key}


@pytest.mark.parametrize("kind", ["overall", "severity"])
def test_every_result_has_the_key_of_its_hyperparameters(kind: str, tmp_path: Path) -> None:
    for key, result in committed(kind).items():
        if result.protocol != FIRST:  # these store all that names them
            plain = result.details.get("pretrained")
            parts = (result.details["fingerprint"], result.settings, *([plain] if plain else []))
            assert key == key_of(result.method, *parts, version=EARLIER_VERSION.get(result.method))
            continue
        assert not EARLIER_DEFAULTS.keys() & result.settings.keys()
        assert key in keys_of(result, tmp_path), result.settings


def test_every_choice_has_the_key_of_todays_budget() -> None:
    for key, choice in committed("tuned").items():
        tuning = BUDGETS["standard" if choice.protocol == FIRST else choice.protocol].tuning
        parts = (choice.fingerprint, choice.fixed, tuning.effort())
        assert key_of(choice.method, *parts, version=EARLIER_VERSION.get(choice.method)) == key


def test_results_of_the_earlier_preset_have_its_name() -> None:
    """λ was normalised to sum 1 in all that `dpaa-as-printed` stored before it became the printed equations."""
    for kind, n in (("overall", 36), ("severity", 194)):
        normalised = [one for one in committed(kind).values() if one.method == "dpaa-normalised"]
        assert len(normalised) == n
        assert {one.settings["layer_weight_norm"] for one in normalised} == {"sum"}
        assert {one.settings["neighbour_scaling"] for one in normalised} == {"none"}
        assert all(one.label.startswith("dpaa-normalised") for one in normalised)
    for kind in ("overall", "severity", "tuned"):
        assert not [one for one in committed(kind).values() if one.method == "dpaa-as-printed"]


def test_the_table_of_coat_needs_no_training(real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_training(_work: object, calls: list[Any], _jobs: int) -> list[Any]:
        assert not calls, [call[0].label for call in calls]
        return []

    monkeypatch.setattr(_plan, "in_pool", no_training)
    rows = tuple(row for row in ROWS if row not in paper.PRESETS)  # these have results of an earlier version alone
    plan = Plan(BUDGETS["standard"], {"coat": real_data / "coat-paper-split"}, COMMITTED, tmp_path, given_rows=rows)
    results = plan.real_results
    assert len(results) > 90
    plain = [one.metrics["drop"]["recall@20"] or 0.0 for one in results if one.label == "lightgcn"]
    assert f"{sum(plain) / len(plain):.4f}" == "0.1517"  # docs/findings.md
