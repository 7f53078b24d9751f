from __future__ import annotations

import math

import pytest

from dpaa.report.parts import (
    Cell,
    Figure,
    Head,
    absolute,
    change,
    moved_items,
    number,
    share,
    signed,
    suffix,
    table,
)
from tests.report.reader import Reader


@pytest.mark.parametrize(
    ("before", "difference", "shown"),
    [(0.1, 0.02, "+20.0 %"), (0.1, -0.02, "−20.0 %"), (0.0001, 0.0617, "+0.0617"), (0.0, -0.5, "−0.5000"),
     (-0.2, 0.1, "+50.0 %"), (1.0, 1234.5, "+1,234.5")],
)  # fmt: skip
def test_a_change_in_words(before: float, difference: float, shown: str) -> None:
    assert change(before, difference) == shown


def test_numbers_in_words() -> None:
    cells = [number(1234.5, 1), number(-0.5, 2), number(0.25, 1, "+"), number(None), number(math.nan), share(0.125)]
    assert [cell.shown for cell in cells] == ["1,234.5", "−0.50", "+0.2", "–", "–", "12.5 %"]
    assert [cell.key for cell in cells] == [1234.5, -0.5, 0.25, "", "", 0.125]
    assert share(None).shown == share(math.nan).shown == "–"
    assert [absolute(value) for value in (-99.99, 100.0, -1234.56)] == ["−99.9900", "+100.0", "−1,234.6"]
    assert [signed(value) for value in (0.5, -0.001)] == ["+50.0 %", "−0.1 %"]


@pytest.mark.parametrize(
    ("name", "shown"), [("dial-curve-2", "dial-curve-2"), ("A/b <c>", "a-b-c"), ("--é--", "figure")]
)
def test_the_id_of_a_figure_has_letters_digits_and_hyphens(name: str, shown: str) -> None:
    assert Figure(name, "", "", lambda _: None).id == shown


def test_only_the_second_figure_of_a_kind_has_a_number() -> None:
    assert [suffix(place) for place in range(3)] == ["", "-2", "-3"]


def test_a_column_of_numbers_is_one_and_the_first_column_never_is() -> None:
    page = Reader(
        table("Two <runs>", ["k", "value", Head("n", "how many", numeric=False)], [[number(1), number(2), 3]])
    )
    heads = page.named("th", scope="col")
    assert [head.attributes.get("class") for head in heads] == [None, "number", None]
    assert heads[2].attributes["title"] == "how many"
    assert page.named("caption")[0].text == "Two <runs>"
    assert page.named("td")[0].attributes["data-by"] == "2.0"
    assert not page.named("button")  # one row cannot be sorted
    assert len(Reader(table("", ["a"], [["x"], ["y"]])).named("button")) == 1


def test_the_best_of_a_column_is_marked_and_said() -> None:
    cells = Reader(table("", ["run", "recall"], [["a", number(0.1)], ["b", Cell("0.2", 0.2, best=True)]])).named("td")
    assert [cell.text for cell in cells] == ["0.1000", "★0.2 best"]


def test_items_that_moved() -> None:
    page = Reader(moved_items("Winners", [("tea", 7, "niche", 1, 4), ("cake", None, "popular", None, 2)]))
    assert [cell.text for cell in page.named("td")] == ["7", "niche", "1", "4", "+3", "–", "popular", "–", "2", "–"]
    assert [cell.text for cell in page.named("th", scope="row")] == ["tea", "cake"]
    assert moved_items("Nobody", []) == ""
