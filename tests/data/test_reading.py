"""Reading logs: every format says the same, every mistake gets its sentence, rows with faults can be left out."""

import gzip
import io
import json
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaa import Dataset, InputError
from dpaa.data import as_table, inputs
from dpaa.data.inputs import TextForm, name_of, open_log, open_table
from dpaa.data.log import ColumnNames, Log, PositiveRule, Reading, read_candidates, read_log

PAIRS = [(1, 10, 3.0, 100), (1, 20, 5.0, 200), (2, 10, 1.0, 300), (3, 30, 4.0, 400)]
FRAME = pl.DataFrame(PAIRS, schema=["user_id", "item_id", "rating", "timestamp"], orient="row")
DROP, TIMED = Reading(drop_invalid=True), Reading(times_needed=True)
ONE, TWO = "user,item\n1,10\n2,11\n", "item,user,more\n12,1,x\n13,3,y\n"


def write(file: Path, content: str | bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def read(folder: Path, content: str | bytes, name: str = "a.csv", **how: object) -> Log:
    return read_log(open_table(write(folder / name, content)), **how)  # type: ignore[arg-type]


def pairs(*named: object, **how: object) -> list[tuple[object, ...]]:
    return read_log(open_log(list(named), **how)).frame.select("user_id", "item_id").rows()  # type: ignore[arg-type]


def test_formats_agree(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    types = ("user_id:token", "item_id:token", "rating:float", "timestamp:float")
    inter = FRAME.rename(dict(zip(FRAME.columns, types, strict=True))).write_csv(separator="\t")
    files = [
        write(tmp_path / "a.csv", FRAME.write_csv()),
        write(tmp_path / "crlf.csv", FRAME.write_csv(line_terminator="\r\n")),
        write(tmp_path / "mac.csv", FRAME.write_csv(line_terminator="\r")),
        write(tmp_path / "bom.csv", b"\xef\xbb\xbf" + FRAME.write_csv().encode()),
        write(tmp_path / "blank.csv", "\n" + FRAME.write_csv().replace("\n", "\n\n") + "\n"),
        write(tmp_path / "a.csv.gz", gzip.compress(FRAME.write_csv().encode())),
        write(tmp_path / "a.tsv", FRAME.write_csv(separator="\t")),
        write(tmp_path / "a.txt", FRAME.write_csv(separator="\t")),
        write(tmp_path / "a.inter", inter),
        write(tmp_path / "a.jsonl", FRAME.write_ndjson()),
        write(tmp_path / "b.ndjson.gz", gzip.compress(FRAME.write_ndjson().encode())),
        tmp_path / "a.parquet",
    ]
    for file in files:
        assert read_log(open_table(file)).frame.equals(FRAME), file
    assert read_log(as_table(FRAME, "frame")).frame.equals(FRAME)
    listed = write(tmp_path / "list.txt", "1 10 20\n2 10\r\n\n7\n3 30 \n")
    assert read_log(open_table(listed)).frame.equals(FRAME.select("user_id", "item_id"))


@given(st.lists(st.tuples(*[st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)] * 2), min_size=1))
@settings(max_examples=30, deadline=None)
def test_odd_text_survives_a_csv_file(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> None:
    frame = pl.DataFrame(
        {"user_id": [f'u\n"{user}' for user, _ in pairs], "item_id": [f"i,{item}" for _, item in pairs]}
    )
    file = tmp_path_factory.mktemp("odd") / "a.csv"
    frame.write_csv(file, quote_style="always")
    assert read_log(open_table(file)).frame.equals(frame)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "user;item;rating\n1;2;3.5\n1;3;4\n"),
        ("a.csv", "user\titem\trating\n1\t2\t3.5\n1\t3\t4\n"),
        ("a.dat", "user::item::rating\n1::2::3.5\n1::3::4\n"),
        ("a.txt", '\ufeffuser;item;rating\r\n"1";2;"3.5"\r\n\r\n1;3;4\r\n'),
        ("a", "user|item|rating\n1|2|3.5\n1|3|4\n"),
    ],
)
def test_the_separator_is_detected(tmp_path: Path, name: str, text: str) -> None:
    assert read(tmp_path, text, name).frame.rows() == [(1, 2, 3.5), (1, 3, 4.0)]


@pytest.mark.parametrize("number", ["1.234,5", "3,5", "x,5", "nan", "1e999"])
def test_what_is_no_number(tmp_path: Path, number: str) -> None:
    with pytest.raises(InputError, match=rf"not a number in column 'rating' \(1 row, first '{number}' in line 2\)"):
        read(tmp_path, f"user;item;rating\n1;2;{number}\n1;3;4\n")


def test_no_header_line(tmp_path: Path) -> None:
    """As in MovieLens: 1::1193::5::978300760."""
    form = TextForm(columns=("user_id", "item_id", "rating", "timestamp"))
    file = write(tmp_path / "ratings.dat", "1::1193::5::978300760\n\n2::1193::4::978298413\n")
    log = read_log(open_table(file, form=form))
    assert log.frame.select("user_id", "item_id").rows() == [(1, 1193), (2, 1193)]
    assert log.frame["timestamp"].dtype == pl.Int64
    bad = write(tmp_path / "bad.dat", "1::1193::5::9\n1::661::x::9\n\n2::1193::4\n")
    invalid = read_log(open_table(bad, form=form), reading=DROP).invalid
    assert invalid.select("row", "content").rows() == [(2, "1::661::x::9"), (4, "2::1193::4")]


def test_encodings(tmp_path: Path) -> None:
    names = ("item_id", "title", "Action")
    file = write(tmp_path / "u.item", "1|Café (1995)|0\n2|Léon|1\n".encode("latin-1"))
    table = open_table(file, form=TextForm(columns=names, encoding="latin-1"))
    assert table.read(["item_id", "title"]).rows() == [("1", "Café (1995)"), ("2", "Léon")]
    with pytest.raises(InputError, match=r"line 1 of .* is not UTF-8 text.*or name its encoding: --format encoding"):
        open_table(file, form=TextForm(columns=names))
    wide = write(tmp_path / "b.csv", "user,item\n1,2\n3\n".encode("utf-16"))
    log = read_log(open_table(wide, form=TextForm(encoding="utf-16")), reading=DROP)
    assert log.frame.rows() == [(1, 2)]
    assert log.invalid.select("row", "content").rows() == [(3, "3")]


def test_json_lines(tmp_path: Path) -> None:
    text = (
        '{"user": "007", "item": 1, "rating": 4.5, "extra": {"deep": [1, {"a": 2}]}, "ts": "2024-01-01"}\n\n'
        '{"item": 2, "user": "8", "rating": null, "extra": null, "ts": "2024-01-02"}\n'
    )
    log = read(tmp_path, text, "a.jsonl")
    assert log.frame.select("user_id", "item_id", "rating").rows() == [("007", 1, 4.5), ("8", 2, None)]
    assert read(tmp_path, f'{{"user": {2**63}, "item": 1}}\n', "d.jsonl").frame.rows() == [(2**63, 1)]
    text = '{"user": 1, "item": 2}\n\n{"user": 1, "item"\n[1]\n{"user": 3}\n{"user": 4, "item": 5}\n'
    with pytest.raises(
        InputError, match=r"empty value in column 'item' \(1 row, first line 5\), not a JSON object \(2 rows, first"
    ):
        read(tmp_path, text, "a.jsonl")
    log = read(tmp_path, text, "a.jsonl", reading=DROP)
    assert log.frame.rows() == [(1, 2), (4, 5)]
    rows = [(3, '{"user": 1, "item"'), (4, "[1]"), (5, '{"user": 3}')]
    assert log.invalid.select("row", "content").rows() == rows


# ---------------------------------------------------------------------- several files


def test_several_files_folders_and_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = write(tmp_path / "logs" / "day=1" / "part.csv", ONE)
    write(tmp_path / "logs" / "day=2" / "part.csv.gz", gzip.compress(TWO.encode()))
    write(tmp_path / "logs" / "_SUCCESS", "")
    write(tmp_path / "logs" / ".hidden" / "a.csv", "broken")
    write(tmp_path / "logs" / "notes.md", "not a log")
    expected = [(1, 10), (2, 11), (1, 12), (3, 13)]
    assert pairs(tmp_path / "logs") == expected
    monkeypatch.chdir(tmp_path)
    assert pairs("logs/*/*.csv*") == expected
    assert name_of("logs/*/*.csv*") == name_of("logs/") == "logs"
    for sources, sentence in (
        ([one, write(tmp_path / "c.jsonl", '{"user": 4, "item": 14}\n')], "files of one format"),
        ([], "files of one format"),
    ):
        with pytest.raises(InputError, match=sentence):
            open_log(sources)  # type: ignore[arg-type]
    write(tmp_path / "empty" / "notes.md", "")
    with pytest.raises(InputError, match=r"empty has no file that ends in one of .csv"):
        pairs("empty")


def test_partitions_of_parquet(tmp_path: Path) -> None:
    for day in ("2024-05-01", "2024-05-02"):
        (tmp_path / f"date={day}").mkdir(parents=True)
        FRAME.select("user_id", "item_id").write_parquet(tmp_path / f"date={day}" / "part-0.parquet")
    times = read_log(open_log(tmp_path)).frame["timestamp"]
    assert times.dt.strftime("%d").to_list() == ["01"] * 4 + ["02"] * 4


class Piped(io.StringIO):
    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.buffer = io.BytesIO(content)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget() -> None:
        inputs._standard_input().cleanup()
        inputs._standard_input.cache_clear()

    for content in (ONE.replace(",", "\t").encode(), b'{"user":1,"item":10}\n{"user":2,"item":11}'):
        monkeypatch.setattr(sys, "stdin", Piped(content))
        assert pairs("-") == pairs("-") == [(1, 10), (2, 11)]  # read once, and kept
        forget()
    monkeypatch.setattr(sys, "stdin", Piped(b"user,item\n1,2\n3\n"))
    with pytest.raises(InputError, match=r"^standard input has 1 invalid row: number of fields is not 2"):
        pairs("-", fmt="csv")
    forget()


# ---------------------------------------------------------------------- columns and values


@pytest.mark.parametrize("header", ["userId,movieId,rating,timestamp", "UID,ASIN,Stars,date", "u,i,rate,time"])
def test_usual_names_are_known(tmp_path: Path, header: str) -> None:
    text = FRAME.write_csv().replace("user_id,item_id,rating,timestamp", header)
    assert read(tmp_path, text).frame.equals(FRAME)


def test_names_can_be_given_and_likelier_ones_come_first(tmp_path: Path) -> None:
    names = ColumnNames(user="who", item="what")
    assert read(tmp_path, "who,what,user_id\na,x,1\n", names=names).frame.rows() == [("a", "x")]
    text = "user,user_id,item_id,date,timestamp\na,1,2,2020-01-01,5\n"
    assert read(tmp_path, text).frame.rows() == [(1, 2, 5)]
    assert read(tmp_path, ",user,item,\n0,1,2,\n").frame.rows() == [(1, 2)]  # columns without a name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-01", "2024-05-01 00:00:00"),
        ("2024-05-01T10:30", "2024-05-01 10:30:00"),
        ("2024-05-01t10:30z", "2024-05-01 10:30:00"),
        ("2024-05-01T10:30:05+02:00", "2024-05-01 08:30:05"),
        ("2024-05-01 10:30:05-0130", "2024-05-01 12:00:05"),
        ("2024-05-01 10:30:05+02", "2024-05-01 08:30:05"),
        ("2024-05-01 10:30:05.250", "2024-05-01 10:30:05.250"),
    ],
)
def test_iso_times(tmp_path: Path, text: str, expected: str) -> None:
    times = read(tmp_path, f"user,item,time\n1,2,2024-01-01\n1,3,{text}\n").frame["timestamp"]
    assert times.dtype == pl.Datetime("us", "UTC")
    assert times[1].strftime("%Y-%m-%d %H:%M:%S.%f").startswith(expected)


def test_typed_times_become_utc() -> None:
    naive = pl.DataFrame({"user": [1], "item": [2], "time": ["2024-05-01 10:00:00"]})
    for dtype in (pl.Datetime("ms"), pl.Datetime("ns")):
        frame = naive.with_columns(pl.col("time").str.to_datetime().cast(dtype))
        zoned = frame.with_columns(pl.col("time").dt.replace_time_zone("Europe/Berlin"))
        assert read_log(as_table(frame, "f")).frame["timestamp"][0].hour == 10
        assert read_log(as_table(zoned, "f")).frame["timestamp"][0].hour == 8
    day = naive.with_columns(pl.col("time").str.to_datetime().cast(pl.Date))
    assert read_log(as_table(day, "f")).frame["timestamp"].dtype == pl.Datetime("us", "UTC")


@pytest.mark.parametrize(
    ("times", "kept"),
    [
        (["5", "", "7"], [5, None, 7]),
        (["5", "inf", "7"], [5, None, 7]),
        (["1.5", "soon", "2"], [1.5, None, 2.0]),
        (["2024-01-01", "x", "2024-01-02"], [1704067200, None, 1704153600]),
        (["x", "", "y"], None),
    ],
)
def test_a_time_that_nothing_uses_may_be_missing(tmp_path: Path, times: list[str], kept: list[float | None]) -> None:
    rows = "".join(f"1,{n},{time}\n" for n, time in enumerate(times))
    log = read(tmp_path, "user,item,time\n" + rows)
    n = "3 rows have" if kept is None else "1 row has"
    assert log.notes == (f"{tmp_path / 'a.csv'}: {n} no time in column 'time'; nothing is split by it",)
    if kept is None:
        assert "timestamp" not in log.frame.columns
        return
    column = log.frame["timestamp"]
    assert (column.dt.epoch("s") if column.dtype == pl.Datetime else column).to_list() == kept


def test_ids_keep_their_type(tmp_path: Path) -> None:
    assert read(tmp_path, "user,item\n007,1\n8,18446744073709551615\n").frame.rows() == [("007", 1), ("8", 2**64 - 1)]
    typed = read_log(as_table({"user": ["1", "2"], "item": pl.Series([1, 2], dtype=pl.UInt64)}, "f")).frame
    assert typed.rows() == [("1", 1), ("2", 2)]
    assert typed["item_id"].dtype == pl.Int64
    mixed = read(tmp_path, "user,item\n1,2\nx,3\n,4\n", reading=DROP).frame
    assert mixed["user_id"].to_list() == ["1", "x"]


def test_positives_by_any_column(tmp_path: Path) -> None:
    text = "user,item,score,watch\n1,2,5,0.5\n1,3,1,2.5\n2,3,4,9\n"
    kept = read(tmp_path, text, positive=PositiveRule.parse("watch>2"))
    assert kept.frame.rows() == [(1, 3, 1.0), (2, 3, 4.0)]
    assert kept.notes == (f"{tmp_path / 'a.csv'}: 1 of 3 rows are not positive (watch > 2)",)
    assert read(tmp_path, text, positive=PositiveRule.parse("rating>=4")).frame.height == 2  # by its role


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.one_of(st.none(), st.integers(0, 5))), min_size=1))
@settings(max_examples=30, deadline=None)
def test_each_pair_is_kept_once_by_time_then_rating(rows: list[tuple[int, int, int | None]]) -> None:
    schema = dict.fromkeys(("user_id", "item_id", "timestamp"), pl.Int64)
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_row_index("rating")
    log = read_log(as_table(frame, "log"), once=True, keep_duplicates=True)
    frame = log.frame if "timestamp" in log.frame.columns else log.frame.with_columns(timestamp=pl.lit(None))
    for user, item, rating, time, count in frame.select("user_id", "item_id", "rating", "timestamp", "count").rows():
        same = [(9 if other[2] is None else other[2], n) for n, other in enumerate(rows) if other[:2] == (user, item)]
        assert (9 if time is None else time, rating) == min(same)
        assert count == len(same)
    distinct = len({row[:2] for row in rows})
    assert frame.height == distinct
    assert any("duplicate pair" in note for note in log.notes) == (distinct < len(rows))


def test_candidates(tmp_path: Path) -> None:
    words = read_candidates(open_table(write(tmp_path / "a.txt", "3\r\n1\n2 5\n")))
    column = read_candidates(open_table(write(tmp_path / "a.csv", "item_id\n3\n1\n\n2\n5\n")))
    assert words.to_list() == column.to_list() == [3, 1, 2, 5]
    with pytest.raises(InputError, match="has no rows"):
        read_candidates(open_table(write(tmp_path / "c.csv", "item_id\n")))


# ---------------------------------------------------------------------- mistakes

BAD_CSV = {
    "short row": ("user_id,item_id\n1,2\n\n3\n", "number of fields is not 2 (1 row, first line 4)"),
    "after quoted break": ('user_id,item_id\n"a\nb",2\n,4\n', "in column 'user_id' (1 row, first line 4)"),
    "torn after quoted break": ('user_id,item_id\n"a\nb",2\n3\n', "fields is not 2 (1 row, first line 4)"),
    "UTF-16": ("user_id,item_id\n1,2\n".encode("utf-16"), "line 1 of {file} is not UTF-8 text"),
    "open quote": ('user_id,item_id\n1,2\n3,"4\n5,6\n', "{file} has unquoted value, from about line 3 on"),
    "long line": (f"user_id,item_id\n1,{'2' * 4_000_001}\n", "{file} has line size over maximum"),
    "wrong day": ("user,item,time\n1,2,2020-02-30\n1,3,2020-02-01\n", "(1 row, first '2020-02-30' in line 2)"),
}
"""`tests/errors` makes simpler mistakes."""


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_csv(tmp_path: Path, case: str) -> None:
    content, words = BAD_CSV[case]
    with pytest.raises(InputError) as error:
        read(tmp_path, content, reading=TIMED)
    assert words.format(file=tmp_path / "a.csv") in str(error.value)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


# ---------------------------------------------------------------------- rows with faults

MESSY = """user,item,rating,time
1,10,5,2024-01-01
1,11,good,2024-01-02
,12,3,2024-01-03
2,13,4
2,14,4,soon

2,,4,2024-01-06
user,item,rating,time
3,15,4,2024-01-07
3,16,fine,later
"""


def test_all_kinds_of_faults_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, MESSY, reading=TIMED)
    assert str(refused.value) == (
        f"{tmp_path / 'a.csv'} has 7 invalid rows: empty value in column 'user' (1 row, first line 4), empty value in "
        "column 'item' (1 row, first line 8), not a number in column 'rating' (3 rows, first 'good' in line 3), not a "
        "time in column 'time' (3 rows, first 'soon' in line 6), number of fields is not 4 (1 row, first line 5); "
        "correct them, or leave such rows out with --invalid drop"
    )
    with pytest.raises(InputError, match=r"has only 2 invalid rows: not a number in column 'rating' \(2 rows, first"):
        read(tmp_path, "user,item,rating\n1,2,x\n1,3,y\n", reading=DROP)


def test_rows_with_faults_are_left_out_and_handed_over(tmp_path: Path) -> None:
    log = read(tmp_path, MESSY, reading=Reading(drop_invalid=True, times_needed=True))
    assert log.frame.select("user_id", "item_id", "rating").rows() == [(1, 10, 5.0), (3, 15, 4.0)]
    assert log.notes[0].startswith(f"{tmp_path / 'a.csv'}: 7 of 9 rows are left out, 7 invalid rows: empty value in")
    assert log.invalid.columns == ["source", "row", "fault", "content"]
    assert log.invalid.select("row", "content").rows() == [
        (3, "1,11,good,2024-01-02"),
        (4, ",12,3,2024-01-03"),
        (5, "2,13,4"),
        (6, "2,14,4,soon"),
        (8, "2,,4,2024-01-06"),
        (9, "user,item,rating,time"),
        (11, "3,16,fine,later"),
    ]
    faults = dict(log.invalid.select("row", "fault").iter_rows())
    assert faults[11] == "not a number in column 'rating'; not a time in column 'time'"
    assert read(tmp_path, MESSY, reading=DROP).frame["item_id"].to_list() == [10, 14, 15]


@pytest.mark.parametrize(
    ("name", "text", "kept", "kinds"),
    [
        ("a.csv", 'user,item\n1,2\n3,"4"x\n5,"6"\n', [2, 6], ["unquoted value"]),
        ("a.csv", 'user,item\n1,"2\n3"\n5,6,7\n8,9\n', ["2\n3", "9"], ["number of fields is not 2"]),
        (
            "a.csv",
            b"user,item\n1,2\n3,caf\xe9\n5,6\n",
            [2, 6],
            ["not UTF-8 text (or name the encoding: --format encoding=…)"],
        ),
        ("a.tsv", "user\titem\n1\t2\n3\n5\t6\t7\n8\t9\n", [2, 9], ["number of fields is not 2"] * 2),
    ],
)
def test_torn_lines(tmp_path: Path, name: str, text: str | bytes, kept: list[object], kinds: list[str]) -> None:
    log = read(tmp_path, text, name, reading=DROP)
    assert log.frame["item_id"].to_list() == kept
    assert log.invalid["fault"].to_list() == kinds


def test_a_line_that_duckdb_would_drop_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.data.inputs.BLOCK", 300_000)
    (tmp_path / "log.csv").write_text("user_id,item_id\n" + "u1,i1\n" * 60_000 + "u" * 700_000 + ",i1\nu2,i2\n")
    with pytest.raises(InputError, match=r"log.csv has a line of more than 0\.3 MB after byte 600,000; correct it"):
        open_log([tmp_path / "log.csv"])


def test_faults_name_the_file_they_are_in(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.csv", "user,item\n1,\n"), write(tmp_path / "b.csv", "user,item\n1,2\n3\n,4\n")
    with pytest.raises(InputError) as refused:
        read_log(open_log([one, two]))
    assert f"empty value in column 'user' (1 row, first line 4 of {two})" in str(refused.value)
    assert f"empty value in column 'item' (1 row, first line 2 of {one})" in str(refused.value)
    log = read_log(open_log([one, two]), reading=DROP)
    assert log.frame.rows() == [(1, 2)]
    assert log.invalid.select("source", "row").rows() == [(str(one), 2), (str(two), 3), (str(two), 4)]


def test_faults_of_a_rule_and_of_a_frame() -> None:
    frame = {"who": ["a", None, "c", ""], "item": [1, 2, 3, 4], "watch": [1.0, 2.0, None, 4.0]}
    table, names, rule = as_table(frame, "the frame"), ColumnNames(user="who"), PositiveRule.parse("watch>0")
    faults = r"empty value in column 'who' \(2 rows, first row 1\), empty value in column 'watch'"
    with pytest.raises(InputError, match=faults):
        read_log(table, names, rule)
    log = read_log(table, names, rule, DROP)
    assert log.frame.rows() == [("a", 1)]
    assert [json.loads(content)["item"] for content in log.invalid["content"]] == [2, 3, 4]
    frame = pl.DataFrame({"user_id": ["a", "a", None, "b"], "item_id": [1, 2, 3, 4]})
    for split in (None, "random"):
        data = Dataset.from_frame(frame, drop_invalid=True, split=split)
        assert data.n_interactions == 3
        assert any("1 of 4 rows are left out" in note for note in data.notes)
