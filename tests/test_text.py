"""What may reach a terminal, a page, a JSON file or a file's name."""

import json
import unicodedata
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa import _text
from dpaa.errors import InputError

ANY = st.text(st.characters(codec=None, exclude_categories=()) | st.sampled_from("\x1b\x9b\ud800\udcff\u202e\r\0./\\~"))
"""Lone surrogates too."""


@given(ANY)
def test_what_is_printable_can_be_written_and_does_not_act(text: str) -> None:
    shown = _text.printable(text)
    shown.encode("utf-8")
    assert not any(
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in shown if character not in "\n\t"
    )
    assert _text.printable(shown) == shown
    assert _text.on_one_line(_text.on_one_line(text)) == _text.on_one_line(text)
    assert not set(_text.on_one_line(text)) & set("\n\t\r")


@pytest.mark.parametrize(
    ("character", "escape"),
    [
        *(("\x1b", r"\x1b"), ("\x9b", r"\x9b"), ("\0", r"\x00"), ("\r", r"\r"), ("\x7f", r"\x7f"), ("\x85", r"\x85")),
        *(("\ud800", r"\ud800"), ("\udcff", r"\udcff"), ("\u202e", r"\u202e"), ("\u2066", r"\u2066")),
        *(("\u200b", r"\u200b"), ("\ufeff", r"\ufeff"), ("\u2028", r"\u2028"), ("\U000e0041", r"\U000e0041")),
    ],
)
def test_what_acts_unseen_is_shown(character: str, escape: str) -> None:
    assert _text.printable(f"a{character}b") == f"a{escape}b"
    assert _text.on_one_line(f"{character}\n") == rf"{escape}\n"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats(allow_nan=False, allow_infinity=False) | ANY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY, inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_json_comes_back_and_can_be_printed(content: object) -> None:
    text = _text.json_text(content)
    assert _text.printable(text) == text
    assert _text.parse_json(text.encode()) == content
    assert json.loads(text) == content


@given(ANY | st.sampled_from(["x" * 99, "x" * 5000, "é" * 60, "流" * 40 + "/"]))
def test_a_file_name_is_one_part_of_a_path(text: str) -> None:
    name = _text.file_name(text)
    assert PurePosixPath(name).parts == PureWindowsPath(name).parts == (name,)
    assert name not in ("", ".", "..")
    assert not name.startswith((".", "-", " ", "~"))
    assert not set(name) & set('/\\\0:*?"<>|\n')
    assert len(name.encode()) <= _text.LONGEST_NAME
    assert _text.printable(name) == name
    assert _text.file_name(name) == name


def test_a_sentence_that_quotes_a_book_keeps_its_beginning_and_its_remedy() -> None:
    sentence = f"the id {'x' * 2_000_000!r} is too long; leave it out"
    assert len(_text.shortened(sentence)) < 1600
    assert _text.shortened(sentence).startswith("the id 'xxx")
    assert _text.shortened(sentence).endswith("leave it out")
    assert _text.shortened("short") == "short"


def test_large_numbers_keep_their_digits() -> None:
    assert [_text.four_digits(one) for one in (0.00412, 13.206, 82613.4)] == ["0.00412", "13.21", "82,613"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
        ("postgresql://host:5432/db?user=x&password=secret", "postgresql://host:5432/db?password=***&user=***"),
        ("s3://bucket/a@b/log.parquet", "s3://bucket/a@b/log.parquet"),
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("clicks.csv", "clicks.csv"),
    ],
)
def test_secrets_are_not_shown(url: str, shown: str) -> None:
    assert _text.without_secrets(url) == shown


@pytest.mark.parametrize("url", ["x://bob:s3cr@et@h/db", "x://bob:s3cr/et@h/db", "x://bob:s3cr?et@h", "x://bob:1/et@h"])
def test_a_password_that_could_end_elsewhere_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="write @ as %40") as refused:
        _text.without_secrets(url)
    assert "s3cr" not in str(refused.value)


def test_secrets_are_hidden_in_what_drivers_say() -> None:
    url = "postgresql://me:p%40ss%2Bword@host/db?sslpassword=other%20one"
    said = f"no login with {url}, p@ss+word, p%40ss%2Bword, other one and {'other one'!r}"
    hidden = _text.hide_secrets(said, url)
    assert not any(secret in hidden for secret in ("p@ss+word", "p%40ss", "other one", "other%20one"))
    assert "postgresql://me:***@host/db" in hidden
