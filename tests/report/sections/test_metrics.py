from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpaa.evaluation.metrics import explain
from dpaa.report.page import write_page
from dpaa.report.sections.metrics import best_of, measured_alike, place_of, section
from tests.command import dpaa_ok
from tests.report.folders import copy_of, runs_of
from tests.report.made import add_run, made_family, made_inputs
from tests.report.reader import Reader


@pytest.mark.parametrize(
    ("metric", "values", "best"),
    [
        ("recall@20", {"a": 0.1, "b": 0.2}, {"b"}),
        ("arp@20", {"a": 10.0, "b": 20.0}, {"a"}),
        ("popularity_lift@20", {"a": -0.3, "b": 0.2}, {"b"}),
        ("recall@20/niche", {"a": 0.10001, "b": 0.10002, "c": 0.05}, {"a", "b"}),
        ("recall@20", {"a": 0.1, "b": 0.1}, set()),
        ("recall@20", {"a": 0.1}, set()),
        ("unheard-of@20", {"a": 0.1, "b": 0.2}, set()),
    ],
)
def test_best(metric: str, values: dict[str, float], best: set[str]) -> None:
    assert best_of(metric, values) == best


def test_groups_are_named() -> None:
    found = explain("recall@20/niche")
    assert found is not None
    assert "niche items only" in found.words
    assert explain("no-such-thing") is None


def test_the_table_holds_the_metrics(page: Reader, demo_folder: Path) -> None:
    values = {}
    for run in (*runs_of(demo_folder), demo_folder / "trade" / "run"):
        values[run.name] = json.loads((run / "metrics.json").read_text())["metrics"]["ndcg@20"]
    cells = {found.attributes["data-by"]: found for found in page.named("td") if "data-by" in found.attributes}
    best = max(values.values())
    for value in values.values():
        found = cells[str(value)]
        assert f"{value:.4f}" in found.text
        assert ("best" in found.attributes["class"].split()) == (round(value, 4) == round(best, 4))
    assert any("overlap convention “drop”" in found.text for found in page.named("caption"))


def test_runs_measured_differently_do_not_share_a_table(demo_folder: Path, tmp_path: Path) -> None:
    other = copy_of(demo_folder / "runs" / "dpaa", tmp_path / "masked")
    dpaa_ok("evaluate", other, "--overlap", "mask")
    dpaa_ok("report", demo_folder / "runs" / "lightgcn", other, "--out", tmp_path / "page.html")
    captions = [tag.text for tag in Reader((tmp_path / "page.html").read_text()).named("caption")]
    assert sum(text.startswith("Accuracy on") and "“drop”" in text for text in captions) == 1
    assert sum(text.startswith("Accuracy on") and "“mask”" in text for text in captions) == 1


def test_unequal_chances_stand_beside_what_is_compared(demo_folder: Path, auto_run: Path, tmp_path: Path) -> None:
    write_page([demo_folder / "runs" / "lightgcn", auto_run], tmp_path / "page.html")
    page = Reader((tmp_path / "page.html").read_text())
    for chapter in ("summary", "metrics"):
        (found,) = page.named("section", id=chapter)
        assert "Unequal training budgets: lightgcn trained 3 of 3 epochs" in found.text
        assert "at learning rate 0.001; auto trained" in found.text
        assert "at learning rate 0.001 to 0.005; train them alike before comparing." in found.text
    write_page([demo_folder / "runs" / "lightgcn", demo_folder / "runs" / "dpaa"], tmp_path / "alike.html")
    assert "Unequal training budgets" not in (tmp_path / "alike.html").read_text()


def test_one_colour_for_each_method() -> None:
    family = made_family()
    runs = [add_run(family, str(place), method) for place, method in enumerate(("ease", "item-knn", "ease"))]
    assert [place_of(run, runs) for run in runs] == [0, 1, 0]


def test_only_runs_measured_alike_stand_together() -> None:
    family, other = made_family(), made_family("other")
    other.fingerprint = "another"
    add_run(family, "unmeasured")
    add_run(family, "a", metrics={}, overlapping=3)
    add_run(family, "b", metrics={}, overlapping=4, popularity_dial=1.0)
    add_run(family, "re-ranked", metrics={}, rerank="dial,kappa=1.0")
    add_run(family, "c", metrics={}, k=[5])
    add_run(other, "d", metrics={})
    groups = [[run.folder_name for run in runs] for _, runs in measured_alike(made_inputs(family, other))]
    assert groups == [["a", "b", "re-ranked"], ["c"], ["d"]]


def test_a_run_without_a_metric_has_a_dash_and_no_point() -> None:
    family = made_family()
    add_run(family, "a", metrics={"ndcg@2": 0.5, "arp@2": 1234.5})
    add_run(family, "b", "item-knn", metrics={"ndcg@2": 0.25, "arp@2": None})
    chapter = section(made_inputs(family))
    assert not chapter.figures
    cells = [tag.text for tag in Reader(str(chapter.content)).named("td")]
    assert cells[:4] == ["★0.5000 best", "0.2500", "1,234.5", "–"]
