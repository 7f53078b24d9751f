"""The frontier on the page: of ours, and of anybody's file."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest

from dpaa.data.dataset import Dataset, read_dataset
from dpaa.debiasing import debias
from dpaa.report.inputs import gather
from dpaa.report.page import write_page
from dpaa.report.sections.frontier import section
from tests.report.reader import Reader

pytest.importorskip("altair")


@pytest.fixture(scope="module")
def trade(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    small_world.write(folder / "data")
    wish: dict[str, Any] = {"methods": ["ease", "item-knn"], "rerank": ["dial"], "goals": ["coverage", "arp"]}
    debias(folder / "trade", read_dataset(folder / "data"), targets=["aplt>=0.5"], **wish)
    return folder / "trade"


def page_of(content: Any, place: Path) -> str:
    (place / "frontier.json").write_text(json.dumps(content))
    write_page([place / "frontier.json"], place / "page.html")
    text = (place / "page.html").read_text(encoding="utf-8")
    Reader(text)  # whole
    return text


def test_the_page_says_what_was_chosen_and_draws_a_figure_per_goal(trade: Path, tmp_path: Path) -> None:
    found = gather([trade])
    (content,) = found.frontiers
    made = section(content)
    assert content.sentences[0] in html.unescape(str(made.content))
    assert len(made.figures) == 2
    assert [run.folder_name for run in found.runs] == ["trade"]
    said = page_of(json.loads((trade / "frontier.json").read_text()), tmp_path)
    assert said.count("(chosen") == 2  # in the table of each figure
    assert "beaten by another point" in said


def test_a_baseline_that_is_chosen_is_both(trade: Path, tmp_path: Path) -> None:
    content = json.loads((trade / "frontier.json").read_text())
    content["chosen"] = content["base"]
    assert "(chosen, baseline" in page_of(content, tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        {"points": None},
        {"points": [1, None, {}, {"name": ["x"], "metrics": {"coverage@20": "much"}}]},
        {"goals": [{"name": "<b>", "metric": {}, "better": 3}]},
        {"goals": []},
        {"sentences": "no list"},
        {"sentences": ["<script>alert(1)</script>", "\u202e\u001b[31m"]},
        {"chosen": None, "base": 7},
        {"k": "many", "users": -1, "estimate": [], "exposure": None, "notes": {"a": 1}},
    ],
    ids=str,
)
def test_damaged_parts_are_left_out_and_strange_ones_are_text(
    damage: dict[str, Any], trade: Path, tmp_path: Path
) -> None:
    content = json.loads((trade / "frontier.json").read_text()) | damage
    text = page_of(content, tmp_path)
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert "\u001b" not in text


def test_a_file_that_says_only_what_it_is(tmp_path: Path) -> None:
    page_of({"kind": "frontier"}, tmp_path)
