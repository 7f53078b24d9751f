"""What a run holds, and whether a dataset is the one it was trained on."""

from __future__ import annotations

import dataclasses

import pytest

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.data.sources.world import simulate
from dpaa.errors import InputError


def test_a_run_knows_its_dataset(small_world: Dataset) -> None:
    model = dpaa.fit(small_world, "most-popular")
    assert model.trained_on.fingerprint == small_world.fingerprint
    model.check_trained_on(small_world, "never said")
    with pytest.raises(InputError, match=r"another dataset than demo \(fingerprints differ\); look for the right one"):
        model.check_trained_on(simulate(40, 30, seed=9), "look for the right one")


def test_a_model_without_a_manifest_was_trained_on_nothing_known(small_world: Dataset) -> None:
    bare = dataclasses.replace(dpaa.fit(small_world, "most-popular"), manifest={})
    assert bare.trained_on.path is None
    with pytest.raises(InputError, match="another dataset"):
        bare.check_trained_on(small_world, "")
