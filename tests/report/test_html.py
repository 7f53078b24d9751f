"""Text stays text, tables sort and mark, numbers are written as people read them."""

from __future__ import annotations

import html as reference
import math
import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import Markup

from dpaa._text import printable
from dpaa.report import Cell, Figure, Head, html, render, signed, table, with_code
from dpaa.report._html import ENVIRONMENT, LONGEST_ID, absolute, change, moved_items, number, shown_id
from tests.report.reader import Reader

PRINTABLE = st.text().filter(lambda content: printable(content) == content)


@given(PRINTABLE)
def test_text_stays_text(content: str) -> None:
    assert reference.unescape(html("{}", content)) == content
    template = ENVIRONMENT.from_string('<p title="{{ content }}">{{ content }}</p>').render(content=content)
    for made in (html('<p title="{}">{}</p>', content, content), template):
        (found,) = Reader(made).tags
        assert (found.name, found.text, found.attributes) == ("p", content, {"title": content})


@pytest.mark.parametrize("character", ["\0", "\x1b", "\ud800", "\u202e"])
def test_what_no_page_may_hold(character: str) -> None:
    expected = f"a{ascii(character)[1:-1]}b"
    assert html("{}", f"a{character}b") == expected
    assert ENVIRONMENT.from_string("{{ content }}").render(content=f"a{character}b") == expected


def test_no_template_lets_text_through() -> None:
    """Autoescape is on, and nothing switches it off; what is not given is an error and not empty."""
    assert ENVIRONMENT.autoescape is True
    for file in resources.files("dpaa.report").joinpath("templates").iterdir():
        assert not re.search(r"\|\s*safe|autoescape|Markup", file.read_text(encoding="utf-8")), file.name
    with pytest.raises(UndefinedError):
        render("table.html", rows=[])


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("run `dpaa <x>`, then", "run <code>dpaa &lt;x&gt;</code>, then"),
        ("one ` alone <b>", "one ` alone &lt;b&gt;"),
        (Markup("<b>`a`</b>"), "<b>`a`</b>"),
    ],
)
def test_commands_in_a_sentence_are_code(words: str, shown: str) -> None:
    assert with_code(words) == shown


def test_a_long_id_is_cut() -> None:
    assert shown_id("<a>") == '<span class="id">&lt;a&gt;</span>'
    (found,) = Reader(shown_id("x" * 5000)).tags
    assert found.text == "x" * LONGEST_ID + "…"
    assert found.attributes["title"] == "x" * 1000


@pytest.mark.parametrize(
    ("before", "difference", "shown"),
    [(0.1, -0.02, "−20.0%"), (0.0001, 0.0617, "+0.0617"), (0.0, -0.5, "−0.5000"), (-0.2, 0.1, "+50.0%")],
)
def test_a_change_in_words(before: float, difference: float, shown: str) -> None:
    assert change(before, difference) == shown


def test_numbers_in_words() -> None:
    cells = [number(1234.5, ",.1f"), number(-0.5, ".2f"), number(None), number(math.nan), number(0.125, ".1%")]
    assert [cell.shown for cell in cells] == ["1,234.5", "−0.50", "–", "–", "12.5%"]
    assert [cell.key for cell in cells] == [1234.5, -0.5, "", "", 0.125]
    assert [absolute(value) for value in (-99.99, -1234.56)] == ["−99.9900", "−1,234.6"]
    assert signed(-0.001) == "−0.1%"
    assert Figure("A/b <c>", "", "", lambda _: None).id == "a-b-c"


def test_a_column_of_numbers_is_one_and_the_best_of_it_is_marked() -> None:
    heads = ["k", "value", Head("n", "how many", numeric=False)]
    page = Reader(table("Two <runs>", heads, [[number(1), Cell("0.2", 0.2, best=True), 3]]))
    columns = page.named("th", scope="col")
    assert [head.attributes.get("class") for head in columns] == [None, "number", None]
    assert columns[2].attributes["title"] == "how many"
    assert page.named("caption")[0].text == "Two <runs>"
    assert page.named("td")[0].attributes["data-by"] == "0.2"
    assert page.named("td")[0].text == "★0.2 best"
    assert not page.named("button")  # one row cannot be sorted
    assert len(Reader(table("", ["a"], [["x"], ["y"]])).named("button")) == 1


def test_items_that_moved() -> None:
    page = Reader(moved_items("Winners", [("tea", 7, "niche", 1, 4), ("cake", None, "popular", math.nan, 2)]))
    assert [cell.text for cell in page.named("td")] == ["7", "niche", "1", "4", "+3", "–", "popular", "–", "2", "–"]
    assert moved_items("Nobody", []) == ""
