"""Files made to break a reader: ragged rows, bombs, pipes, devices.  One sentence each, and no memory to speak of."""

from __future__ import annotations

import gzip
import os
import resource
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpaa.data.log import read_log
from dpaa.data.parquet import _DamagedError, check_size, parquet_schema, read_parquet
from dpaa.data.tables import open_table
from dpaa.data.text_lines import LONGEST_LINE, PIECE, check_rows
from dpaa.errors import InputError
from tests.command import run_dpaa

# ---------------------------------------------------------------------- ragged rows


def test_ragged_rows_do_not_shift_ids(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("title,user_id,item_id\nT1,0,1\nT2,0,2\nT3, The,0,3\n")
    said = run_dpaa("data", "log", file, "--out", tmp_path / "data")
    assert said.code == 2
    assert f"line 4 of {file} has 4 fields where the header has 3" in said.err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("quoted", [False, True], ids=["plain", "quoted"])
@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (["a,1,2", "b,1,2,3"], 3),
        (["a,1,2", "b,1"], 3),
        (["a,1,2", "", "b"], 4),
        (["a,1,2", "b,1,2,"], 3),
        (["a,1,2", "", "b,1,3", ""], None),
    ],
)
def test_every_row_has_as_many_fields_as_the_header(
    tmp_path: Path, lines: list[str], wrong: int | None, quoted: bool, ending: str
) -> None:
    file = tmp_path / "log.csv"
    header = '"title",user,item' if quoted else "title,user,item"
    file.write_bytes(ending.join([header, *lines]).encode())
    if wrong is None:
        assert len(open_table(file).read(["user", "item"])) == 2
        return
    with pytest.raises(InputError, match=rf"line {wrong} of .* where the header has 3"):
        open_table(file).read(["user", "item"])


def test_rows_are_counted_right_over_the_pieces_of_a_large_file(tmp_path: Path) -> None:
    file, rng = tmp_path / "log.tsv", np.random.default_rng(0)
    words = ["x" * int(length) for length in rng.integers(1, 4000, 4000)]
    lines = ["user\titem\ttext", *(f"{place}\t1\t{word}" for place, word in enumerate(words))]
    file.write_text("\n".join(lines) + "\n")
    assert file.stat().st_size > 1.5 * PIECE
    check_rows(file, "\t", 3)
    for place in (1, 2000, 4000):
        file.write_text("\n".join([*lines[:place], lines[place] + "\t", *lines[place + 1 :]]))
        with pytest.raises(InputError, match=rf"line {place + 1:,} of .* has 4 fields"):
            check_rows(file, "\t", 3)


def test_a_quote_in_a_tab_separated_file_is_no_quote(tmp_path: Path) -> None:
    file = tmp_path / "log.tsv"
    file.write_text('user\titem\n"a\t1\nb"\t2\n')
    assert read_log(open_table(file)).frame["user_id"].to_list() == ['"a', 'b"']


# ---------------------------------------------------------------------- bombs


def little_memory(work: Callable[[], object]) -> str:
    """What an `InputError` says; the process may not have grown by more than 300 MB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError) as refused:
        work()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    return str(refused.value)


def test_a_parquet_file_that_unpacks_to_one_huge_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    pl.DataFrame({"user": ["x" * 120_000_000], "item": [1]}).write_parquet(file)
    assert file.stat().st_size < 100_000
    said = little_memory(lambda: read_log(open_table(file)))
    assert "would unpack from" in said


def test_a_parquet_file_that_claims_rows_without_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    ones = np.ones(4_000_000, dtype=np.int64)
    pl.DataFrame({"user": ones, "item": ones}).write_parquet(file)
    said = little_memory(lambda: read_log(open_table(file)))
    assert "claims 4,000,000 rows in" in said


def test_sound_parquet_files_of_every_kind_pass(tmp_path: Path) -> None:
    rng, file = np.random.default_rng(0), tmp_path / "log.parquet"
    frame = pl.DataFrame(
        {
            "user": rng.integers(0, 1000, 300_000),
            "item": [f"item {number}" for number in rng.integers(0, 500, 300_000)],
            "constant": pl.repeat(1.0, 300_000, eager=True),
            "empty": pl.repeat(None, 300_000, dtype=pl.Int64, eager=True),
            "nested": [[1, 2]] * 300_000,
        }
    )
    for compression in ("zstd", "snappy", "lz4", "gzip", "brotli", "uncompressed"):
        frame.write_parquet(file, compression=compression, row_group_size=70_000)  # type: ignore[arg-type]
        assert read_parquet(file, frame.columns).equals(frame)
    frame.clear().write_parquet(file)
    assert read_parquet(file, frame.columns).shape == (0, 5)


def test_a_panic_of_polars_is_not_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "log.parquet"
    pl.DataFrame({"user": ["a", None] * 200}).write_parquet(file)
    content = file.read_bytes()
    optional = b"\x15\x0c\x25\x02\x18\x04user"  # a byte array that may be missing; now one that may not
    assert optional in content
    file.write_bytes(content.replace(optional, optional.replace(b"\x25\x02", b"\x25\x00")))
    with pytest.raises(pl.exceptions.PolarsError):
        read_parquet(file, ["user"])
    os.write(2, b"heard again")
    assert capfd.readouterr().err == "heard again"


def test_a_parquet_file_whose_lengths_lie_is_damaged_and_not_asked_for_memory(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    pl.DataFrame({"user": [1, 2, 3], "item": [1, 2, 3]}).write_parquet(file)
    whole = file.read_bytes()
    (length,) = struct.unpack("<I", whole[-8:-4])
    for lie in (length + 1_000_000, 2**32 - 1, 0):
        file.write_bytes(whole[:-8] + struct.pack("<I", lie) + whole[-4:])
        with pytest.raises((InputError, pl.exceptions.PolarsError)):
            parquet_schema(file)
        with pytest.raises(InputError, match="is not a readable Parquet file"):
            read_log(open_table(file))
    for place in range(0, len(whole), 7):
        file.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        with suppress(InputError, _DamagedError):
            check_size(file)


@pytest.mark.parametrize("name", ["log.csv.gz", "log.tsv.gz", "log.inter.gz", "log.txt.gz"])
@pytest.mark.parametrize("bomb", ["one line", "many lines"])
def test_a_gzip_bomb_is_refused_while_it_is_read(tmp_path: Path, name: str, bomb: str) -> None:
    file = tmp_path / name
    separator = "," if "csv" in name else " " if "txt" in name else "\t"
    with gzip.open(file, "wb", compresslevel=9) as stream:
        stream.write(f"user_id{separator}item_id\n".encode())
        block = b"1" * 1_000_000 if bomb == "one line" else f"1{separator}2\n".encode() * 250_000
        for _ in range(200):
            stream.write(block)
    assert file.stat().st_size < 3_000_000
    said = little_memory(lambda: read_log(open_table(file)))
    assert "unpacks from" in said or (bomb == "one line" and "is longer than" in said)


def test_a_line_that_never_ends_is_refused(tmp_path: Path) -> None:
    for head in ("user,item\n", ""):
        file = tmp_path / "log.csv"
        with file.open("wb") as stream:
            stream.write(head.encode())
            stream.truncate(200_000_000)  # zeros that take no room on the disk
        said = little_memory(lambda file=file: read_log(open_table(file)))
        assert f"is longer than {LONGEST_LINE / 1e6:g} MB" in said


# ---------------------------------------------------------------------- what is no file


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize(
    "words",
    [
        ("data", "log", "BAD.csv", "--out", "made"),
        ("data", "log", "BAD.parquet", "--out", "made"),
        ("data", "log", "BAD.txt", "--out", "made"),
        ("data", "splits", "--train", "log.csv", "--candidates", "BAD.txt", "--out", "made"),
        ("audit", "BAD.csv"),
        ("audit", "log.csv", "--recs", "BAD.csv"),
        ("train", "data", "--config", "BAD.toml", "--out", "made"),
        ("report", "BAD.json", "--out", "page.html"),
        ("data", "describe", "spoilt"),
    ],
    ids=lambda words: " ".join(words[:4]),
)
def test_pipes_and_devices_neither_hang_nor_fill_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("user,item\n1,2\n2,3\n")
    said = run_dpaa("data", "log", "log.csv", "--split", "random", "--out", "data")
    assert said.code == 0, said.err
    said = run_dpaa("data", "log", "log.csv", "--out", "spoilt")
    Path("spoilt/dataset.json").unlink()
    bad = [word for word in words if word.startswith("BAD")] or ["spoilt/dataset.json"]
    if kind == "pipe":
        os.mkfifo(bad[0])
    else:
        Path(bad[0]).symlink_to("/dev/zero")
    said = run_dpaa(*words)
    assert said.code == 2
    assert "is a pipe or device" in said.err or "is not a prepared dataset" in said.err
    assert not Path("made").exists()
