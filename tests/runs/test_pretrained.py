from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dpaa import Dataset, InputError, fit, load
from dpaa.data.ids import SPLITS, encode
from dpaa.methods.pretrained import Pretrained
from dpaa.runs import Callbacks, RunFolder, fit_into, make_method
from tests.trainings import interrupted, resplit, same_state

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
    model = fit(small_world, "dpaa", pretrained=other, first_layer_only=0, **SETTINGS)
    vectors = np.concatenate([other.method.user_embedding, other.method.item_embedding])  # type: ignore[attr-defined]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    user, item = small_world.train.user, small_world.train.item + small_world.n_users
    expected = 1 - np.sum(unit[user] * unit[item], axis=1)
    for layer in (0, 1):
        np.testing.assert_allclose(model.method._pretrained_weights[layer], expected, atol=1e-5)  # type: ignore[attr-defined]


def test_layers_are_taken_wherever_the_training_pairs_are_the_same(small_world: Dataset, lightgcn: Path) -> None:
    """Half of the validation pairs are gone, and some ids with them."""
    other = resplit(small_world, "again", valid=small_world.frame("valid").gather_every(2))
    assert other.fingerprint != small_world.fingerprint
    notes: list[str] = []
    callbacks = Callbacks(on_start=lambda _method, given: notes.extend(given))
    model = fit(other, "dpaa", pretrained=lightgcn, callbacks=callbacks, first_layer_only=0, **SETTINGS)
    before = load(lightgcn)
    users, items = encode(other.user_ids, before.user_ids), encode(other.item_ids, before.item_ids)
    for layer, table in enumerate(Pretrained.of(before.method, 1, {}).layers):  # type: ignore[arg-type]
        unit = (table / table.norm(dim=1, keepdim=True)).numpy()
        cosine = np.sum(unit[users[other.train.user]] * unit[len(before.user_ids) + items[other.train.item]], axis=1)
        np.testing.assert_allclose(model.method._pretrained_weights[layer], 1 - cosine, atol=1e-5)  # type: ignore[attr-defined]
    assert model.manifest["pretrained"]["layers"] is True
    assert not notes


def test_where_only_the_read_out_is_known_it_is_said_and_stored(small_world: Dataset, lightgcn: Path) -> None:
    fewer = resplit(small_world, "fewer", train=small_world.frame("train").slice(1))  # one pair less
    notes: list[str] = []
    callbacks = Callbacks(on_start=lambda _method, given: notes.extend(given))
    model = fit(fewer, "dpaa", pretrained=lightgcn, callbacks=callbacks, **SETTINGS)
    assert model.manifest["pretrained"]["layers"] is False
    (note,) = notes
    assert note == "of the pre-trained model only the read-out is known here; it stands for each of its layers"
    notes.clear()
    fit(fewer, "dpaa", pretrained=lightgcn, callbacks=callbacks, interaction_strength_from="readout", **SETTINGS)
    assert not notes


def test_warm_up_is_noted_where_it_moves_beta(small_world: Dataset, lightgcn: Path) -> None:
    notes: list[str] = []
    callbacks = Callbacks(on_start=lambda _method, given: notes.extend(given))
    for chosen in ({}, {"warmup_steps": 50, "estimate": "pretrained"}, {"warmup_steps": 50}):
        fit(small_world, "dpaa", pretrained=lightgcn, callbacks=callbacks, **SETTINGS | chosen)
    assert notes == ["warm-up keeps the first shifts, and with them β, small; train with warmup_steps=0"]


@pytest.mark.parametrize("source", ["layer", "readout"])
def test_resumed_in_any_epoch_bit_for_bit(small_world: Dataset, tmp_path: Path, lightgcn: Path, source: str) -> None:
    """Before Δ is known, when it is first known, and later."""
    chosen: dict[str, Any] = {"epochs": 5, "half_trust_shift": 0.05, "interaction_strength_from": source}
    straight = fit_into(
        tmp_path / "0", small_world, make_method(small_world, "dpaa", SETTINGS | chosen), pretrained=lightgcn
    )
    shares = [line["pretrained_share"] for line in RunFolder(tmp_path / "0").history()]
    assert shares[:2] == [1.0, 1.0]
    assert all(0 < share < 1 for share in shares[2:])
    for epoch in (1, 2, 3, 4):
        folder, method = tmp_path / str(epoch), make_method(small_world, "dpaa", SETTINGS | chosen)
        # Asked after each of two steps, and after the epoch.
        interrupted(3 * epoch - 2, folder, small_world, method, pretrained=lightgcn)
        assert RunFolder(folder).checkpoints.load().epoch == epoch
        assert same_state(fit_into(folder, small_world, method, resume=True, pretrained=lightgcn), straight)
        assert [line["pretrained_share"] for line in RunFolder(folder).history()] == shares


def test_a_model_without_vectors_of_some_ids_is_refused(small_world: Dataset) -> None:
    part = resplit(small_world, "part", **{split: small_world.frame(split).head(50) for split in SPLITS})
    fewer = fit(part, "lightgcn", **SETTINGS)
    with pytest.raises(InputError, match=r"the model has no vector for \d+ of \d+ ids of demo \(such as 'u\d+'\)"):
        fit(small_world, "dpaa", pretrained=fewer, **SETTINGS)


def test_no_resuming_with_another_pretrained_model(small_world: Dataset, tmp_path: Path, lightgcn: Path) -> None:
    interrupted(4, tmp_path / "run", small_world, make_method(small_world, "dpaa", SETTINGS), pretrained=lightgcn)
    other = fit(small_world, "lightgcn", **SETTINGS | {"seed": 9})
    again = make_method(small_world, "dpaa", SETTINGS)
    with pytest.raises(InputError, match="made with another pre-trained model"):
        fit_into(tmp_path / "run", small_world, again, resume=True, pretrained=other)
    fit_into(tmp_path / "run", small_world, again, resume=True, pretrained=lightgcn)
