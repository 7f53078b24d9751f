"""Text stays text, whatever a template does with it."""

from __future__ import annotations

import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from dpaa._text import printable
from dpaa.report._html import ENVIRONMENT, render
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
