"""Lists in other tools' forms: the same users, items and order; scores that fall; ids that fit or are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpaa.errors import InputError
from dpaa.runs.formats import FORMATS, choose_format, falling_scores, write_recommendations
from dpaa.runs.model import Model

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


def test_notes_count_what_was_lowered(tmp_path: Path) -> None:
    _, notes = write_recommendations(iter([frame()]), SCHEMA, tmp_path / "a.trec", "trec")
    assert notes == ["2 scores were lowered to below the one before, since readers of trec files sort by score alone"]


def test_scores_that_fall_stay_bit_for_bit(model: Model) -> None:
    lists = model.recommend(k=10)
    falling = falling_scores(lists)
    tied = lists["score"].shift(1) == lists["score"]
    assert np.array_equal(falling, lists["score"].to_numpy()) or tied.any()
    again = lists.with_columns(pl.Series("score", falling)).sort("user_id", "score", descending=[False, True])
    assert again["item_id"].equals(lists.sort("user_id", "rank")["item_id"])


def test_whole_numbers_are_text_where_the_tool_wants_it(tmp_path: Path) -> None:
    whole = frame(user_id=[1, 1, 1, 2, 2], item_id=[7, 8, 9, 9, 7])
    write_recommendations(iter([whole]), whole.schema, tmp_path / "a.json", "ranx")
    assert list(json.loads((tmp_path / "a.json").read_text())) == ["1", "2"]
    write_recommendations(iter([whole]), whole.schema, tmp_path / "a.jsonl", "jsonl")
    assert pl.read_ndjson(tmp_path / "a.jsonl")["user_id"].to_list() == [1, 1, 1, 2, 2]


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
