from __future__ import annotations

import html as reference
import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import Markup

from dpaa._text import printable
from dpaa.report.rendering import ENVIRONMENT, LONGEST_ID, html, render, shown_id, with_code
from tests.report.reader import Reader

PRINTABLE = st.text().filter(lambda content: printable(content) == content)


def test_values_in_a_pattern() -> None:
    assert html("<p>{}{}{}{}</p>", "a ", html("<b>{}</b>", 1), None, '<&"') == "<p>a <b>1</b>&lt;&amp;&#34;</p>"
    assert isinstance(html("{}", "<"), Markup)


@given(PRINTABLE)
def test_text_stays_text(content: str) -> None:
    assert reference.unescape(html("{}", content)) == content
    template = ENVIRONMENT.from_string('<p title="{{ content }}">{{ content }}</p>').render(content=content)
    for made in (html('<p title="{}">{}</p>', content, content), template):
        page = Reader(made)
        assert [found.name for found in page.tags] == ["p"]
        assert page.tags[0].text == content
        assert page.tags[0].attributes == {"title": content}


@pytest.mark.parametrize("character", ["\0", "\x1b", "\ud800", "\x7f", "\x9b", "\u202e"])
def test_what_no_page_may_hold(character: str) -> None:
    expected = f"a{ascii(character)[1:-1]}b"
    assert html("{}", f"a{character}b") == expected
    assert ENVIRONMENT.from_string("{{ content }}").render(content=f"a{character}b") == expected


def test_no_template_lets_text_through() -> None:
    """Autoescape is on, and nothing switches it off; what is not given is an error, not an empty place."""
    assert ENVIRONMENT.autoescape is True
    folder = resources.files("dpaa.report").joinpath("templates")
    for file in folder.iterdir():
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
