"""Text stays text, tables sort and mark, numbers are written as people read them."""

from __future__ import annotations

import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from dpaa._text import printable
from dpaa.report._html import ENVIRONMENT, Cell, number, render, table
from tests.report.reader import Reader

PRINTABLE = st.text().filter(lambda content: printable(content) == content)


@given(PRINTABLE)
def test_text_stays_text(content: str) -> None:
    made = ENVIRONMENT.from_string('<p title="{{ content }}">{{ content }}</p>').render(content=content)
    (found,) = Reader(made).tags
    assert (found.name, found.text, found.attributes) == ("p", content, {"title": content})


def test_no_template_lets_text_through() -> None:
    """Autoescape is on, and nothing switches it off; what is not given is an error and not empty."""
    assert ENVIRONMENT.autoescape is True
    for file in resources.files("dpaa.report").joinpath("templates").iterdir():
        assert not re.search(r"\|\s*safe|autoescape|Markup", file.read_text(encoding="utf-8")), file.name
    with pytest.raises(UndefinedError):
        render("table.html", rows=[])


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
