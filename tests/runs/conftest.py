from pathlib import Path

import pytest

from dpaa import Dataset, Model
from dpaa.runs.fit import fit, fit_into, make_method

SETTINGS = {"embedding_size": 16, "layers": 2, "epochs": 5, "batch_size": 512, "seed": 3}


@pytest.fixture(scope="session")
def model(small_world: Dataset) -> Model:
    return fit(small_world, "lightgcn", embedding_size=16, layers=2, epochs=5, seed=3)


@pytest.fixture(scope="session")
def run(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, to be read; what changes it works on a copy."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    fit_into(folder, small_world, make_method(small_world, "lightgcn", SETTINGS))
    return folder
