"""What is relied on of a run's JSON, and what may hold anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.runs.manifest import WRONG, Manifest, Measured, TrainedOn


def test_what_nobody_relies_on_may_hold_anything() -> None:
    found = Manifest.model_validate({"dataset": {"fingerprint": "a", "odd": [1]}, "training": "lost", "seed": None})
    assert (found.dataset.fingerprint, found.dataset.path, found.files) == ("a", None, {})
    assert Measured.model_validate({"metrics": {"odd": "x"}, "protocol": {}, "dial": 3}).model is None


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ({}, "dataset"),
        ({"dataset": []}, "dataset"),
        ({"dataset": {"path": 7}}, "dataset"),
        ({"dataset": {"fingerprint": 7}}, "dataset"),
        ({"dataset": {}, "files": "all"}, "files"),
        ({"dataset": {}, "files": {"config.json": 1}}, "files"),
    ],
)
def test_what_is_relied_on_is_checked(content: dict[str, object], wrong: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Manifest.model_validate(content)
    assert refused.value.errors()[0]["loc"][0] == wrong
    assert wrong in WRONG


def test_a_dataset_is_read_where_it_lay(small_world: Dataset, tmp_path: Path) -> None:
    small_world.write(tmp_path / "data")
    assert TrainedOn(path=str(tmp_path / "data")).read(tmp_path).fingerprint == small_world.fingerprint
    with pytest.raises(InputError, match="does not say where its dataset is; name it with --dataset"):
        TrainedOn().read(tmp_path)
    with pytest.raises(InputError, match="is no longer at /gone/data; name it with --dataset"):
        TrainedOn(path="/gone/data").read(tmp_path)
