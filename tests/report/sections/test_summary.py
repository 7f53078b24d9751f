from __future__ import annotations

from dataclasses import replace

import pytest

from dpaa.report.lenient import lenient
from dpaa.report.records import FrontierFile
from dpaa.report.sections import summary
from tests.report.made import add_run, made_family, made_inputs
from tests.report.reader import Reader, Tag

BEFORE = {"ndcg@2": 0.2, "recall@2/niche": 0.0, "arp@2": 4.0, "coverage@2": 0.5}
AFTER = {"ndcg@2": 0.25, "recall@2/niche": 0.1, "arp@2": 3.0, "coverage@2": 1.0}
POINT = {"model": "m", "accuracy": 0.2, "metrics": {"recall@2/niche": 0.02, "coverage@2": 0.5}}
TRADE = {
    "k": 2,
    "users": 1234,
    "goals": [{"name": "niche-recall", "metric": "recall@2/niche", "better": "high"}],
    "base": POINT | {"name": "plain"},
    "chosen": POINT | {"name": "turned", "accuracy": 0.199, "metrics": {"recall@2/niche": 0.07, "coverage@2": 0.4}},
    "headline": "niche items found × 3.5, accuracy −0.8 %",
    "confirmation": {"change": {"estimate": -0.008}},
    "sentences": ["turned instead of plain: it is the best"],
}


def content(inputs: object) -> Reader:
    return Reader(str(summary.section(inputs).content))  # type: ignore[arg-type]


def tiles(page: Reader) -> list[tuple[str, str]]:
    """What each says, and whether it is good."""
    boxes = [tag for tag in page.named("div") if "dl" in tag.inside]
    return [(" ".join(tag.text.split()), tag.attributes.get("class", "")) for tag in boxes]


def verdicts(page: Reader) -> list[Tag]:
    return page.named("p", class_="verdict")


def test_the_verdict_of_a_trade_comes_first_and_its_numbers_agree() -> None:
    inputs = made_inputs(made_family())
    inputs.frontiers.append(lenient(FrontierFile, TRADE))
    page = content(inputs)
    assert verdicts(page)[0].text == (
        "Niche items found × 3.5, accuracy −0.8 %. turned in place of plain, measured on 1,234 validation users."
    )
    assert tiles(page) == [
        ("accuracy, judged by users who had no part in the choice −0.8 %", "worse"),
        ("recall of niche items × 3.5 0.0200 → 0.0700", "better"),
        ("items that anybody is shown −20 % 50 % → 40 %", "worse"),
    ]


def test_a_trade_that_changes_nothing_has_no_numbers() -> None:
    trade = lenient(FrontierFile, TRADE)
    inputs = made_inputs(made_family())
    inputs.frontiers.append(replace(trade, chosen=trade.base, headline="nothing changes: plain stays"))
    page = content(inputs)
    assert verdicts(page)[0].text.startswith("Nothing changes: plain stays.")
    assert tiles(page) == []


def test_a_sentence_says_what_changes_against_lightgcn() -> None:
    family = made_family()
    add_run(family, "popular", "most-popular", metrics=AFTER)
    add_run(family, "plain", "lightgcn", metrics=BEFORE)
    add_run(family, "new", metrics=AFTER)
    page = content(made_inputs(family))
    (line,) = page.named("li")
    assert line.text == (
        "new against plain: accuracy (NDCG) 0.2000 → 0.2500 (+25.0 %); recall of niche items 0.0000 → 0.1000 "
        "(+0.1000); mean popularity of what is recommended 4 → 3 (−25.0 %); items that anybody is shown 50 % → 100 %."
    )
    assert verdicts(page)[0].text == "new in place of plain: niche items found 0 → 0.1, accuracy +25 %."
    assert tiles(page)[2] == ("mean popularity of what is recommended −25.0 % 4 → 3", "better")
    assert "dpaa compare" in page.named("p")[-1].text


def test_runs_measured_differently_are_not_set_against_each_other() -> None:
    family = made_family()
    add_run(family, "plain", "lightgcn", metrics=BEFORE)
    add_run(family, "new", metrics=AFTER, overlap="mask")
    page = content(made_inputs(family))
    assert not page.named("li")
    assert verdicts(page)[0].text.startswith("The top fifth of the items has ")


def test_what_a_run_lacks_is_left_out_and_notes_are_told_without_any_run() -> None:
    family = made_family()
    add_run(family, "plain", "lightgcn", metrics=BEFORE)
    add_run(family, "new", metrics={"arp@2": 3.0, "ndcg@2": None})
    inputs = made_inputs(family)
    inputs.notes.append("the <dataset> is gone")
    lines = [tag.text for tag in content(inputs).named("li")]
    assert lines == [
        "new against plain: mean popularity of what is recommended 4 → 3 (−25.0 %).",
        "the <dataset> is gone",
    ]


@pytest.mark.parametrize(("better", "told"), [("high", "better"), ("low", "worse"), (None, "")])
def test_better_by_the_direction_of_the_metric(better: str | None, told: str) -> None:
    tile = summary._tile("what", 1.0, 2.0, ".1f", better)
    assert {True: "better", False: "worse", None: ""}[tile.better] == told
