"""The committed results were made by earlier versions: today's plans must find them by the same names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dpaa.data.dataset import ABOUT_FILE
from dpaa.methods.graph_method import EARLIER_DEFAULTS, PAPER_TRAINING
from dpaa.reproduction import BUDGETS, Plan, _plan
from dpaa.reproduction._budget import FIRST
from dpaa.reproduction._results import ResultStore, RunResult, Stored, Study
from dpaa.reproduction._trainings import RunSpec, key_of, known

COMMITTED = Path(__file__).parents[2] / "results"
REMOVED = ("dpaa-auto", "dpaa-reading")
"""Methods that are no more; their results stay readable."""


def committed(kind: str) -> dict[str, Any]:
    model: type[Stored] = Study if kind == "tuned" else RunResult
    store = ResultStore(COMMITTED, kind, model)
    results = {key: store.read(key) for key in pl.read_parquet(COMMITTED / f"{kind}.parquet")["key"]}
    assert len(results) >= {"overall": 233, "severity": 1143, "tuned": 56}[kind]
    return {key: result for key, result in results.items() if result and result.method not in REMOVED}


def keys_of(result: RunResult, folder: Path) -> set[str]:
    """Those that a plan gives to a training with these hyperparameters: alone, or with the plan's pre-trained model."""
    (folder / ABOUT_FILE).write_text(json.dumps({"fingerprint": result.details["fingerprint"]}))
    pinned: dict[str, Any] = known(PAPER_TRAINING, result.method) | result.settings
    common = PAPER_TRAINING | {name: pinned[name] for name in ("embedding_size", "seed") if name in pinned}
    plain = [None, *(common | {"layers": layers} for layers in (2, 3, 4))]
    specs = [RunSpec(result.data, folder, result.label, result.method, pinned, one) for one in plain]
    return {spec.key for spec in (specs if result.method.startswith("dpaa") else specs[:1])}


@pytest.mark.parametrize("kind", ["overall", "severity"])
def test_every_result_has_the_key_of_its_hyperparameters(kind: str, tmp_path: Path) -> None:
    for key, result in committed(kind).items():
        if result.protocol != FIRST:  # these store all that names them
            plain = result.details.get("pretrained")
            parts = (result.details["fingerprint"], result.settings, *([plain] if plain else []))
            assert key == key_of(result.method, *parts)
            continue
        assert not EARLIER_DEFAULTS.keys() & result.settings.keys()
        assert key in keys_of(result, tmp_path), result.settings


def test_every_choice_has_the_key_of_todays_budget() -> None:
    for key, choice in committed("tuned").items():
        assert isinstance(choice, Study)
        tuning = BUDGETS["standard" if choice.protocol == FIRST else choice.protocol].tuning
        assert tuning is not None
        assert key_of(choice.method, choice.fingerprint, choice.fixed, tuning.effort()) == key


def test_the_table_of_coat_needs_no_training(real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_training(_work: object, calls: list[Any], _jobs: int) -> list[Any]:
        assert not calls, [call[0].label for call in calls]
        return []

    monkeypatch.setattr(_plan, "in_pool", no_training)
    results = Plan(BUDGETS["standard"], {"coat": real_data / "coat-paper-split"}, COMMITTED, tmp_path).real_results
    assert len(results) > 100
    plain = [one.metrics["drop"]["recall@20"] or 0.0 for one in results if one.label == "lightgcn"]
    assert f"{sum(plain) / len(plain):.4f}" == "0.1517"  # docs/findings.md
