"""What the sections say, of runs and files small enough to work out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaa.auditing import audit
from dpaa.ranking import Dial
from dpaa.report import PAPER, WIDE, Section, audit_page
from dpaa.report import _background as background
from dpaa.report import _documents as documents
from dpaa.report import _overview as overview
from dpaa.report import _runs as runs
from dpaa.report._charts import POINTS
from dpaa.report._inputs import Inputs, gather
from dpaa.report._partial import Partial
from dpaa.trace import Trace
from dpaa.trace._arithmetic import Direction, LayerWeights
from tests.command import dpaa_ok
from tests.report.folders import copy_of, runs_of
from tests.report.made import add_run, made_family, made_inputs
from tests.report.reader import Reader

pytest.importorskip("altair")
BEFORE = {"ndcg@2": 0.2, "recall@2/niche": 0.0, "arp@2": 4.0, "coverage@2": 0.5}
AFTER = {"ndcg@2": 0.25, "recall@2/niche": 0.1, "arp@2": 3.0, "coverage@2": 1.0}


def read(section: Section) -> Reader:
    return Reader(str(section.content))


def texts(page: Reader, name: str, **attributes: str) -> list[str]:
    return [" ".join(tag.text.split()) for tag in page.named(name, **attributes)]


# ---------------------------------------------------------------------- summary and data

POINT = {"model": "m", "accuracy": 0.2, "metrics": {"recall@2/niche": 0.02, "coverage@2": 0.5}}
TRADE_OFF = {
    "k": 2,
    "users": 1234,
    "goals": [{"name": "niche-recall", "metric": "recall@2/niche", "better": "high"}],
    "base": POINT | {"name": "plain"},
    "chosen": POINT | {"name": "turned", "accuracy": 0.199, "metrics": {"recall@2/niche": 0.07, "coverage@2": 0.4}},
    "headline": "niche items found × 3.5, accuracy −0.8%",
    "confirmation": {"change": {"estimate": -0.008}},
    "sentences": ["turned instead of plain: it is the best"],
}


def tiles(page: Reader) -> list[tuple[str, str]]:
    """What each says, and whether it is good."""
    boxes = [tag for tag in page.named("div") if "dl" in tag.inside]
    return [(" ".join(tag.text.split()), tag.attributes.get("class", "")) for tag in boxes]


def test_the_verdict_of_a_trade_off_comes_first_and_its_numbers_agree() -> None:
    page = read(overview.summary(Inputs([made_family()], frontiers=[Partial(TRADE_OFF)])))
    assert texts(page, "p", class_="verdict")[0] == (
        "Niche items found × 3.5, accuracy −0.8%. turned in place of plain, measured on 1,234 validation users."
    )
    assert [words for words, _ in tiles(page)] == [
        "accuracy, measured on held-out users −0.8%",
        "recall of niche items × 3.5 0.0200 → 0.0700",
        "items that anybody is shown −20 % 50% → 40%",
    ]
    assert [good for _, good in tiles(page)] == ["worse", "better", "worse"]
    same = TRADE_OFF | {"chosen": TRADE_OFF["base"], "headline": "nothing changes: plain stays"}
    page = read(overview.summary(Inputs(frontiers=[Partial(same)])))
    assert texts(page, "p", class_="verdict")[0].startswith("Nothing changes: plain stays.")
    assert tiles(page) == []


def test_a_sentence_says_what_changes_against_lightgcn() -> None:
    family = made_family()
    add_run(family, "popular", "most-popular", metrics=AFTER)
    add_run(family, "plain", "lightgcn", metrics=BEFORE)
    add_run(family, "new", metrics=AFTER)
    page = read(overview.summary(made_inputs(family)))
    assert texts(page, "li") == [
        "new against plain: accuracy (NDCG) 0.2000 → 0.2500 (+25.0%); recall of niche items 0.0000 → 0.1000 "
        "(+0.1000); mean popularity of what is recommended 4 → 3 (−25.0%); items that anybody is shown 50% → 100%."
    ]
    assert texts(page, "p", class_="verdict")[0].startswith(
        "new in place of plain: niche items found 0 → 0.1, accuracy"
    )
    assert tiles(page)[2] == ("mean popularity of what is recommended −25.0% 4 → 3", "better")
    assert "dpaa compare" in page.named("p")[-1].text


def test_runs_measured_differently_are_not_compared_and_notes_are_shown() -> None:
    family = made_family()
    add_run(family, "plain", "lightgcn", metrics=BEFORE)
    add_run(family, "new", metrics=AFTER, overlap="mask")
    page = read(overview.summary(Inputs([family], notes=["the <dataset> is gone"])))
    assert texts(page, "li") == ["the <dataset> is gone"]
    assert texts(page, "p", class_="verdict")[0].startswith("The top fifth of the items has 50%")


def test_a_long_tail_in_numbers() -> None:
    section = overview.data(made_inputs(made_family("one"), made_family("<two>")))
    tail, concentrated, second, _ = section.figures
    assert "3 popular items have 80% of the interactions, 2 niche items the rest." in tail.description
    assert concentrated.description.endswith("The top fifth of the items has 50%.")
    assert (second.name, second.title) == ("long-tail-2", "The long tail of <two>")
    page = read(section)
    assert texts(page, "dd")[:6] == ["4", "5", "8", "50%", "60%", "3"]
    assert "Dataset <two>" in texts(page, "h3")
    assert not overview.data(made_inputs()).content.strip()


# ---------------------------------------------------------------------- exposure, metrics, groups


def test_shares_by_decile_add_up_and_items_that_nobody_used_are_in_none(demo_folder: Path) -> None:
    family = made_family()
    run = add_run(family, "new", lists=["ed", "ed", "ed", "eb"])
    # rare to popular: c, d, b, a are in deciles 1, 3, 6 and 8; e is in none
    assert runs.decile_shares(family, family.counts) == pytest.approx([1 / 8, 0, 1 / 8, 0, 0, 2 / 8, 0, 4 / 8, 0, 0])
    assert runs.decile_shares(family, run.exposure) == pytest.approx([0, 0, 3 / 8, 0, 0, 1 / 8, 0, 0, 0, 0])
    (family,) = gather(runs_of(demo_folder)).families
    before = runs.decile_shares(family, family.counts)
    assert sum(before) == pytest.approx(1)
    assert before == sorted(before)
    assert sum(runs.decile_shares(family, family.runs[0].exposure)[7:]) > sum(before[7:])
    (figure,) = runs.exposure(made_inputs(family)).figures
    assert texts(Reader(str(figure.table)), "th", scope="row")[0] == runs.LOG


@pytest.mark.parametrize(
    ("metric", "values", "best"),
    [
        ("recall@20", {"a": 0.1, "b": 0.2}, {"b"}),
        ("arp@20", {"a": 10.0, "b": 20.0}, {"a"}),
        ("popularity_lift@20", {"a": -0.3, "b": 0.2}, {"b"}),
        ("recall@20/niche", {"a": 0.10001, "b": 0.10002, "c": 0.05}, {"a", "b"}),
        ("recall@20", {"a": 0.1, "b": 0.1}, set()),
        ("unheard-of@20", {"a": 0.1, "b": 0.2}, set()),
    ],
)
def test_best(metric: str, values: dict[str, float], best: set[str]) -> None:
    assert runs.best_of(metric, values) == best


def test_the_table_holds_the_metrics(page: Reader, demo_folder: Path) -> None:
    folders = (*runs_of(demo_folder), demo_folder / "trade" / "run")
    values = [json.loads((run / "metrics.json").read_text())["metrics"]["ndcg@20"] for run in folders]
    cells = {found.attributes["data-by"]: found for found in page.named("td") if "data-by" in found.attributes}
    for value in values:
        assert f"{value:.4f}" in cells[str(value)].text
        marked = "best" in cells[str(value)].attributes["class"].split()
        assert marked == (round(value, 4) == round(max(values), 4))


def test_only_runs_measured_alike_stand_in_one_table() -> None:
    family, other = made_family(), made_family("other")
    other.fingerprint = "another"
    add_run(family, "unmeasured")
    add_run(family, "a", metrics={"ndcg@2": 0.5, "arp@2": 1234.5}, overlapping=3)
    add_run(family, "b", "item-knn", metrics={"ndcg@2": 0.25, "arp@2": None}, overlapping=4, rerank="dial,kappa=1.0")
    add_run(family, "c", metrics={}, k=[5])
    add_run(other, "d", metrics={})
    inputs = made_inputs(family, other)
    assert [[run.name for run in alike] for alike in runs.measured_alike(inputs)] == [["a", "b"], ["c"], ["d"]]
    section = runs.metrics(inputs)
    assert not section.figures, "one of two runs has no point"
    assert texts(read(section), "td")[:4] == ["★0.5000 best", "0.2500", "1,234.5", "–"]
    assert [runs.colour_index(run, family.runs) for run in family.runs] == [0, 0, 1, 0], "one per method"


def test_unequal_budgets_stand_beside_what_is_compared() -> None:
    family = made_family()
    for name, epochs in (("plain", 3), ("long", 30)):
        manifest = {"training": {"epochs": epochs, "best_epoch": epochs, "best_valid_recall@20": 0.1}}
        run = add_run(family, name, "lightgcn", metrics=BEFORE, manifest=manifest)
        run.model.method.epochs = epochs  # type: ignore[attr-defined]
    assert "Unequal training budgets" in read(runs.metrics(made_inputs(family))).named("div", class_="notes")[0].text
    assert not any("Unequal" in line for line in runs.cautions(family.runs[:1]))


GROUPS: dict[str, dict[str, dict[str, Any]]] = {
    "one": {
        "genre=Comedy": {"items": 2.0, "history": 0.25, "2": 0.125},
        "genre=a=<b>": {"items": 3.0, "history": 0.75, "2": 0.875},
    },
    "two": {
        "genre=Comedy": {"items": 2.0, "history": 0.25, "2": 0.5},
        "genre=a=<b>": {"items": 3.0, "history": 0.75, "2": None},
    },
}


def with_groups(given: dict[str, Any], column: str | None = "genre") -> Section:
    family = made_family()
    for name, groups in given.items():
        metrics = {"ndcg@2/genre=Comedy": 0.25 if name == "one" else 0.5, "recall@2/genre=Comedy": 0.125}
        add_run(family, name, metrics=metrics, group_by=column, groups=groups)
    return runs.groups(made_inputs(family))


def test_shares_and_accuracy_of_every_group(monkeypatch: pytest.MonkeyPatch) -> None:
    section = with_groups(GROUPS)
    assert section.title == "Items by genre"
    page = read(section)
    assert texts(page, "th", scope="row") == 3 * ["Comedy", "a=<b>"]
    cells = texts(page, "td")
    assert cells[:8] == ["2", "25.0%", "12.5%", "50.0%", "3", "75.0%", "87.5%", "–"]
    assert cells[8:] == ["0.2500", "★0.5000 best", "–", "–", "0.1250", "0.1250", "–", "–"]
    monkeypatch.setattr(runs, "MOST_GROUPS", 1)
    content = with_groups(GROUPS).content
    assert "Comedy" not in content
    assert "The group with the smallest share of the history is left out here" in " ".join(content.split())
    assert not with_groups({"one": {"genre=x": "much"}}).content.strip()
    assert not with_groups({"one": [1]}, None).content.strip()


# ---------------------------------------------------------------------- items and users


def test_winners_and_losers_against_the_log_and_against_another_run() -> None:
    family = made_family()
    add_run(family, "plain", lists=["cd", "bd", "cd", "bc"])
    add_run(family, "new", "item-knn", lists=["ce", "bd", "ce", "bc"])
    page = read(runs.items(made_inputs(family)))
    assert texts(page, "h3") == ["plain against the log", "new against plain"]
    cells = [tag.text for tag in page.tags if tag.name in ("th", "td") and "tbody" in tag.inside]
    assert [cells[start : start + 6] for start in range(0, len(cells), 6)] == [
        ["c", "1", "popular", "1", "3", "+2"],
        ["d", "1", "niche", "1", "3", "+2"],
        ["a", "4", "popular", "4", "0", "−4"],
        ["e", "0", "niche", "0", "2", "+2"],
        ["d", "1", "niche", "3", "1", "−2"],
    ]
    assert "lists of 2 of all 4 users; before = plain, after = new" in texts(page, "caption")[-1]
    add_run(family, "popular", "most-popular")
    assert "popular against" not in runs.items(made_inputs(family)).content


def test_users_who_gain_and_lose_are_shown_with_their_hits() -> None:
    family = made_family()
    add_run(family, "plain", lists=["ed", "bd", "ce", "bc"])
    run = add_run(family, "new", "item-knn", lists=["cd", "de", "ce", "be"])
    assert run.hits.tolist() == [[True, False], [False, False], [False, False], [False, True]]
    page = read(runs.users(made_inputs(family)))
    assert texts(page, "p", class_="why") == [
        "gains most test items from plain to new",
        "loses most test items from plain to new",
        "taken from the middle, whatever happens there",
    ]
    assert texts(page, "h4")[:3] == ["history: 2 of 2 items", "plain: 0 ✓ in 2", "new: 1 ✓ in 2"]
    assert texts(page, "li")[:6] == ["a 4", "b 2", "e 0 niche", "d 1 niche", "c 1 ✓ liked in the test", "d 1 niche"]
    listed = runs._listed(family, np.array([0] * 12 + [4, -1]), [False] * 11 + [True, False, False])
    assert [item["rank"] for item in listed] == [*range(1, runs.SHOWN_ITEMS + 1), 12]
    del family.runs[0]
    assert set(texts(read(runs.users(made_inputs(family))), "p", class_="why")) == {"taken from the middle"}


# ---------------------------------------------------------------------- files


def delta(metric: str, before: float, after: float, interval: list[float], verdict: str) -> dict[str, Any]:
    values = {"baseline": before, "value": after, "delta": after - before, "interval": interval, "p_holm": 0.01}
    return {"entry": "new", "metric": metric, "verdict": verdict} | values


def compared(**parts: Any) -> tuple[Section, str]:
    content = {"baseline": "old", "k": 5, "entries": [{"name": "old"}, {"name": "new"}], **parts}
    section = documents.comparison("c", Partial(content))
    return section, " ".join(section.content.striptags().split())


def test_a_baseline_near_zero_has_no_percentage() -> None:
    niche = delta("recall@5/niche", 0.0001, 0.0618, [0.05, 0.07], "better")
    section, words = compared(deltas=[niche, delta("popularity_lift@5", -0.2, -0.1, [0.05, 0.15], "higher")])
    (figure,) = section.figures
    assert "Not drawn, since old's value is near 0: recall@5/niche of new (+0.0617)" in words
    assert "popularity_lift@5: +50.0% (+25.0% to +75.0%)" in figure.description  # higher is to the right


def test_no_harm_and_worse_are_one_sentence_and_both_lists_of_a_user_are_shown() -> None:
    line = {"entry": "new", "metric": "recall@5/popular", "margin": 0.05, "baseline": 0.2, "value": 0.195}
    worse = delta("recall@5/popular", 0.2, 0.195, [-0.007, -0.003], "worse")
    lists = {"baseline_list": [{"item_id": "tea"}], "entry_list": [{"item_id": "coffee", "hit": True}]}
    example = {"entry": "new", "user_id": 7, "metric": "recall@5", **lists}
    _, words = compared(deltas=[worse], no_harm=[line | {"verdict": "shown"}], examples=[example])
    assert "The loss on popular items is small: new loses less than 5% of" in words
    assert "tea" in words
    assert "coffee" in words
    assert "No harm to popular items" in compared(no_harm=[line | {"verdict": "shown"}])[1]


def test_an_audit_alone(demo_folder: Path, tmp_path: Path) -> None:
    dpaa_ok("recommend", demo_folder / "runs" / "dpaa", "--out", tmp_path / "recs.parquet")
    found = audit(demo_folder / "data", tmp_path / "recs.parquet", fail_if=["head_share@20>0.01"])
    audit_page(found, tmp_path / "audit.html")
    page = Reader((tmp_path / "audit.html").read_text())
    (chapter,) = page.named("section")
    assert all(sentence in chapter.text for sentence in found.in_words())
    assert "failed: head_share@20" in chapter.text
    assert {tag.attributes["id"] for tag in page.named("figure")} == {"audit-concentration", "audit-exposure"}


def audited(**content: Any) -> Section:
    return documents.audit("file", Partial(content))


def test_numbers_and_tastes_of_an_audit() -> None:
    tastes = [{"taste": "niche", "users": 3, "mean": 0.2}, {"taste": "diverse", "users": 0}]
    lists = {"tastes": [{"taste": "niche", "users": 3, "upd@5": 0.5}]}
    numbers = {"log_users": 1234, "log_gini": 0.5, "odd@5": "x"}
    section = audited(numbers=numbers, meanings={"log_gini": "how"}, log={"tastes": tastes}, recommendations=lists)
    page = read(section)
    assert texts(page, "th", scope="col")[:4] == ["taste", "users", "popular items in history", "UPD"]
    cells = texts(page, "td")
    assert cells[:6] == ["3", "0.200", "0.500", "0", "–", "–"]
    assert cells[6:] == ["1,234", "", "0.5000", "how", "–", ""]
    assert (section.title, section.figures) == ("Audit of file", [])


def test_figures_of_an_audit_leave_out_what_is_no_share() -> None:
    period = {"start": 1.0, "end": 2.0, "log_head_share": 0.5, "log_niche_share": None, "new_share": 0.125}
    lorenz = [[0, 0], [0.5, 0.25], [0.9, 1e300], [7], [1, 1]]
    section = audited(log={"log_gini": 0.25, "lorenz": lorenz, "periods": [period, period]})
    concentration, time = section.figures
    assert "Gini coefficient of the log: 0.250." in concentration.description
    rows = max(concentration.draw(PAPER).to_dict()["datasets"].values(), key=len)
    drawn = [(row["x"], row["y"]) for row in rows if row["name"] == "interactions of the log"]
    assert drawn == [(1.0, 1.0), (0.5, 0.75), (0.0, 0.0)]
    rows = max(time.draw(PAPER).to_dict()["datasets"].values(), key=len)
    assert {row["name"] for row in rows} == {"share of the most popular fifth", "on items new in the period"}
    assert texts(Reader(str(time.table)), "td")[2:5] == ["0.5000", "–", "0.1250"]
    assert not audited(log={"periods": [period]}).figures


def test_a_frontier_names_the_chosen_point_and_the_baseline() -> None:
    points = [POINT | {"name": name, "accuracy_change": change, "on_frontier": name != "plain", "plain": True}
              for name, change in (("plain", 0.0), ("turned", -0.005), ("bad", -0.9))]  # fmt: skip
    (figure,) = documents.frontier(Partial(TRADE_OFF | {"points": points})).figures
    assert texts(Reader(str(figure.table)), "th", scope="row") == [
        *("plain (baseline, beaten by another point)", "turned (chosen)", "bad")
    ]
    drawn = {row["tip"] for rows in figure.draw(WIDE).to_dict()["datasets"].values() for row in rows if "tip" in row}
    assert not any(tip.startswith("bad") for tip in drawn), "loses too much to be a trade-off"


# ---------------------------------------------------------------------- for specialists


def test_the_dial_of_a_run(demo_folder: Path, tmp_path: Path) -> None:
    run = copy_of(demo_folder / "runs" / "lightgcn", tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    points = [{"kappa": k, "ndcg@20": 0.2 - k * k / 10, "recall@20/niche": 0.1 - k / 20} for k in (1.0, -1.0, 0.0)]
    manifest["dial"] = {"kappa": 0.0, "suggested": -1.0, "curve": points, "in_words": "turn it"}
    (run / "manifest.json").write_text(json.dumps(manifest))
    section = background.dial(gather([run]))
    assert texts(Reader(str(section.figures[0].table)), "th", scope="row") == ["-1 (suggested)", "0 (applied)", "1"]
    assert "0.1500" in section.content
    assert "Turn it." in section.content


def test_a_long_history_is_thinned_and_what_it_lacks_is_not_drawn() -> None:
    family = made_family()
    history = [{"epoch": epoch, "loss": 1 / epoch, "valid": {}} for epoch in range(1, 1001)]
    add_run(family, "new", history=[*history, {"epoch": 1001, "loss": None, "valid": {}}])
    (figure,) = background.training(made_inputs(family)).figures
    assert figure.name == "training-loss"
    assert figure.description == "Training loss over the epochs of training. new from 1 to 0.001."
    rows = max(figure.draw(PAPER).to_dict()["datasets"].values(), key=len)
    assert len(rows) <= POINTS + 1
    assert (rows[0]["x"], rows[-1]["x"]) == (1.0, 1000.0)


def test_a_heat_map_says_where_messages_are_loud() -> None:
    family = made_family()
    layers = ([1.5, None, *[1.0] * 7, 0.5], [1.0] * 10)
    weights = [LayerWeights(index, relative, None, relative) for index, relative in enumerate(layers)]
    nowhere = Direction(0.0, 0.0, 0.0, ())
    vars(add_run(family, "new"))["trace"] = Trace(
        "new", "dpaa", "the premise <holds>", [], [], [], weights, [], [], nowhere
    )
    section = background.trace(made_inputs(family))
    (figure,) = section.figures
    assert figure.description.endswith("In the first layer from 1.50 (rarest) to 0.50 (most popular).")
    assert texts(Reader(str(figure.table)), "td")[:10] == ["1.500", "–", *["1.000"] * 7, "0.500"]
    assert "the premise &lt;holds&gt;" in section.content
    titles = ["Message weight relative to LightGCN's" in str(figure.draw(theme).to_dict()) for theme in (PAPER, WIDE)]
    assert titles == [True, False]  # the page has one of its own


def test_commands_make_the_run_again(demo_folder: Path, tmp_path: Path) -> None:
    run = demo_folder / "runs" / "lightgcn"
    train, evaluate = background.commands_of(gather([run]).runs[0])
    assert evaluate == f"dpaa evaluate {run} --k 20 --overlap drop"
    dpaa_ok(*train.replace(str(run), str(tmp_path / "again")).split()[1:])
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (run / name).read_bytes()


def test_commands_name_what_differs_from_the_defaults() -> None:
    manifest = {"dataset": {"path": "my data"}, "pretrained": {"run": "runs/plain"}, "dial": {"chosen_for": "niche:5"}}
    manifest["rerank"] = Dial(kappa=1.0).as_json()
    protocol = {"k": [5, 10], "overlap": "mask", "mask_valid": True}
    run = add_run(made_family(), "a run", "lightgcn", manifest=manifest, metrics={}, **protocol)
    assert background.commands_of(run) == [
        "dpaa train 'my data' --method lightgcn --set embedding_size=2 --set layers=1 --set epochs=1 --set threads=1 "
        "--seed 0 --pretrained runs/plain --rerank dial,kappa=1.0 --out 'a run'",
        "dpaa evaluate 'a run' --k 5 --k 10 --overlap mask --dial-objective niche:5 --mask-valid",
    ]
    family = made_family()
    add_run(family, "new", manifest={"dataset": {"path": None}, "seed": None, "seconds": "long", "finished": None})
    page = read(background.provenance(made_inputs(family)))
    assert texts(page, "code") == ["dpaa train DATASET --method ease --seed 0 --out new"]
    assert texts(page, "td")[:5] == ["ease", "–", "–", "–", "–"]
