import json
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpaa import Dataset, InputError, read_dataset
from dpaa.data.attributes import ATTRIBUTES_FILE, LONGEST_TITLE, MOST_GROUPS, ItemAttributes
from dpaa.data.inputs import open_table
from tests.command import dpaa_ok

LOG = {"user_id": ["a", "a", "b", "b"], "item_id": [1, 2, 3, 10]}


def csv(folder: Path, text: str) -> Path:
    file = folder / "items.csv"
    file.write_text(text)
    return file


def described(items: object, **columns: object) -> Dataset:
    return Dataset.from_frame(LOG | columns, items=items)


def test_rows_follow_the_items_whatever_their_order(tmp_path: Path) -> None:
    file = csv(tmp_path, "year,item_id,title,genre\n1999,3,Third,Drama\n1984,1,1984,Drama|War\n,10,Last,\n2000,4,x,y\n")
    data = Dataset.from_frame(LOG).with_items(open_table(file))
    assert data.items.to_dict(as_series=False) == {
        "item_id": [1, 2, 3, 10],
        "year": [1984, None, 1999, None],
        "title": ["1984", None, "Third", "Last"],
        "genre": ["Drama|War", None, "Drama", None],
    }
    assert data.notes[-1] == f"{file}: 1 items are not in the log, 1 items of the log have no row"


def test_words_of_a_token_seq_column_are_single_values(tmp_path: Path) -> None:
    (tmp_path / "log.inter").write_text("user_id:token\titem_id:token\n1\t5\n1\t6\n2\t6\n2\t7\n3\t5\n3\t7\n")
    items = (
        "item_id:token\tclass:token_seq\tstudio:token\n5\tComedy Drama\tTwo Cats\n6\tDrama\tTwo Cats\n7\tComedy\tCats\n"
    )
    (tmp_path / "log.item").write_text(items)
    data, run, recs = (tmp_path / name for name in ("data", "run", "recs.csv"))
    words = ("--items", tmp_path / "log.item", "--valid", "0", "--test", "0", "--out", data)
    dpaa_ok("data", "log", tmp_path / "log.inter", *words)
    dpaa_ok("train", data, "--method", "most-popular", "--out", run)
    dpaa_ok(
        "recommend", run, "--only", "studio=Two Cats", "--include-seen", "--out", recs
    )  # a token column is not split
    assert set(pl.read_csv(recs)["item_id"]) == {5, 6}
    dpaa_ok("recommend", run, "--only", "class=Comedy", "--include-seen", "--out", recs, "--overwrite")
    assert set(pl.read_csv(recs)["item_id"]) == {5, 7}


def test_a_dataset_keeps_them_and_its_fingerprint(tmp_path: Path) -> None:
    items = {"movieId": [1, 2], "Movie_Title": ["One", "Two"], "seen": [True, None], "on": [date(2024, 1, 1), None]}
    data = described(items)
    assert data.fingerprint == Dataset.from_frame(LOG).fingerprint
    data.write(tmp_path / "data")
    again = read_dataset(tmp_path / "data")
    assert again.items.equals(data.items)
    assert again.describe()["attributes"] == ["title", "seen", "on"]
    assert "attributes" not in again.about
    again.write(tmp_path / "copy")
    assert read_dataset(tmp_path / "copy").items.equals(data.items)


@pytest.mark.parametrize("spoil", ["changed", "missing", "added", "other"])
def test_a_file_that_was_not_written_there_is_refused(spoil: str, tmp_path: Path) -> None:
    described({"item_id": [1], "title": ["One"]}).write(tmp_path / "data")
    file, about = tmp_path / "data" / ATTRIBUTES_FILE, tmp_path / "data" / "dataset.json"
    if spoil == "changed":
        described({"item_id": [1], "title": ["<b>"]}).attributes.frame.write_parquet(file)  # type: ignore[union-attr]
    elif spoil == "missing":
        file.unlink()
    else:
        content = json.loads(about.read_text())
        if spoil == "added":
            del content["attributes"]
        else:
            content["attributes"] = "title"
        about.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"make it again with `dpaa data`|there is no file"):
        read_dataset(tmp_path / "data")


def test_ids_keep_their_type(tmp_path: Path) -> None:
    text = csv(tmp_path, "item_id,title\n007,Bond\n1,One\n")
    data = Dataset.from_frame(LOG).with_items(open_table(text))
    assert data.items["title"].to_list() == ["One", None, None, None]  # 007 is not 7, and neither is in the log
    words = Dataset.from_frame(LOG | {"item_id": ["007", "1", "x", "y"]}).with_items(open_table(text))
    assert words.items["title"].to_list() == ["Bond", "One", None, None]
    with pytest.raises(InputError, match="no item of the items frame is in the log, whose ids are integers such as 1"):
        described({"item_id": ["1"], "title": ["One"]})
    seven = Dataset.from_frame(LOG | {"item_id": [7, 1, 2, 3]}).with_items(open_table(text))
    assert seven.items["title"].to_list() == ["One", None, None, None]


def test_what_cannot_be_kept_is_left_out_and_named() -> None:
    data = described({"item_id": [1], "title": ["One"], "box": [{"a": 1}], "tags": [["x", "y"]]})
    assert data.items.columns == ["item_id", "title", "tags"]
    with pytest.raises(InputError, match="the items frame has no column of text"):
        described({"item_id": [1], "box": [{"a": 1}]})


def test_titles_are_text_of_bounded_length() -> None:
    found = described({"item_id": [1, 2], "title": [1984, 2001]}).attributes
    assert found.titles.to_list() == ["1984", "2001", None, None]
    long = described({"item_id": [1], "title": ["x" * 1000]}).attributes
    assert len(long.titles[0]) == LONGEST_TITLE
    none = described({"item_id": [1], "genre": ["a"]}).attributes
    assert none.titles is None


def masks(frame: dict[str, list[object]], column: str) -> dict[str, list[int]]:
    groups = ItemAttributes(pl.DataFrame(frame, strict=False)).groups(column)
    return {name: np.flatnonzero(mask).tolist() for name, mask in groups.items()}


def test_groups() -> None:
    assert masks({"genre": ["War|Drama", "Drama", None, " Drama |", "", "War|War"]}, "genre") == {
        "Drama": [0, 1, 3],
        "War": [0, 5],
        "(none)": [2, 4],
    }
    assert masks({"year": [10, 9, None]}, "year") == {"9": [1], "10": [0], "(none)": [2]}
    assert masks({"tags": [["b", "a"], [], None]}, "tags") == {"a": [0], "b": [0], "(none)": [1, 2]}
    assert masks({"new": [True, False]}, "new") == {"false": [1], "true": [0]}
    assert masks({"genre": ["(none)", None]}, "genre") == {"(none)": [0, 1]}


def test_groups_of_too_many_values_or_of_no_column() -> None:
    found = ItemAttributes(pl.DataFrame({"title": [str(n) for n in range(MOST_GROUPS + 1)]}))
    with pytest.raises(InputError, match="column 'title' of the items has 201 different values, too many for groups"):
        found.groups("title")
    with pytest.raises(InputError, match="the items have no column 'genre'; they have 'title'"):
        found.groups("genre")
    with pytest.raises(InputError, match="column 'a=b' of the items has = in its name"):
        ItemAttributes(pl.DataFrame({"a=b": ["x"]})).groups("a=b")
