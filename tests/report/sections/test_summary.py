from __future__ import annotations

from dpaa.report.sections import summary
from tests.report.made import add_run, made_family, made_inputs
from tests.report.reader import Reader

BEFORE = {"ndcg@2": 0.2, "recall@2/niche": 0.0, "arp@2": 4.0, "coverage@2": 0.5}
AFTER = {"ndcg@2": 0.25, "recall@2/niche": 0.1, "arp@2": 3.0, "coverage@2": 1.0}


def test_a_sentence_says_what_changes_against_lightgcn() -> None:
    family = made_family()
    add_run(family, "popular", "most-popular", metrics=AFTER)
    add_run(family, "plain", "lightgcn", metrics=BEFORE)
    add_run(family, "new", metrics=AFTER)
    (line,) = Reader(str(summary.section(made_inputs(family)).content)).named("li")
    assert line.text == (
        "new against plain: accuracy (NDCG) 0.2000 → 0.2500 (+25.0 %); recall of niche items 0.0000 → 0.1000 "
        "(+0.1000); mean popularity of what is recommended 4 → 3 (−25.0 %); items that anybody is shown 50% → 100%."
    )


def test_runs_measured_differently_are_not_set_against_each_other() -> None:
    family = made_family()
    add_run(family, "plain", "lightgcn", metrics=BEFORE)
    add_run(family, "new", metrics=AFTER, overlap="mask")
    assert not summary.section(made_inputs(family)).content.strip()


def test_what_a_run_lacks_is_left_out_and_notes_are_told_without_any_run() -> None:
    family = made_family()
    add_run(family, "plain", "lightgcn", metrics=BEFORE)
    add_run(family, "new", metrics={"arp@2": 3.0, "ndcg@2": None})
    inputs = made_inputs(family)
    inputs.notes.append("the <dataset> is gone")
    lines = [tag.text for tag in Reader(str(summary.section(inputs).content)).named("li")]
    assert lines == [
        "new against plain: mean popularity of what is recommended 4 → 3 (−25.0 %).",
        "the <dataset> is gone",
    ]
