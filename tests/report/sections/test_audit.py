from __future__ import annotations

from pathlib import Path
from typing import Any

from dpaa.auditing import audit
from dpaa.report.lenient import lenient
from dpaa.report.page import audit_page
from dpaa.report.parts import Section
from dpaa.report.records import AuditFile
from dpaa.report.sections.audit import section
from dpaa.report.theme import PAPER
from tests.command import dpaa_ok
from tests.report.reader import Reader


def test_an_audit_alone(demo_folder: Path, tmp_path: Path) -> None:
    recs = tmp_path / "recs.parquet"
    dpaa_ok("recommend", demo_folder / "runs" / "dpaa", "--out", recs)
    found = audit(demo_folder / "data", recs, fail_if=["head_share@20>0.01"])
    audit_page(found, tmp_path / "audit.html")
    page = Reader((tmp_path / "audit.html").read_text())
    (chapter,) = page.named("section")
    for sentence in found.in_words():
        assert sentence in chapter.text
    assert "failed: head_share@20" in chapter.text
    assert {tag.attributes["id"] for tag in page.named("figure")} == {"audit-concentration", "audit-exposure"}


def chapter(**content: Any) -> Section:
    return section("file", lenient(AuditFile, content))


def test_checks_and_numbers_in_words() -> None:
    checks = [
        {"check": "log_gini>0.4", "failed": True, "sentence": "too <much>"},
        {"check": "arp@5>9", "failed": False},
    ]
    found = chapter(
        checks=checks, numbers={"log_users": 1234, "log_gini": 0.5, "odd@5": "x"}, meanings={"log_gini": "how"}
    )
    page = Reader(str(found.content))
    assert [tag.text for tag in page.named("li")] == ["failed: too <much>", "passed: arp@5>9"]
    assert [tag.text for tag in page.named("td")] == ["1,234", "", "0.5000", "how", "–", ""]
    assert (found.title, found.figures) == ("Audit of file", [])


def test_points_that_are_no_shares_are_not_drawn() -> None:
    found = chapter(source="shop", log={"log_gini": 0.25, "lorenz": [[0, 0], [0.5, 0.25], [0.9, 1e300], [7], [1, 1]]})
    (figure,) = found.figures
    assert "Gini coefficient of the log: 0.250." in figure.description
    rows = next(iter(figure.draw(PAPER).to_dict()["datasets"].values()))
    drawn = [(row["x"], row["y"]) for row in rows if row["name"] == "interactions of the log"]
    assert drawn == [(1.0, 1.0), (0.5, 0.75), (0.0, 0.0)]


def test_times_are_drawn_from_two_periods_on() -> None:
    period = {"start": 1.0, "end": 2.0, "log_head_share": 0.5, "log_niche_share": None, "new_share": 0.125}
    assert not chapter(log={"periods": [period]}).figures
    (figure,) = chapter(log={"periods": [period, period | {"start": 3.0, "end": 4.0}]}).figures
    rows = next(iter(figure.draw(PAPER).to_dict()["datasets"].values()))
    assert {row["name"] for row in rows} == {"share of the most popular fifth", "on items new in the period"}
    assert [tag.text for tag in Reader(str(figure.table)).named("td")][2:5] == ["0.5000", "–", "0.1250"]


def test_tastes_have_the_columns_that_anybody_has() -> None:
    tastes = [{"taste": "niche", "users": 3, "mean": 0.2}, {"taste": "diverse", "users": 0}]
    page = Reader(
        str(
            chapter(
                log={"tastes": tastes}, recommendations={"tastes": [{"taste": "niche", "users": 3, "upd@5": 0.5}]}
            ).content
        )
    )
    heads = [tag.text for tag in page.named("th", scope="col")][:4]
    assert heads == ["taste", "users", "popular items in history", "UPD"]
    assert [tag.text for tag in page.named("td")][:6] == ["3", "0.200", "0.500", "0", "–", "–"]
