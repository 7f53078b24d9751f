from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest

from dpaa.report.svg import _clean, inline_svg
from tests.report.reader import Reader

pytest.importorskip("altair")
HEAD = '<svg xmlns="http://www.w3.org/2000/svg">'


def cleaned(content: str, name: str = "fig") -> str:
    root = ElementTree.fromstring(f"{HEAD}{content}</svg>")
    ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
    _clean(root, name)
    return ElementTree.tostring(root, encoding="unicode").removeprefix(HEAD).removesuffix("</svg>")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<script>alert(1)</script><g />", "<g />"),
        ('<image href="http://x" /><a href="x"><path /></a><foreignObject /><g />', "<g />"),
        ('<rect fill="white" /><rect fill="red" />', '<rect fill="red" />'),
        ('<path class="background" /><path class="background" fill="red" />', '<path fill="red" />'),
        ('<path d="" /><path display="none" /><path d="M1,2" />', '<path d="M1,2" />'),
        ('<path d="M1.23456,2.5" />', '<path d="M1.23,2.5" />'),
        ('<g id="a" clip-path="url(#b)" />', '<g id="fig-a" clip-path="url(#fig-b)" />'),
        ('<path aria-label="0.5" aria-roledescription="point" style="x" />', '<path data-tip="0.5" />'),
        ('<g aria-label="X-axis" aria-roledescription="axis" role="x" />', "<g />"),
    ],
)
def test_what_draws_is_kept(before: str, after: str) -> None:
    assert cleaned(before) == after


def chart_of(name: str) -> Any:
    import altair as alt

    table = pl.DataFrame({"x": [1.0, 2.0], "name": [name, "other"]})
    return alt.Chart(table).mark_point(clip=True).encode(x="x:Q", color="name:N", description="name:N")


def test_text_of_a_chart_stays_text_and_is_a_hint_of_its_mark() -> None:
    hostile = "</svg><b onclick=a>&"
    page = Reader(str(inline_svg(chart_of(hostile), "one", '"<i>')))
    (svg,) = page.named("svg")
    assert svg.attributes["aria-label"] == '"<i>'
    assert svg.attributes["role"] == "img"
    assert not page.named("b") + page.named("i")
    assert {found.attributes["data-tip"] for found in page.tags if "data-tip" in found.attributes} == {hostile, "other"}
    assert hostile in svg.text


def test_two_charts_of_a_page_share_no_id() -> None:
    ids = []
    for name in ("one", "two"):
        page = Reader(inline_svg(chart_of("a"), name, "what it shows"))
        found = [tag.attributes["id"] for tag in page.tags if "id" in tag.attributes]
        used = [value for tag in page.tags for value in tag.attributes.values() if value.startswith("url(#")]
        assert found
        assert {value[5:-1] for value in used} <= set(found)
        ids.append(set(found))
    assert not ids[0] & ids[1]


def test_the_size_is_that_of_the_chart() -> None:
    chart = chart_of("a").encode(color="x:Q").properties(width=200, height=100, padding=0)
    (svg,) = Reader(inline_svg(chart, "x", "what it shows", width="50%")).named("svg")
    wide, high = map(float, svg.attributes["viewbox"].split()[2:])
    assert (wide, high) > (200, 100)
    assert svg.attributes["width"] == "50%"  # what is given beside comes last
    assert float(svg.attributes["height"]) == high
