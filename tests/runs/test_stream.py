from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.runs.fit import fit
from dpaa.runs.model import Model
from dpaa.runs.stream import (
    FORMATS,
    check_target,
    choose_format,
    write_recommendations,
    write_stream,
    write_vectors,
)


def test_what_fails_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    def blocks() -> Iterator[pl.DataFrame]:
        yield pl.DataFrame({"a": [1]})
        raise InputError("this went wrong")

    with pytest.raises(InputError, match="this went wrong"):
        write_stream(blocks(), {"a": pl.Int64}, tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_targets_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("x")
    (tmp_path / "folder.csv").mkdir()
    for name, sentence in (
        ("recs.xlsx", "has the ending '.xlsx'; a table is written to .parquet or .csv"),
        ("there.csv", "already exists; pass --overwrite"),
        ("folder.csv", "is a folder"),
        ("no/where/recs.csv", "there is no folder"),
    ):
        with pytest.raises(InputError, match=sentence):
            check_target(tmp_path / name, overwrite=False)
    check_target(tmp_path / "there.csv", overwrite=True)


LISTS = {
    "user_id": ["a", "a", "a", "b", "b"],
    "item_id": ["x", "y", "z", "z", "x"],
    "score": [0.9, 0.9, 0.95, -1.0, -2.0],
    "rank": [1, 2, 3, 1, 2],
}
SCHEMA = {"user_id": pl.String, "item_id": pl.String, "score": pl.Float32, "rank": pl.Int32}


def frame(**columns: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(LISTS | columns, schema_overrides={"score": pl.Float32, "rank": pl.Int32})


def read(file: Path, name: str) -> list[tuple[str, str]]:
    """The pairs as a reader of that form sees them, lists in their order."""
    if name == "trec":
        rows = [line.split() for line in file.read_text().splitlines()]
        assert all(row[1] == "Q0" and row[5] == "tag" for row in rows)
        rows.sort(key=lambda row: (row[0], -float(np.float32(row[4]))))
        return [(row[0], row[2]) for row in rows]
    if name == "ranx" and file.suffix == ".json":
        lists = json.loads(file.read_text())
        return [(user, item) for user in lists for item in sorted(lists[user], key=lambda one: -lists[user][one])]
    if name == "ranx":
        found = pl.read_parquet(file).sort("q_id", "score", descending=[False, True])
        return list(found.select("q_id", "doc_id").iter_rows())
    if name == "recbole":
        found = pl.read_csv(file, separator="\t")
        assert found.columns == ["user_id:token", "item_id:token", "score:float", "rank:float"]
        return list(found.sort("user_id:token", "rank:float").select("user_id:token", "item_id:token").iter_rows())
    readers = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson, ".ndjson": pl.read_ndjson}
    found = readers[file.suffix](file)
    assert found.columns == ["user_id", "item_id", "score", "rank"]
    return list(found.sort("user_id", "rank").select("user_id", "item_id").iter_rows())


@pytest.mark.parametrize("name", FORMATS)
def test_every_form_keeps_the_order(name: str, tmp_path: Path) -> None:
    for ending in FORMATS[name].sinks:
        file = tmp_path / f"lists{ending}"
        blocks = frame().partition_by("user_id")
        rows, notes = write_recommendations(iter(blocks), SCHEMA, file, name, "tag")
        assert rows == 5
        assert bool(notes) == FORMATS[name].by_score
        assert read(file, name) == list(zip(LISTS["user_id"], LISTS["item_id"], strict=True)), ending
    assert len(list(tmp_path.iterdir())) == len(FORMATS[name].sinks)


@pytest.mark.parametrize(
    ("name", "file", "ids"),
    [
        ("trec", "a.trec", {"item_id": ["x", "a b", "z", "z", "x"]}),
        ("trec", "a.trec", {"user_id": ["", "", "", "b", "b"]}),
        ("recbole", "a.inter", {"item_id": ["x", "a\tb", "z", "z", "x"]}),
        ("ranx", "a.json", {"user_id": ["a", "a", "a", "a", "a"], "rank": [1, 2, 3, 1, 2]}),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(
    name: str, file: str, ids: dict[str, list[Any]], tmp_path: Path
) -> None:
    blocks = [frame(**ids).head(3), frame(**ids).tail(2)]
    with pytest.raises(InputError, match=r"cannot be written|has two lists"):
        write_recommendations(iter(blocks), SCHEMA, tmp_path / file, name)
    assert not list(tmp_path.iterdir())


def test_nothing_is_a_file_without_rows(tmp_path: Path) -> None:
    for name, form in FORMATS.items():
        file = tmp_path / f"{name}{next(iter(form.sinks))}"
        assert write_recommendations(iter([]), SCHEMA, file, name) == (0, [])
        assert read(file, name) == [] if name != "jsonl" else file.read_text() == ""


def test_endings_and_names() -> None:
    expected = {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".json": "ranx", ".trec": "trec"}
    for ending, name in (expected | {".inter": "recbole", ".txt": "trec"}).items():
        assert choose_format(Path(f"x{ending}"), None, overwrite=False) == name
    with pytest.raises(InputError, match=r"no format 'xml'; choose one of csv, parquet, jsonl"):
        choose_format(Path("x.csv"), "xml", overwrite=False)
    with pytest.raises(InputError, match=r"x.csv has the ending '.csv'; format trec is written to .trec or .txt"):
        choose_format(Path("x.csv"), "trec", overwrite=False)


def test_files_hold_the_vectors(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users, items = map(pl.concat, model.dial_vectors())
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
