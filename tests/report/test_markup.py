from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.report.markup import Markup, join, tag, text
from dpaa.text import printable
from tests.report.reader import Reader

PRINTABLE = st.text().filter(lambda content: printable(content) == content)


def test_tags() -> None:
    assert tag("p", "a ", tag("b", 1), None, ["&", 2.5], class_="x", hidden=True, title=None, data_by="<") == (
        '<p class="x" hidden data-by="&lt;">a <b>1</b>&amp;2.5</p>'
    )
    assert tag("meta", name="viewport") == '<meta name="viewport">'
    assert isinstance(join("<"), Markup)


@given(PRINTABLE)
def test_text_stays_text(content: str) -> None:
    assert html.unescape(text(content)) == content
    page = Reader(tag("p", content, title=content))
    assert [found.name for found in page.tags] == ["p"]
    assert page.tags[0].text == content
    assert page.tags[0].attributes == {"title": content}


@pytest.mark.parametrize("character", ["\0", "\x1b", "\ud800", "\x7f", "\x9b", "\u202e"])
def test_what_no_page_may_hold(character: str) -> None:
    assert text(f"a{character}b") == f"a{ascii(character)[1:-1]}b"
