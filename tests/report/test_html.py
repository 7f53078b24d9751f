"""Text stays text, tables sort and mark, numbers are written as people read them."""

from __future__ import annotations

import math
import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from dpaa._text import printable
from dpaa.report._html import ENVIRONMENT, LONGEST_ID, Cell, number, render, shown_item, signed, table, with_code
from tests.report.reader import Reader

PRINTABLE = st.text().filter(lambda content: printable(content) == content)


@given(PRINTABLE)
def test_text_stays_text(content: str) -> None:
    made = ENVIRONMENT.from_string('<p title="{{ content }}">{{ content }}</p>').render(content=content)
    (found,) = Reader(made).tags
    assert (found.name, found.text, found.attributes) == ("p", content, {"title": content})


@pytest.mark.parametrize("character", ["\0", "\x1b", "\ud800", "\u202e"])
def test_what_no_page_may_hold(character: str) -> None:
    expected = f"a{ascii(character)[1:-1]}b"
    assert ENVIRONMENT.from_string("{{ content }}").render(content=f"a{character}b") == expected
    assert with_code(f"a{character}b") == expected


def test_no_template_lets_text_through() -> None:
    """Autoescape is on, and nothing switches it off; what is not given is an error and not empty."""
    assert ENVIRONMENT.autoescape is True
    for file in resources.files("dpaa.report").joinpath("templates").iterdir():
        assert not re.search(r"\|\s*safe|autoescape|Markup", file.read_text(encoding="utf-8")), file.name
    with pytest.raises(UndefinedError):
        render("table.html", rows=[])


def test_an_item_has_its_title_and_a_long_id_is_cut() -> None:
    assert [tag.text for tag in Reader(shown_item("<a>", "Tea")).tags] == ["Tea", "<a>"]
    (found,) = Reader(shown_item("x" * 5000)).tags
    assert found.text == "x" * LONGEST_ID + "…"
    assert found.attributes["title"] == "x" * 1000


def test_numbers_in_words() -> None:
    cells = [number(1234.5, ",.1f"), number(-0.5, ".2f"), number(None), number(math.nan), number(0.125, ".1%")]
    assert [cell.shown for cell in cells] == ["1,234.5", "−0.50", "–", "–", "12.5%"]
    assert [cell.by for cell in cells] == [1234.5, -0.5, "", "", 0.125]
    assert signed(-0.001) == "−0.1%"


def test_a_column_of_numbers_is_one_and_the_best_of_it_is_marked() -> None:
    page = Reader(table("Two <runs>", ["k", "value", ("n", "how many")], [[number(1), Cell("0.2", 0.2, best=True), 3]]))
    columns = page.named("th", scope="col")
    assert [head.attributes.get("class") for head in columns] == [None, "number", None]
    assert columns[2].attributes["title"] == "how many"
    assert page.named("caption")[0].text == "Two <runs>"
    assert page.named("td")[0].attributes["data-by"] == "0.2"
    assert page.named("td")[0].text == "★0.2 best"
    assert not page.named("button")  # one row cannot be sorted
    assert len(Reader(table("", ["a"], [["x"], ["y"]])).named("button")) == 1
    assert table("", ["a"], []) == ""
