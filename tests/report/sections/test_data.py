from __future__ import annotations

import pytest

from dpaa.report.sections import data
from tests.report.made import made_family, made_inputs
from tests.report.reader import Reader

pytest.importorskip("altair")


def test_a_long_tail_in_numbers() -> None:
    found = data.section(made_inputs(made_family()))
    tail, concentrated = found.figures
    assert "3 popular items have 80 % of the interactions, 2 niche items the rest." in tail.description
    assert concentrated.description.endswith("The top fifth of the items has 50 %.")
    page = Reader(str(found.content))
    tiles = dict(zip((tag.text for tag in page.named("dt")), (tag.text for tag in page.named("dd")), strict=True))
    assert tiles == {
        "users": "4",
        "items": "5",
        "training interactions": "8",
        "of them go to the top fifth of the items": "50 %",
        "of the items (“popular”) have 80 % of them": "60 %",
        "items with at most one interaction": "3",
    }


def test_two_datasets_are_told_apart() -> None:
    found = data.section(made_inputs(made_family("one"), made_family("<two>")))
    names = ["long-tail", "concentration", "long-tail-2", "concentration-2"]
    assert [figure.name for figure in found.figures] == names
    assert found.figures[2].title == "The long tail of <two>"
    assert "Dataset <two>" in [tag.text for tag in Reader(str(found.content)).named("h3")]


def test_without_a_dataset_there_is_no_chapter() -> None:
    assert not data.section(made_inputs()).content.strip()
