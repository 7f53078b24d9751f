from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.runs.fit import Callbacks, fit, fit_into, make_method
from dpaa.training.trainer import Interrupted

SETTINGS: dict[str, Any] = {"embedding_size": 8, "layers": 2, "epochs": 2, "batch_size": 1024}


def weights_of(model: Any) -> torch.Tensor:
    return model.method._pretrained_weights[0]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def lightgcn(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained") / "lightgcn"
    fit_into(folder, small_world, make_method(small_world, "lightgcn", SETTINGS))
    return folder


def test_lightgcn_is_trained_first_kept_and_reused(small_world: Dataset, tmp_path: Path) -> None:
    started: list[str] = []
    callbacks = Callbacks(on_start=lambda method, _notes: started.append(method.name))
    for name in ("one", "two"):
        fit_into(tmp_path / name, small_world, make_method(small_world, "dpaa", SETTINGS), callbacks=callbacks)
    assert started == ["lightgcn", "dpaa", "dpaa"]
    assert (tmp_path / "one/model.safetensors").read_bytes() == (tmp_path / "two/model.safetensors").read_bytes()
    other = make_method(small_world, "dpaa", SETTINGS | {"seed": 1})
    fit_into(tmp_path / "three", small_world, other, callbacks=callbacks)
    assert started[3:] == ["lightgcn", "dpaa"]
    kept = sorted(file.name for file in tmp_path.iterdir() if file.name.startswith("pretrained-lightgcn-"))
    assert len(kept) == 2
    assert not [file for file in tmp_path.iterdir() if file.name.endswith((".lock", ".turn"))]


def test_a_run_given_is_the_same_as_the_one_trained_first(small_world: Dataset, lightgcn: Path) -> None:
    given = fit(small_world, "dpaa", pretrained=lightgcn, **SETTINGS)
    trained = fit(small_world, "dpaa", **SETTINGS)
    assert torch.equal(weights_of(given), weights_of(trained))
    assert given.manifest["pretrained"]["run"] == str(lightgcn.resolve())


def test_a_model_of_another_method_or_dataset_gives_its_read_out(small_world: Dataset) -> None:
    other = fit(small_world, "macr", **SETTINGS)
    model = fit(small_world, "dpaa", pretrained=other, weighted_layers="all", **SETTINGS)
    vectors = np.concatenate([other.method.user_embedding, other.method.item_embedding])  # type: ignore[attr-defined]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    user, item = small_world.train.user, small_world.train.item + small_world.n_users
    expected = 1 - np.sum(unit[user] * unit[item], axis=1)
    for layer in (0, 1):
        np.testing.assert_allclose(model.method._pretrained_weights[layer], expected, atol=1e-5)  # type: ignore[attr-defined]


def test_a_model_without_vectors_of_some_ids_is_refused(small_world: Dataset) -> None:
    part = {split: small_world.frame(split).head(50) for split in ("train", "valid", "test")}
    fewer = fit(Dataset.of(part, name="part", about={}), "lightgcn", **SETTINGS)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"the model has no vector for \d+ of \d+ ids of demo \(such as 'u\d+'\)"):
        fit(small_world, "dpaa", pretrained=fewer, **SETTINGS)


def test_a_run_is_not_resumed_with_another_pretrained_model(
    small_world: Dataset, tmp_path: Path, lightgcn: Path
) -> None:
    asked = iter(range(100))
    callbacks = Callbacks(stop_requested=lambda: next(asked) == 3)
    method = make_method(small_world, "dpaa", SETTINGS)
    with pytest.raises(Interrupted):
        fit_into(tmp_path / "run", small_world, method, callbacks=callbacks, pretrained=lightgcn)
    other = fit(small_world, "lightgcn", **SETTINGS | {"seed": 9})
    again = make_method(small_world, "dpaa", SETTINGS)
    with pytest.raises(InputError, match="made with another pre-trained model"):
        fit_into(tmp_path / "run", small_world, again, resume=True, pretrained=other)
    fit_into(tmp_path / "run", small_world, again, resume=True, pretrained=lightgcn)
