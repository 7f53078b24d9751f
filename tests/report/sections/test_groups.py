"""Items by a column: shares and accuracy, as `evaluate --group-by` kept them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpaa.report.sections import groups
from dpaa.report.sections.groups import section
from tests.command import dpaa_ok
from tests.report.made import add_run, made_family, made_inputs
from tests.report.reader import Reader

OF_RUN: dict[str, dict[str, dict[str, Any]]] = {
    "one": {
        "genre=Comedy": {"items": 2.0, "history": 0.25, "2": 0.125},
        "genre=a=<b>": {"items": 3.0, "history": 0.75, "2": 0.875},
    },
    "two": {
        "genre=Comedy": {"items": 2.0, "history": 0.25, "2": 0.5},
        "genre=a=<b>": {"items": 3.0, "history": 0.75, "2": None},
    },
}


def with_groups(given: dict[str, Any], column: str | None = "genre") -> Any:
    family = made_family()
    for name, found in given.items():
        metrics = {"ndcg@2/genre=Comedy": 0.25 if name == "one" else 0.5, "recall@2/genre=Comedy": 0.125}
        run = add_run(family, name, metrics=metrics, group_by=column)
        run.evaluation["groups"] = found  # type: ignore[index]
    return made_inputs(family)


def test_shares_and_accuracy_of_every_group() -> None:
    chapter = section(with_groups(OF_RUN))
    assert chapter.title == "Items by genre"
    page = Reader(str(chapter.content))
    assert [tag.text for tag in page.named("th", scope="row")] == 3 * ["Comedy", "a=<b>"]
    cells = [tag.text for tag in page.named("td")]
    assert cells[:8] == ["2", "25.0 %", "12.5 %", "50.0 %", "3", "75.0 %", "87.5 %", "–"]
    assert cells[8:12] == ["0.2500", "★0.5000 best", "–", "–"]
    assert cells[12:] == ["0.1250", "0.1250", "–", "–"]
    captions = [tag.text for tag in page.named("caption")]
    assert captions[0] == "Share of the history and of the lists of 2 by genre on hand"
    assert captions[1].startswith("ndcg@2 ↑ counted on the items with each value of genre")


def test_small_groups_are_left_out_and_counted(monkeypatch: Any) -> None:
    monkeypatch.setattr(groups, "SHOWN_GROUPS", 1)
    content = str(section(with_groups(OF_RUN)).content)
    assert "Comedy" not in content
    assert "The group with the smallest share of the history is left out here" in " ".join(content.split())


def test_nothing_is_said_where_nobody_asked_or_the_file_is_damaged() -> None:
    assert not section(with_groups({"one": {}}, None)).content.strip()
    assert not section(with_groups({"one": {"genre=x": "much"}})).content.strip()
    assert not section(with_groups({"one": [1]})).content.strip()


def test_from_the_command_to_the_page(tmp_path: Path) -> None:
    log, items = tmp_path / "log.csv", tmp_path / "items.csv"
    pairs = [(user, item) for user in range(20) for item in range(12) if (user + item) % 3]
    log.write_text("user,item\n" + "\n".join(f"u{user},i{item}" for user, item in pairs), encoding="utf-8")
    rows = "\n".join(f"i{item},{'Drama' if item % 2 else 'Comedy'}" for item in range(12))
    items.write_text(f"item,genre\n{rows}", encoding="utf-8")
    dpaa_ok("data", "log", log, "--items", items, "--out", tmp_path / "data")
    dpaa_ok("train", tmp_path / "data", "--method", "item-knn", "--out", tmp_path / "run")
    dpaa_ok("evaluate", tmp_path / "run", "--group-by", "genre", "--k", 5)
    dpaa_ok("report", tmp_path / "run", "--out", tmp_path / "page.html")
    kept = json.loads((tmp_path / "run" / "metrics.json").read_text())["groups"]
    (found,) = Reader((tmp_path / "page.html").read_text()).named("section", id="groups")
    for name in ("Comedy", "Drama"):
        assert name in found.text
        assert f"{100 * kept[f'genre={name}']['5']:.1f} %" in found.text
