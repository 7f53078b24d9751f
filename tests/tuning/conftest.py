import json
from typing import Any

import pytest

from dpaa import Dataset, Model
from dpaa.data.sources.world import simulate
from dpaa.tuning import _study as study
from dpaa.tuning.tune import TuneResult

TINY = {"epochs": 3, "embedding_size": 8}
"""A training that takes a moment."""
FEW = {"learning_rate": (1e-3, 1e-2), "l2": (1e-4,), "layers": (1, 2)}
"""Four points."""


@pytest.fixture(scope="module")
def world() -> Dataset:
    return simulate(users=80, items=60, seed=1)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hyperparameters of every training of a trial, as they begin."""
    begun: list[str] = []
    fit_method = study.fit_method

    def fit(method: Any, *args: Any, **more: Any) -> Model:
        begun.append(json.dumps(method.get_params(), sort_keys=True))
        return fit_method(method, *args, **more)

    monkeypatch.setattr(study, "fit_method", fit)
    return begun


def settings_of(result: TuneResult) -> list[dict[str, Any]]:
    return [trial.settings for trial in result.trials if trial.state in ("complete", "pruned")]
