"""Text files in pieces: ragged rows, bombs and lines without end."""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.log import read_log
from dpaa.data.tables import open_table
from dpaa.data.text_lines import LONGEST_LINE, PIECE, check_rows, check_unpacked, rows, text_lines
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


def test_lines_are_the_same_plain_and_gzipped_and_a_mark_at_the_start_is_none_of_them(tmp_path: Path) -> None:
    content = "\ufeffuser,item\r\nä,1\n\n\ufeffb,2"
    (tmp_path / "log.csv").write_bytes(content.encode())
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(content.encode()))
    for name in ("log.csv", "log.csv.gz"):
        assert list(text_lines(tmp_path / name)) == ["user,item\r\n", "ä,1\n", "\n", "\ufeffb,2"]


def test_rows_are_named_by_their_first_line(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text('user,item\n"a\nb","x, ""y"""\n\nc,1\n')
    assert list(rows(file, ",")) == [(1, ["user", "item"]), (2, ["a\nb", 'x, "y"']), (4, []), (5, ["c", "1"])]
    file.write_text('user,item\na,1\n"b,2\n')
    with pytest.raises(InputError, match=r"line 3 of .* has wrong quotes"):
        list(rows(file, ","))


def test_another_encoding_and_a_cut_off_archive_are_told(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_bytes("user,item\né,1\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"line 2 of .* is not UTF-8 text \(bytes b'\\xe9,1\\n'\); save the file"):
        list(text_lines(file))
    file.write_bytes(gzip.compress(b"user,item\n" * 1000)[:-20])
    for read in (lambda: list(text_lines(file)), lambda: check_unpacked(file), lambda: check_rows(file, ",", 2)):
        with pytest.raises(InputError, match=r"cannot be read \(.*\); check the file"):
            read()


@given(
    st.lists(st.lists(st.text("ab\t", max_size=3), min_size=1, max_size=4), min_size=1, max_size=6),
    st.integers(1, 40),
)
def test_the_first_wrong_line_is_found_whatever_the_pieces(lines: list[list[str]], piece: int) -> None:
    """Blank lines are no rows; everything else has as many fields as tabs and one."""
    text = "\n".join("\t".join(cells) for cells in lines)
    counts = [(number, line.count("\t") + 1) for number, line in enumerate(text.split("\n"), start=1) if line]
    wrong = next(((number, count) for number, count in counts if count != 2), None)
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.data.text_lines.PIECE", piece)
        file = Path(place) / "log.tsv"
        file.write_text(text)
        if wrong is None:
            check_rows(file, "\t", 2)
            return
        with pytest.raises(InputError, match=rf"line {wrong[0]} of .* has {wrong[1]} field"):
            check_rows(file, "\t", 2)
