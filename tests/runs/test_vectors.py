from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.runs.fit import fit
from dpaa.runs.model import Model
from dpaa.runs.vectors import write_vectors


def test_files_hold_the_vectors(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users, items = model.dial_vectors()
    monkeypatch.setattr("dpaa.runs.model.BLOCK_VECTORS", 7)
    assert write_vectors(model, tmp_path / "made") == (len(users), len(items))
    assert pl.read_parquet(tmp_path / "made" / "users.parquet").equals(users)
    assert pl.read_parquet(tmp_path / "made" / "items.parquet").equals(items)
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_some_users_only_and_files_replaced_only_when_asked_for(model: Model, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    write_vectors(model, folder)
    before = (folder / "users.parquet").read_bytes()
    with pytest.raises(InputError, match="already exists; pass --overwrite"):
        write_vectors(model, folder, ["u0007"])
    assert (folder / "users.parquet").read_bytes() == before
    write_vectors(model, folder, ["u0007", "u0004"], overwrite=True)
    assert pl.read_parquet(folder / "users.parquet")["user_id"].to_list() == ["u0007", "u0004"]
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_a_folder_with_anything_else_is_never_replaced(model: Model, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary")
    with pytest.raises(InputError, match="holds something else than exported vectors"):
        write_vectors(model, tmp_path, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["diary.txt"]


def test_an_empty_folder_will_do(model: Model, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    write_vectors(model, tmp_path / "made", [])
    assert pl.read_parquet(tmp_path / "made" / "users.parquet").height == 0


def test_a_failure_leaves_what_was_there(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "made"
    write_vectors(model, folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}

    def refused(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpaa._io._exchange", refused)
    with pytest.raises(InputError, match="No space left on device"):
        write_vectors(model, folder, ["u0007"], overwrite=True)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_methods_without_vectors_say_so(small_world: Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="most-popular does not rank by an inner product"):
        write_vectors(fit(small_world, "most-popular"), tmp_path / "made")
    assert not list(tmp_path.iterdir())
