from __future__ import annotations

import pytest

from dpaa.data.dataset import Dataset
from dpaa.runs.fit import fit
from dpaa.runs.model import Model


@pytest.fixture(scope="session")
def model(small_world: Dataset) -> Model:
    return fit(small_world, "lightgcn", embedding_size=16, layers=2, epochs=5, seed=3)
