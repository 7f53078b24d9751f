from __future__ import annotations

import pytest

from dpaa.report.sections import trace
from dpaa.report.theme import PAPER, WIDE
from dpaa.trace.direction import Direction
from dpaa.trace.run import Trace
from dpaa.trace.tracer import LayerWeights
from tests.report.made import add_run, made_family, made_inputs
from tests.report.reader import Reader

pytest.importorskip("altair")


def traced(*layers: list[float | None]) -> Trace:
    weights = [LayerWeights(place, relative, None, relative) for place, relative in enumerate(layers)]
    nowhere = Direction(0.0, 0.0, 0.0, ())
    return Trace("new", "dpaa", "the premise <holds>", [], [], [], weights, [], [], nowhere, None, [], [])


def test_a_heat_map_says_where_messages_are_loud() -> None:
    family = made_family()
    for name, found in (("plain", None), ("new", traced([1.5, None, *[1.0] * 7, 0.5], [1.0] * 10))):
        vars(add_run(family, name))["trace"] = found
    chapter = trace.section(made_inputs(family))
    (figure,) = chapter.figures
    assert figure.title == "new: how loud messages are"
    assert figure.description.endswith("In the first layer from 1.50 (rarest) to 0.50 (most popular).")
    page = Reader(str(figure.table))
    assert [tag.text for tag in page.named("th", scope="row")] == ["0 → 1", "1 → 2"]
    assert [tag.text for tag in page.named("td")] == ["1.500", "–", *["1.000"] * 7, "0.500", *["1.000"] * 10]
    assert "the premise &lt;holds&gt;" in chapter.content
    titles = ["Message weight relative to LightGCN's" in str(figure.draw(theme).to_dict()) for theme in (PAPER, WIDE)]
    assert titles == [True, False]  # the page has one of its own


def test_a_layer_without_any_weight_has_no_ends() -> None:
    family = made_family()
    vars(add_run(family, "new"))["trace"] = traced([None] * 10, [2.0] * 10)
    (figure,) = trace.section(made_inputs(family)).figures
    assert figure.description.endswith("popularity tenth of the item.")


def test_methods_that_pass_no_messages_have_no_trace() -> None:
    family = made_family()
    add_run(family, "ease")
    assert not trace.section(made_inputs(family)).content.strip()
