"""The committed results were made before there was a warm-up: today's plans must find them by the same names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpaa.data.dataset import ABOUT_FILE
from dpaa.methods import find_method
from dpaa.methods.settings import NOT_YET_SETTINGS, PAPER_TRAINING
from dpaa.reproduction import trainings, tuned
from dpaa.reproduction.budget import FIRST, SECOND, STANDARD, STANDARD_2
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.results import ResultStore, RunResult, TunedSettings
from dpaa.reproduction.sources import Sources
from dpaa.reproduction.trainings import Runner, RunSpec, key_of, known_settings, spec_key

COMMITTED = Path(__file__).parents[2] / "results"


def keys_of(result: RunResult, folder: Path) -> set[str]:
    """Those that a plan gives to a training with these settings: alone, or with the plan's pre-trained model."""
    (folder / ABOUT_FILE).write_text(json.dumps({"fingerprint": result.details["fingerprint"]}))
    pinned: dict[str, Any] = known_settings(PAPER_TRAINING, result.method) | result.settings
    common = PAPER_TRAINING | {name: pinned[name] for name in ("embedding_size", "seed") if name in pinned}
    plain = [None, *(common | {"layers": layers} for layers in (2, 3, 4))]
    specs = [RunSpec(result.data, folder, result.label, result.method, pinned, one) for one in plain]
    return {spec_key(spec) for spec in (specs if result.method.startswith("dpaa") else specs[:1])}


@pytest.mark.parametrize("kind", ["overall", "severity", "readings"])
def test_every_committed_result_has_the_key_of_its_settings(kind: str, tmp_path: Path) -> None:
    store = ResultStore(COMMITTED, kind, RunResult)
    assert len(store.keys) > (200 if kind != "readings" else 30)
    for key in store.keys:
        result = store.read(key)
        assert result is not None
        if result.protocol != FIRST:  # these say all that names them
            plain = result.details.get("pretrained")
            assert key == key_of(result.details["fingerprint"], result.method, result.settings, plain)
            continue
        assert not NOT_YET_SETTINGS.keys() & result.settings.keys()
        assert key in keys_of(result, tmp_path), result.settings


def test_a_training_of_today_has_another_key(tmp_path: Path) -> None:
    (tmp_path / ABOUT_FILE).write_text(json.dumps({"fingerprint": "f"}))
    paper, ours, smoothed = (
        spec_key(RunSpec("coat", tmp_path, "lightgcn", "lightgcn", settings))
        for settings in (PAPER_TRAINING, {}, PAPER_TRAINING | {"validation_smoothing": 0.5})
    )
    assert len({paper, ours, smoothed}) == 3


def test_committed_choices_have_the_key_of_todays_budget() -> None:
    store = ResultStore(COMMITTED, "tuned", TunedSettings)
    for key in store.keys:
        found = store.read(key)
        assert found is not None
        tuning = {FIRST: STANDARD, SECOND: STANDARD_2}[found.protocol].tuning
        assert tuning is not None
        assert tuned.key_of_choice(found.fingerprint, found.method, found.fixed, tuning.effort()) == key


def test_the_table_of_coat_is_drawn_without_a_training(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_training(_work: object, calls: list[Any], _jobs: int) -> list[Any]:
        assert not calls, [call[1].label for call in calls]
        return []

    monkeypatch.setattr(trainings, "in_pool", no_training)
    runner = Runner(COMMITTED, tmp_path)
    found = Plan(STANDARD, Sources(coat=real_data / "coat-paper-split"), runner).real_results
    assert len(found) > 100
    plain = [one.metrics["drop"]["recall@20"] for one in found if one.label == "lightgcn"]
    assert f"{sum(plain) / len(plain):.4f}" == "0.1517"  # docs/findings.md


def test_another_version_of_lightgcn_is_another_key_of_what_builds_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ABOUT_FILE).write_text(json.dumps({"fingerprint": "f"}))

    def keys() -> list[str]:
        specs = [RunSpec("coat", tmp_path, name, name, {}) for name in ("dpaa", "dpaa-auto", "ips", "lightgcn")]
        return [*map(spec_key, specs), tuned.key_of_choice("f", "dpaa", {}, {})]

    before = keys()
    monkeypatch.setattr(find_method("lightgcn"), "version", 2)
    same = [one == other for one, other in zip(before, keys(), strict=True)]
    assert same == [False, False, True, False, False]
