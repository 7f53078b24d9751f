"""Text files in pieces: ragged rows, bombs and lines without end."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from dpaa.data.log import read_log
from dpaa.data.tables import open_table
from dpaa.data.text_lines import LONGEST_LINE, PIECE, check_rows
from dpaa.errors import InputError
from tests.data.little_memory import little_memory


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
