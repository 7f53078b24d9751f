"""What the sections say, of runs and files small enough to work out by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaa.report import _page as documents
from dpaa.report import _runs as runs
from dpaa.report import line, save_figure
from dpaa.report._charts import PALETTE, POINTS, WIDTH, Dot, popularity_line, scatter
from dpaa.report._html import Section, inline_svg
from dpaa.report._inputs import Colours, Comparison, Frontier, gather
from tests.report.made import add_run, made_family, made_inputs, runs_of
from tests.report.reader import Reader

pytest.importorskip("altair")
BEFORE: dict[str, float | None] = {"ndcg@2": 0.2, "recall@2/niche": 0.0, "arp@2": 4.0, "coverage@2": 0.5}
AFTER: dict[str, float | None] = {"ndcg@2": 0.25, "recall@2/niche": 0.1, "arp@2": 3.0, "coverage@2": 1.0}


def read(section: Section) -> Reader:
    return Reader(str(section.content))


def texts(page: Reader, name: str, **attributes: str) -> list[str]:
    return [" ".join(tag.text.split()) for tag in page.named(name, **attributes)]


POINT = {"model": "m", "metrics": {"recall@2/niche": 0.02, "coverage@2": 0.5, "ndcg@2": 0.2}}
TRADE_OFF: dict[str, Any] = {
    "k": 2,
    "users": {"all": 1234, "folds": 5},
    "goals": [{"name": "niche-recall", "metric": "recall@2/niche", "better": "high"}],
    "base": POINT | {"name": "plain"},
    "chosen": POINT | {"name": "turned", "metrics": {"recall@2/niche": 0.07, "coverage@2": 0.4, "ndcg@2": 0.19}},
    "estimates": [{"name": "logged", "power": 0.0}, {"name": "ips 0.5", "power": 0.5}],
    "validation": {"in_words": "validation comes from the log's own exposure"},
    "held_out": {
        "users": 823,
        "folds": 5,
        "base": {"recall@2/niche": 0.02, "recall@2/popular": 0.2, "coverage@2": 0.5, "ndcg@2": 0.2},
        "chosen": {"recall@2/niche": 0.07, "recall@2/popular": 0.18, "coverage@2": 0.4, "ndcg@2": 0.19},
        "better": 0.1,
        "worse": 0.46,
    },
    "headline": "niche-recall 2.0% → 7.0%, popular-item recall 20.0% → 18.0%, NDCG@2 0.2000 → 0.1900",
    "sentences": ["turned instead of plain: it is the best"],
    "points": [],
}


def trade_off(**change: Any) -> Frontier:
    return Frontier.model_validate(TRADE_OFF | change)


def tiles(page: Reader) -> list[tuple[str, str]]:
    """What each says, and whether it is good."""
    boxes = [tag for tag in page.named("div") if "dl" in tag.inside]
    return [(" ".join(tag.text.split()), tag.attributes.get("class", "")) for tag in boxes]


def test_the_verdict_of_a_trade_off_comes_first_and_its_numbers_agree() -> None:
    page = read(runs.summary(made_inputs(made_family(), documents=[trade_off()])))
    assert texts(page, "p", class_="verdict") == [
        "Niche-recall 2.0% → 7.0%, popular-item recall 20.0% → 18.0%, NDCG@2 0.2000 → 0.1900. "
        "turned in place of plain, on 823 validation users, each excluded from the selection."
    ]
    assert tiles(page) == [
        ("niche items found (recall) 2.0% → 7.0%", "better"),
        ("popular items found (recall) 20.0% → 18.0% −10.0%", "worse"),
        ("accuracy (NDCG) 0.2000 → 0.1900 −5.0%", "worse"),
        ("items shown to at least one user 50% → 40% −20.0%", "worse"),
        ("users with a less accurate list; 10% get a more accurate one 46%", "worse"),
    ]
    same = trade_off(chosen=TRADE_OFF["base"], headline="nothing changes: plain stays")
    page = read(runs.summary(made_inputs(documents=[same])))
    assert texts(page, "p", class_="verdict")[0].startswith("Nothing changes: plain stays.")
    assert tiles(page) == []


def test_what_a_re_ranker_does_is_said_where_it_is_named() -> None:
    for name, how in (
        ("m + fa-ir 0.4", "re-ranker fa-ir, strength 0.4: at every"),
        ("m + dial -1", "popularity dial −1: "),
    ):
        page = read(runs.summary(made_inputs(documents=[trade_off(chosen=TRADE_OFF["chosen"] | {"name": name})])))
        assert f"{name} ({how}" in texts(page, "p", class_="verdict")[0]


def test_without_one_it_is_that_of_the_last_run_against_lightgcn() -> None:
    family = made_family()
    add_run(family, "popular", "most-popular", metrics=AFTER)
    add_run(family, "plain", "lightgcn", metrics=BEFORE)
    add_run(family, "new", metrics=AFTER)
    page = read(runs.summary(made_inputs(family)))
    assert texts(page, "p", class_="verdict")[0].startswith("new in place of plain.")
    assert tiles(page) == [
        ("niche items found (recall) 0.0% → 10.0%", "better"),
        ("accuracy (NDCG) 0.2000 → 0.2500 +25.0%", "better"),
        ("mean popularity of recommended items 4 → 3 −25.0%", "better"),
        ("items shown to at least one user 50% → 100% +100.0%", "better"),
    ]


def test_shares_by_decile_add_up_and_items_that_nobody_used_are_in_none(demo_folder: Path) -> None:
    family = made_family()
    run = add_run(family, "new", exposure=[0, 1, 0, 3, 4])
    # rare to popular: c, d, b, a are in deciles 1, 3, 6 and 8; e is in none
    assert family.decile_shares(family.counts) == pytest.approx([1 / 8, 0, 1 / 8, 0, 0, 2 / 8, 0, 4 / 8, 0, 0])
    assert family.decile_shares(run.exposure) == pytest.approx([0, 0, 3 / 8, 0, 0, 1 / 8, 0, 0, 0, 0])
    (family,) = gather(runs_of(demo_folder)).families
    before = family.decile_shares(family.counts)
    assert sum(before) == pytest.approx(1)
    assert before == sorted(before)
    assert sum(family.decile_shares(family.runs[0].exposure)[7:]) > sum(before[7:])
    (figure,) = runs.exposure(made_inputs(family)).figures
    assert texts(Reader(figure.table), "th", scope="row")[0] == runs.LOG


def test_items_move_in_the_last_run_that_changes_lists() -> None:
    family = made_family()
    add_run(family, "plain", "lightgcn", exposure=[4, 2, 1, 1, 0])
    add_run(family, "new", exposure=[2, 2, 2, 1, 1])
    add_run(family, "kept", exposure=[4, 2, 1, 1, 0])
    assert "before = plain, after = new" in runs.items(made_inputs(family)).content


def test_the_table_holds_the_metrics(page: Reader, demo_folder: Path) -> None:
    folders = (*runs_of(demo_folder), demo_folder / "debiased" / "run")
    values = [json.loads((run / "metrics.json").read_text())["metrics"]["ndcg@20"] for run in folders]
    numbers = [found for found in page.named("td") if "data-by" in found.attributes]
    cells = {found.attributes["data-by"]: found for found in reversed(numbers)}  # the first of equal ones
    for value in values:
        assert f"{value:.4f}" in cells[str(value)].text
        marked = "best" in cells[str(value)].attributes["class"].split()
        assert marked == (round(value, 4) == round(max(values), 4))


def test_differences_have_intervals_and_harm_is_named() -> None:
    values = {"baseline": 0.2, "value": 0.1, "delta": -0.1, "interval": [-0.15, -0.05], "p_holm": 0.0001}
    lift = {"entry": "new", "metric": "arp@5", "verdict": "better", "relative": -0.5} | values
    near_zero = lift | {"metric": "recall@5/niche", "relative": None, "verdict": "not shown", "interval": [None, None]}
    harm = {"entry": "new", "metric": "recall@5/popular", "margin": 0.05, "baseline": 0.2, "value": 0.1}
    content = {"baseline": "old", "k": 5, "deltas": [lift, near_zero], "no_harm": [harm | {"verdict": "harm"}]}
    section = documents.comparison(Comparison.model_validate(content), Colours(old=0, new=3))
    (figure,) = section.figures
    colours = [layer["encoding"].get("color", {}).get("scale") for layer in figure.chart.to_dict()["layer"]]
    assert {"domain": ["new"], "range": [PALETTE[3]]} in colours, "that of `new` in the other figures of the page"
    assert "new, arp@5: −50.0% (−75.0% to −25.0%)" in figure.description
    assert "recall@5/niche" not in figure.description, "its baseline is near 0"
    words = " ".join(section.content.striptags().split())
    assert "Popular items lose more than the margin: new, recall@5/popular 0.2000 → 0.1000; a loss of up to 5%" in words
    cells = texts(read(section), "td")
    assert cells[4:8] == ["−50.0%", "−0.1500 to −0.0500", "< 0.001", "better, significant"]
    assert cells[-1] == "not significant"


def test_a_frontier_names_the_chosen_point_and_the_baseline() -> None:
    points = [POINT | {"name": name, "accuracy_change": change, "on_frontier": name != "plain", "plain": True}
              for name, change in (("bad", -0.9), ("plain", 0.0), ("turned", -0.005))]  # fmt: skip
    (figure,) = documents.frontier(trade_off(points=points), Colours()).figures
    assert texts(Reader(figure.table), "th", scope="row") == [
        *("plain (baseline, beaten by another point)", "turned (chosen)", "bad")
    ]
    drawn = {row["tip"] for rows in figure.chart.to_dict()["datasets"].values() for row in rows if "tip" in row}
    assert not any(tip.startswith("bad") for tip in drawn), "loses too much to be a trade-off"
    assert documents.frontier(trade_off(), Colours()).figures == []


pytest.importorskip("altair")


def rows_of(chart: Any, *columns: str) -> list[tuple[Any, ...]]:
    """What is drawn: rows of the longest table that has these columns."""
    tables = [rows for rows in chart.to_dict()["datasets"].values() if rows and set(columns) <= set(rows[0])]
    return [tuple(row[column] for column in columns) for row in max(tables, key=len)]


def test_popularity_falls_from_the_first_item_to_the_last_used_one() -> None:
    counts = np.array([1, 4, 0, 2, 1])
    drawn = popularity_line("all", counts, 0)
    assert (list(drawn.x), list(drawn.y)) == ([1, 2, 3, 4], [4, 2, 1, 1])
    assert list(popularity_line("niche", counts, 0, first=3).x) == [3, 4]
    assert list(popularity_line("nothing", np.zeros(3), 0).x) == []
    many = {str(seed): np.random.default_rng(seed).zipf(1.5, 9_000) - 1 for seed in range(10)}
    rows = rows_of(line([popularity_line(name, each, 0) for name, each in many.items()], "item", "pairs"), "name", "y")
    assert len(rows) <= len(many) * POINTS
    assert {name for name, _ in rows} == set(many)


def test_a_figure_is_two_files(tmp_path: Path) -> None:
    chart = line([popularity_line("a", np.array([3, 2, 1]), 0)], "item", "pairs")
    svg, png = save_figure(chart, tmp_path / "new folder", "figure")
    assert [file.name for file in sorted((tmp_path / "new folder").iterdir())] == [png.name, svg.name]
    assert svg.read_bytes().startswith(b"<svg")
    content = png.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20]) > 2 * WIDTH, "200 pixels per inch"


def test_text_of_a_chart_stays_text_and_is_a_hint_of_its_mark() -> None:
    hostile = "</svg><b onclick=a>&"
    dots = [Dot(hostile, 0, 1.0, 1.0, hostile), Dot("other", 1, 2.0, 2.0, "other")]
    page = Reader(str(inline_svg(scatter(dots, "x", "y"), "one", '"<i>')))
    (svg,) = page.named("svg")
    assert (svg.attributes["aria-label"], svg.attributes["role"]) == ('"<i>', "img")
    assert not page.named("b") + page.named("i")
    assert {tag.attributes["data-tip"] for tag in page.tags if "data-tip" in tag.attributes} == {hostile, "other"}
    assert hostile in svg.text
