"""Settings chosen on validation by `dpaa tune`, the same effort for every method; kept, so chosen only once."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpaa.data.dataset import read_dataset
from dpaa.errors import InputError
from dpaa.methods import find_method
from dpaa.methods.settings import PAPER_TRAINING
from dpaa.reproduction.budget import Budget, TuningPerSetting
from dpaa.reproduction.results import ResultStore, TunedSettings
from dpaa.reproduction.shared import opened
from dpaa.reproduction.trainings import Runner, beneath, known_settings
from dpaa.tuning.space import search_space
from dpaa.tuning.trial import TRAINED


def can_be_tuned(method: str) -> bool:
    """Whether it has settings to choose; `dpaa-auto` chooses its own, most-popular has none."""
    return bool(find_method(method).grid)


def key_of_choice(fingerprint: str, method: str, fixed: dict[str, Any], tuning: dict[str, Any]) -> str:
    """Names a choice: of which data, method and version, with which settings fixed and what effort."""
    text = json.dumps(
        [fingerprint, method, find_method(method).version, fixed, tuning, *beneath(method)], sort_keys=True
    )
    return f"{method}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def tuned_settings(
    data: str, folder: Path, method: str, budget: Budget, fixed: dict[str, Any], runner: Runner
) -> TunedSettings:
    """The best settings on a dataset: kept ones, else those of a study; the rows of the tables are trained later."""
    tuning = budget.tuning
    assert tuning is not None
    dataset = read_dataset(folder)
    kind = find_method(method)
    fixed = known_settings(fixed, method)
    key = key_of_choice(dataset.fingerprint, kind.name, fixed, tuning.effort())
    store = ResultStore(runner.results, "tuned", TunedSettings)
    if runner.storage is not None:
        with opened(runner.storage) as shared:
            shared.agree(store, [key], lambda key: store.read(key) is not None)
    if kept := store.read(key):
        if kept.method != kind.name or key_of_choice(kept.fingerprint, kept.method, kept.fixed, kept.tuning) != key:
            raise InputError(f"{store.place(key)} was chosen for another dataset, method or budget; {kept.remedy}")
        return kept
    from dpaa.tuning.tune import tune  # Optuna is an extra

    runner.say(f"{data} {method}: settings are chosen on validation")
    began = time.monotonic()
    rates = known_settings({"learning_rate": tuning.learning_rates}, method) if tuning.learning_rates else {}
    trials = tuning.trials
    if isinstance(tuning, TuningPerSetting):
        trials = tuning.trials_of(len(search_space(kind, tuning.space, fixed, rates)))
    found = tune(
        runner.work / "tuned" / key,
        dataset,
        kind.name,
        space=tuning.space,
        trials=trials,
        values=rates or None,
        settings=fixed,
        defaults=known_settings(PAPER_TRAINING, method),
        seeds=0,
        jobs=runner.jobs,
        prune_after=tuning.prune_after,
        storage=runner.storage,
        say=runner.say,
    )
    assert found.best.value is not None
    trained, seconds = sum(one.state in TRAINED for one in found.trials), time.monotonic() - began
    runner.trained += trained - found.kept
    runner.seconds += seconds
    result = TunedSettings(
        data=data,
        method=kind.name,
        fingerprint=dataset.fingerprint,
        settings=found.best.settings,
        valid=found.best.value,
        trials=trained,
        seconds=round(seconds, 1),
        fixed=fixed,
        tuning=tuning.effort(),
        tried=[asdict(trial) for trial in found.trials],
        protocol=budget.protocol,
    )
    store.write(key, result)
    if runner.storage is not None:
        with opened(runner.storage) as shared:
            shared.add(store, key)
    return result
