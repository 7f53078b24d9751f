"""What people name as a log: files, folders, patterns, standard input, URLs; text as it comes."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import polars as pl
import pytest

from dpaa.data import inputs
from dpaa.data.inputs import name_of, open_log
from dpaa.data.log import ColumnNames, Reading, read_log
from dpaa.data.sources.files import from_file
from dpaa.data.tables import TextForm, open_table
from dpaa.errors import InputError

ONE, TWO = "user,item\n1,10\n2,11\n", "item,user,more\n12,1,x\n13,3,y\n"
PAIRS = [(1, 10), (2, 11), (1, 12), (3, 13)]


def write(file: Path, text: str | bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def pairs(*named: object, **how: object) -> list[tuple[object, ...]]:
    return read_log(open_log(list(named), **how)).frame.select("user_id", "item_id").rows()  # type: ignore[arg-type]


def test_several_files_are_one_log(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.csv", ONE), write(tmp_path / "b.csv", TWO)
    assert pairs(one, str(two)) == PAIRS
    assert open_log([one, two]).name == f"{one} and 1 more"
    with pytest.raises(InputError, match=r"a.csv is named twice; its rows would be counted twice"):
        open_log([one, one])
    with pytest.raises(InputError, match="no file is named"):
        open_log([])


def test_a_folder_and_a_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "logs" / "day=1" / "part.csv", ONE)
    write(tmp_path / "logs" / "day=2" / "part.csv.gz", gzip.compress(TWO.encode()))
    write(tmp_path / "logs" / "_SUCCESS", "")
    write(tmp_path / "logs" / ".hidden" / "a.csv", "broken")
    write(tmp_path / "logs" / "notes.md", "not a log")
    assert pairs(tmp_path / "logs") == PAIRS
    monkeypatch.chdir(tmp_path)
    assert pairs("logs/*/*.csv*") == PAIRS
    assert pairs("logs/**/part.csv") == PAIRS[:2]
    assert name_of("logs/*/*.csv*") == name_of("logs/") == "logs"
    with pytest.raises(InputError, match="no file is named like logs/9"):
        pairs("logs/9*.csv")
    write(tmp_path / "empty" / "notes.md", "")
    with pytest.raises(InputError, match=r"empty has no file that ends in one of .csv"):
        pairs("empty")
    write(tmp_path / "data" / "dataset.json", "{}")
    with pytest.raises(InputError, match="data is a prepared dataset already"):
        pairs("data")


def test_a_name_that_looks_like_a_pattern_is_a_file_first(tmp_path: Path) -> None:
    write(tmp_path / "a1.csv", ONE)
    assert pairs(write(tmp_path / "a[1].csv", "user,item\n7,8\n")) == [(7, 8)]
    assert pairs(write(tmp_path / "a*.jsonl", '{"user": 7, "item": 8}\n')) == [(7, 8)]


def test_formats_may_be_mixed(tmp_path: Path) -> None:
    one = write(tmp_path / "a.csv", ONE)
    pl.DataFrame({"user": [1, 3], "item": [12, 13]}).write_parquet(tmp_path / "b.parquet")
    write(tmp_path / "c.jsonl", '{"user": 4, "item": 14}\n')
    assert pairs(one, tmp_path / "b.parquet", tmp_path / "c.jsonl") == [*PAIRS, (4, 14)]
    assert pairs(tmp_path / "b.parquet", tmp_path / "c.jsonl") == [*PAIRS[2:], (4, 14)]
    write(tmp_path / "d.jsonl", '{"user": 9, "item": [1]}\n')
    with pytest.raises(InputError, match=r"column 'item' is Int64 in .*b.parquet and List\(String\) in .*d.jsonl"):
        pairs(tmp_path / "b.parquet", tmp_path / "d.jsonl")


def test_faults_name_the_file_they_are_in(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.csv", "user,item\n1,\n"), write(tmp_path / "b.csv", "user,item\n1,2\n3\n,4\n")
    with pytest.raises(InputError) as refused:
        read_log(open_log([one, two]))
    assert "nothing in column 'user' (1 row, first line 4 of" in str(refused.value)
    assert f"nothing in column 'item' (1 row, first line 2 of {one})" in str(refused.value)
    log = read_log(open_log([one, two]), reading=Reading(drop_invalid=True))
    assert log.frame.rows() == [(1, 2)]
    assert log.invalid is not None
    assert log.invalid.select("source", "row").rows() == [(str(one), 2), (str(two), 3), (str(two), 4)]


class Piped(io.StringIO):
    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize(
    "content", [ONE.encode(), ONE.replace(",", "\t").encode(), b'{"user":1,"item":10}\n{"user":2,"item":11}']
)
def test_standard_input(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs._standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", Piped(content))
    fmt = "csv" if b"user,item" in content else None
    assert pairs("-", fmt=fmt) == PAIRS[:2]
    assert pairs("-", fmt=fmt) == PAIRS[:2]  # read once, and kept
    inputs._standard_input.cache_clear()


def test_sentences_about_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs._standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", Piped(b"user,item\n1,2\n3\n"))
    with pytest.raises(InputError, match=r"^line 3 of standard input has 1 field where the header has 2"):
        pairs("-", fmt="csv")
    inputs._standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", Piped(b"user;item\n1;2\n"))
    assert open_log("-").notes == ("standard input: its fields are taken to be separated by semicolons",)
    inputs._standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", Piped(b""))
    with pytest.raises(InputError, match=r"^standard input is empty"):
        pairs("-", fmt="csv")
    inputs._standard_input.cache_clear()


def test_a_file_url_is_a_file(tmp_path: Path) -> None:
    file = write(tmp_path / "a b.csv", ONE)
    assert pairs(file.as_uri()) == PAIRS[:2]
    assert name_of(file.as_uri()) == "a%20b"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "user;item;rating\n1;2;3,5\n1;3;4\n", "semicolons"),
        ("a.csv", "user\titem\trating\n1\t2\t3,5\n1\t3\t4\n", "tabs"),
        ("a.csv", "user|item|rating\n1|2|3,5\n1|3|4\n", "bars (|)"),
        ("a.dat", "user::item::rating\n1::2::3,5\n1::3::4\n", "double colons (::)"),
        ("a.txt", "user;item;rating\r\n1;2;3,5\r\n\r\n1;3;4\r\n", "semicolons"),
        ("a.csv", '\ufeffuser;item;rating\n"1";2;"3,5"\n1;3;4\n', "semicolons"),
    ],
)
def test_separator_and_decimal_comma_are_found_and_said(tmp_path: Path, name: str, text: str, said: str) -> None:
    file = write(tmp_path / name, text)
    log = read_log(open_table(file))
    assert log.frame.rows() == [(1, 2, 3.5), (1, 3, 4.0)]
    assert log.notes == (
        f"{file}: its fields are taken to be separated by {said}",
        f"{file}: column 'rating' has decimal commas, such as '3,5'",
    )


@pytest.mark.parametrize("rating", ["1.234,5", "1,2,3", "x,5"])
def test_numbers_that_may_be_meant_either_way_are_faults(tmp_path: Path, rating: str) -> None:
    file = write(tmp_path / "a.csv", f"user;item;rating\n1;2;{rating}\n1;3;4\n")
    with pytest.raises(InputError, match="which is not a number"):
        read_log(open_table(file))


def test_no_header_line(tmp_path: Path) -> None:
    """As in MovieLens: 1::1193::5::978300760."""
    file = write(tmp_path / "ratings.dat", "1::1193::5::978300760\n1::661::3::978302109\n\n2::1193::4::978298413\n")
    form = TextForm(columns=("user_id", "item_id", "rating", "timestamp"))
    log = read_log(open_table(file, form=form))
    assert log.frame.select("user_id", "item_id").rows() == [(1, 1193), (1, 661), (2, 1193)]
    assert log.frame["timestamp"].dtype == pl.Int64
    bad = write(tmp_path / "bad.dat", "1::1193::5::9\n1::661::x::9\n\n2::1193::4\n")
    with pytest.raises(
        InputError, match=r"fields than the header's 4 \(1 row, first line 4\), no number .*'x' in line 2"
    ):
        read_log(open_table(bad, form=form))
    log = read_log(open_table(bad, form=form), reading=Reading(drop_invalid=True))
    assert log.invalid is not None
    assert log.invalid["content"].to_list() == ["1::661::x::9", "2::1193::4"]
    with pytest.raises(InputError, match="if the file has no header line, name its columns with --columns"):
        read_log(open_table(file))


def test_items_of_movielens(tmp_path: Path) -> None:
    """Bars, no header line, and titles in Latin-1."""
    text = "1|Café (1995)|01-Jan-1995||http://x/?Toy|0|1\n2|Léon|01-Jan-1994||http://x|1|0\n"
    file = write(tmp_path / "u.item", text.encode("latin-1"))
    names = ("movie id", "title", "released", "video", "url", "Action", "Comedy")
    table = open_table(file, form=TextForm(columns=("item_id", *names[1:]), encoding="latin-1"))
    assert table.read(["item_id", "title", "Comedy"]).rows() == [("1", "Café (1995)", "1"), ("2", "Léon", "0")]
    with pytest.raises(InputError, match=r"line 1 of .* is not UTF-8 text .*or name its --encoding"):
        open_table(file, form=TextForm(columns=("item_id", *names[1:]))).read(["title"])


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"encoding": "klingon"}, "there is no encoding 'klingon'"),
        ({"encoding": "zlib"}, "there is no encoding 'zlib'"),
        ({"columns": ("a", "a")}, "--columns needs a name for every column, each once, got 'a,a'"),
        ({"columns": ("a", "")}, "--columns needs a name for every column"),
    ],
)
def test_wrong_forms(form: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TextForm(**form)  # type: ignore[arg-type]


def test_a_form_is_of_text(tmp_path: Path) -> None:
    pl.DataFrame({"user": [1], "item": [2]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a.parquet is read as parquet: separator, columns and encoding are of text"):
        open_table(tmp_path / "a.parquet", form=TextForm(encoding="latin-1"))
    bad = write(tmp_path / "a.csv", b"user,item\n1,\x81\n")
    with pytest.raises(InputError, match=r"line 2 of .* is not cp1252 text"):
        open_table(bad, form=TextForm(encoding="cp1252"))
    wide = write(tmp_path / "b.csv", "user,item\n1,2\n".encode("utf-16"))
    assert read_log(open_table(wide, form=TextForm(encoding="utf-16"))).frame.rows() == [(1, 2)]


def test_json_lines_keep_types_and_pass_nested_fields_by(tmp_path: Path) -> None:
    text = (
        '{"user": "007", "item": 1, "rating": 4.5, "extra": {"deep": [1, {"a": 2}]}, "ts": "2024-01-01"}\n\n'
        '{"item": 2, "user": "8", "rating": null, "extra": null, "ts": "2024-01-02"}\n'
    )
    log = read_log(open_table(write(tmp_path / "a.jsonl", text)))
    assert log.frame.select("user_id", "item_id", "rating").rows() == [("007", 1, 4.5), ("8", 2, None)]
    zipped = write(tmp_path / "b.ndjson.gz", gzip.compress(text.encode()))
    assert read_log(open_table(zipped)).frame.equals(log.frame)
    mixed = write(tmp_path / "c.jsonl", '{"user": 1, "item": "a"}\n{"user": "x", "item": "b"}\n')
    assert read_log(open_table(mixed)).frame.rows() == [("1", "a"), ("x", "b")]
    large = write(tmp_path / "d.jsonl", f'{{"user": {2**63}, "item": 1}}\n')
    assert read_log(open_table(large)).frame.rows() == [(2**63, 1)]


def test_faults_of_json_lines(tmp_path: Path) -> None:
    text = '{"user": 1, "item": 2}\n\n{"user": 1, "item"\n[1]\n{"user": 3}\n{"user": 4, "item": 5}\n'
    file = write(tmp_path / "a.jsonl", text)
    with pytest.raises(InputError, match=r"no JSON object \(2 rows, first line 3\), nothing in column 'item' .*line 5"):
        read_log(open_table(file))
    log = read_log(open_table(file), reading=Reading(drop_invalid=True))
    assert log.frame.rows() == [(1, 2), (4, 5)]
    assert log.invalid is not None
    assert log.invalid["row"].to_list() == [3, 4, 5]
    assert log.invalid["content"].to_list() == ['{"user": 1, "item"', "[1]", '{"user": 3}']
    with pytest.raises(InputError, match="has no JSON object in its first 1,000 lines"):
        open_table(write(tmp_path / "b.jsonl", "1\n2\n"))
    deep = write(
        tmp_path / "c.jsonl", '{"user": 1, "item": ' + "[" * 5000 + "]" * 5000 + "}\n" + '{"user":1,"item":2}\n'
    )
    with pytest.raises(InputError, match=r"line 1 of .* is no JSON object"):
        read_log(open_table(deep))


def test_a_dataset_of_several_files(tmp_path: Path) -> None:
    write(tmp_path / "logs" / "a.csv", ONE)
    write(tmp_path / "logs" / "b.csv", TWO)
    data = from_file(tmp_path / "logs", names=ColumnNames(user="user"))
    assert data.name == "logs"
    assert data.n_interactions == 4
