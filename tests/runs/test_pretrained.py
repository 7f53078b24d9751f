from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import save_file

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.methods.dpaa import DPAA
from dpaa.runs.fit import Callbacks, fit, fit_into, make_method
from dpaa.runs.pretrained import read_pretrained
from dpaa.training.trainer import Interrupted

SETTINGS: dict[str, Any] = {"embedding_size": 8, "layers": 2, "epochs": 2, "batch_size": 1024}


def weights_of(model: Any) -> torch.Tensor:
    return model.method._pretrained_weights[0]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def lightgcn(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained") / "lightgcn"
    fit_into(folder, small_world, make_method(small_world, "lightgcn", SETTINGS))
    return folder


def tables(data: Dataset, folder: Path, ending: str, seed: int = 0) -> tuple[str, np.ndarray]:
    """Random vectors for everybody, rows shuffled, as `USERS,ITEMS`; and the vectors in the order of the dataset."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(data.n_users + data.n_items, 5)).astype(np.float32)
    files = []
    for name, ids, part in (
        ("users", data.user_ids, vectors[: data.n_users]),
        ("items", data.item_ids, vectors[data.n_users :]),
    ):
        order = rng.permutation(len(ids))
        frame = pl.DataFrame({"id": ids.gather(order)} | {f"v{n}": part[order, n] for n in range(5)})
        file = folder / f"{name}.{ending}"
        frame.write_parquet(file) if ending == "parquet" else frame.write_csv(file)
        files.append(str(file))
    return ",".join(files), vectors


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


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_anybodys_embeddings_in_any_order(small_world: Dataset, tmp_path: Path, ending: str) -> None:
    place, vectors = tables(small_world, tmp_path, ending)
    model = fit(small_world, "dpaa", pretrained=place, weighted_layers="all", **SETTINGS)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    user, item = small_world.train.user, small_world.train.item + small_world.n_users
    expected = 1 - np.sum(unit[user] * unit[item], axis=1)
    assert isinstance(model.method, DPAA)
    for layer in (0, 1):
        np.testing.assert_allclose(model.method._pretrained_weights[layer], expected, atol=1e-5)


def test_safetensors_rows_are_the_ids_ascending(small_world: Dataset, tmp_path: Path) -> None:
    place, vectors = tables(small_world, tmp_path, "parquet")
    n = small_world.n_users
    users, items = torch.from_numpy(vectors[:n].copy()), torch.from_numpy(vectors[n:].copy())
    save_file({"user_embedding": users, "item_embedding": items}, tmp_path / "v.safetensors")
    one = fit(small_world, "dpaa", pretrained=tmp_path / "v.safetensors", **SETTINGS)
    two = fit(small_world, "dpaa", pretrained=place, **SETTINGS)
    torch.testing.assert_close(weights_of(one), weights_of(two))


def wrong(data: Dataset, folder: Path, kind: str) -> str:
    place, vectors = tables(data, folder, "parquet")
    users = place.split(",")[0]
    frame = pl.read_parquet(users)
    changes: dict[str, Any] = {
        "missing ids": lambda: frame.head(10).write_parquet(users),
        "no id column": lambda: frame.rename({"id": "user"}).write_parquet(users),
        "text": lambda: frame.with_columns(v1=pl.lit("x")).write_parquet(users),
        "not a number": lambda: frame.with_columns(v1=pl.lit(float("nan"))).write_parquet(users),
        "widths": lambda: frame.drop("v4").write_parquet(users),
        "no table": lambda: Path(users).write_text("x"),
        "no file": lambda: Path(users).unlink(),
    }
    if kind in changes:
        changes[kind]()
        return place
    tensors = {"user_embedding": torch.zeros(3, 2), "item_embedding": torch.zeros(3, 2)}
    if kind == "rows":
        save_file(tensors, folder / "v.safetensors")
    elif kind == "no tensor":
        save_file({"a": torch.zeros(1)}, folder / "v.safetensors")
    elif kind == "nan tensor":
        whole = torch.from_numpy(vectors)
        whole[0, 0] = torch.nan
        parts = {"user_embedding": whole[: data.n_users].clone(), "item_embedding": whole[data.n_users :].clone()}
        save_file(parts, folder / "v.safetensors")
    else:
        (folder / "v.safetensors").write_text("x")
    return str(folder / "v.safetensors")


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("missing ids", r"has no vector for \d+ of the \d+ user ids of the dataset \('u\d+', 'u\d+', 'u\d+', …\); add"),
        ("no id column", r"must have the columns id, v0, v1 …, but has user, v0"),
        ("text", r"column 'v1' of .* is not all numbers"),
        ("not a number", r"column 'v1' of .* is not all numbers"),
        ("widths", r"has 4 columns v0 …, .* has 5; give one width"),
        ("no table", "is not a readable table"),
        ("no file", "there is no file"),
        ("rows", r"'user_embedding' has shape \(3, 2\), the dataset needs \d+ rows"),
        ("no tensor", "lacks the tensor 'user_embedding'"),
        ("nan tensor", "'user_embedding' holds values that are not numbers"),
        ("damaged", "is not a readable safetensors file"),
    ],
)
def test_what_cannot_be_taken(small_world: Dataset, tmp_path: Path, kind: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_pretrained(wrong(small_world, tmp_path, kind), small_world, 2)


def test_what_makes_no_sense(small_world: Dataset, tmp_path: Path, lightgcn: Path) -> None:
    with pytest.raises(InputError, match="lightgcn with these hyperparameters uses no pre-trained model"):
        fit(small_world, "lightgcn", pretrained=lightgcn, **SETTINGS)
    fit_into(tmp_path / "popular", small_world, make_method(small_world, "most-popular", {}))
    with pytest.raises(InputError, match="is a run of most-popular, which has no embeddings"):
        fit(small_world, "dpaa", pretrained=tmp_path / "popular", **SETTINGS)
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(InputError, match="is neither a run folder nor a pair of files"):
        fit(small_world, "dpaa", pretrained=tmp_path / "x.txt", **SETTINGS)


def test_a_run_is_not_resumed_with_another_pretrained_model(
    small_world: Dataset, tmp_path: Path, lightgcn: Path
) -> None:
    asked = iter(range(100))
    callbacks = Callbacks(stop_requested=lambda: next(asked) == 3)
    method = make_method(small_world, "dpaa", SETTINGS)
    with pytest.raises(Interrupted):
        fit_into(tmp_path / "run", small_world, method, callbacks=callbacks, pretrained=lightgcn)
    place, _ = tables(small_world, tmp_path, "parquet")
    again = make_method(small_world, "dpaa", SETTINGS)
    with pytest.raises(InputError, match="made with another pre-trained model"):
        fit_into(tmp_path / "run", small_world, again, resume=True, pretrained=place)
    fit_into(tmp_path / "run", small_world, again, resume=True, pretrained=lightgcn)
