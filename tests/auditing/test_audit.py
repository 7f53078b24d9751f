"""An audit: its numbers by hand, by laws, and as they are checked, told and measured by a monitor."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_families

import dpaa
from dpaa import Audit, Dataset, InputError, audit
from dpaa._text import finite
from dpaa.auditing import Check
from dpaa.auditing._audit import LIST_NUMBERS, LOG_NUMBERS

LOG = pl.DataFrame(
    [
        *[("u1", "A", 1), ("u1", "B", 2), ("u2", "A", 3), ("u3", "A", 4), ("u5", "E", 5)],
        *[("u4", "A", 6), ("u2", "B", 7), ("u1", "C", 8), ("u4", "B", 9), ("u4", "D", 10)],
    ],
    schema=["user_id", "item_id", "timestamp"],
    orient="row",
)
"""A 4, B 3, C, D, E 1; the popular items are A, B and C: 8 of 10 interactions."""

LISTS = pl.DataFrame(
    [
        *[("u1", "D", 1), ("u1", "E", 2), ("u5", "A", 1), ("u5", "B", 2)],
        *[("u3", "B", 1), ("u3", "A", 2), ("u3", "unheard of", 3), ("stranger", "A", 1)],
    ],
    schema=["user_id", "item_id", "rank"],
    orient="row",
)


def comparable(found: Audit) -> Any:
    """Everything that is printed, but for the name of the source."""
    return json.loads(json.dumps(finite(found.as_json() | {"source": "", "notes": []})))


@st.composite
def logs(draw: st.DrawFn) -> pl.DataFrame:
    rows = draw(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 12), st.integers(0, 30)), min_size=1, max_size=80))
    return pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp"], orient="row")


OLD, NEW = {"a": 6, "b": 2, "c": 1, "d": 1, "e": 2}, {"a": 1, "b": 2, "c": 8, "d": 1, "f": 4}


def log(pairs: dict[str, int], first: int = 0) -> pl.DataFrame:
    """Item → how many users took it."""
    rows = [(f"u{n}", item, first + n) for item, count in pairs.items() for n in range(count)]
    return pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp"], orient="row")


# The log ##############################################################################################################


def test_the_log_by_hand() -> None:
    found = audit(LOG)
    numbers = found.numbers
    assert (numbers["log_users"], numbers["log_items"], numbers["log_interactions"]) == (5, 5, 10)
    assert numbers["log_gini"] == pytest.approx(0.32)  # 1, 1, 1, 3, 4: −4 − 2 + 0 + 6 + 16 = 16, over 5 · 10
    assert (numbers["log_head_share"], numbers["log_top_item_share"]) == (0.4, 0.4)
    assert (numbers["log_items_for_80"], numbers["log_items_for_80_share"], numbers["log_items_once"]) == (3, 0.6, 3)
    assert numbers["log_items_once_share"] == pytest.approx(0.6)
    assert numbers["log_history_median"] == 2
    assert numbers["log_popular_in_history"] == pytest.approx((1 + 1 + 1 + 2 / 3 + 0) / 5)
    assert found.log.deciles == pytest.approx([0.1, 0, 0.1, 0, 0.1, 0, 0.3, 0, 0.4, 0])
    assert found.log.lorenz[20] == pytest.approx([0.2, 0.1])
    assert len(found.log.lorenz) == 101
    groups = [tuple(group.values()) for group in found.log.tastes]
    assert groups == [("niche", 1, 0.0, 1), ("diverse", 1, pytest.approx(2 / 3), 3), ("blockbuster", 3, 1.0, 2)]


def test_periods_by_hand() -> None:
    found = audit(LOG, periods=2)
    # A 3, B 1, E 1; then A 1, B 2, C 1, D 1
    expected = [(1, 5, 5, 3, 3, 4 / 15, 0.6, 0.2), (6, 10, 5, 4, 2, 3 / 20, 0.4, 0.2)]
    assert [tuple(period.values()) for period in found.log.periods] == [pytest.approx(one) for one in expected]
    assert found.numbers["log_head_share_trend"] == pytest.approx(-0.2)
    assert found.numbers["log_niche_share_trend"] == pytest.approx(0.0)


def test_duplicates_count_once_unless_they_are_to_be_counted() -> None:
    twice = pl.concat([LOG, LOG.filter(pl.col("item_id") == "E").with_columns(timestamp=pl.lit(11, pl.Int64))])
    assert comparable(audit(twice)) == comparable(audit(LOG))
    found = audit(twice, keep_duplicates=True)
    assert found.numbers["log_interactions"] == 11
    assert found.numbers["log_items_once"] == 2
    assert sum(period["interactions"] for period in found.log.periods) == 11
    kept = Dataset.from_frame(twice, keep_duplicates=True)
    assert comparable(audit(kept)) == comparable(found)


# Lists against the log ###############################################################################################


def test_lists_against_histories_by_hand() -> None:
    found = audit(LOG, LISTS)
    recs = found.recommendations
    assert (recs.users, recs.recommendations, recs.k) == (3, 6, 3)
    # u1 took A, B, C (8/3) and gets D, E (1); u5 took E (1), gets A, B (3.5); u3 took A (4), gets B, A (3.5).
    # Head A, middle B and C, tail D and E: nothing in common for u1 and u5; u3 has (0, 0, 1) and gets (0, ½, ½).
    divergence = (0.5 * np.log2(2) + 0.5 * np.log2(2 / 3) + np.log2(4 / 3)) / 2
    assert recs.numbers == pytest.approx(
        {
            "coverage": 4 / 5,
            "gini": 1 / 3,  # 0, 1, 1, 2, 2: 10 over 5 · 6
            "head_share": 2 / 6,
            "arp_history": (8 / 3 + 1 + 4) / 3,
            "arp": (1 + 3.5 + 3.5) / 3,
            "popularity_lift": (-5 / 8 + 2.5 - 1 / 8) / 3,
            "amplified_users": 1 / 3,
            "aplt": 1 / 3,
            "aplt_history": 1 / 3,
            "upd": (1 + 1 + np.sqrt(divergence)) / 3,
        }
    )
    assert recs.deciles == pytest.approx([0, 0, 1 / 6, 0, 1 / 6, 0, 2 / 6, 0, 2 / 6, 0])
    assert [(item["item_id"], item["recommendations"]) for item in recs.winners] == [("D", 1), ("E", 1), ("B", 2)]
    assert [(item["item_id"], item["group"]) for item in recs.losers] == [("C", "popular"), ("A", "popular")]
    assert recs.losers[1]["interaction_share"] == pytest.approx(0.4)
    assert [(shift["taste"], shift["users"]) for shift in recs.tastes] == [
        *(("niche", 1), ("diverse", 0), ("blockbuster", 2))
    ]
    assert recs.tastes[0]["popularity_lift"] == pytest.approx(2.5)
    assert np.isnan(recs.tastes[1]["popularity_lift"])
    said = " ".join(found.notes)
    assert "1 rows of users and 1 of items that are not in the data" in said
    assert "2 users of the log have no list" in said


def test_candidates_and_newcomers() -> None:
    data = Dataset.from_frame(LOG, test={"user_id": ["new"], "item_id": ["A"]}, candidates=["A", "B", "C", "D", "X"])
    found = audit(data, {"user_id": ["u1", "u1", "new"], "item_id": ["E", "X", "A"], "rank": [1, 2, 1]})
    recs = found.recommendations
    assert recs.numbers["coverage"] == pytest.approx(2 / 5)  # X and A; E is no candidate
    assert recs.numbers["gini"] == pytest.approx(3 / 5)  # 0, 0, 0, 1, 1
    assert recs.users == 2
    assert recs.numbers["popularity_lift"] == pytest.approx(0.5 / (8 / 3) - 1)  # u1: E 1, X 0; "new" has no history


@settings(max_examples=20)
@given(logs())
def test_lists_that_are_the_histories_change_nothing(log: pl.DataFrame) -> None:
    found = audit(log, log.unique(["user_id", "item_id"]).select("user_id", "item_id"))
    recs = found.recommendations
    numbers = recs.numbers
    assert numbers["popularity_lift"] == pytest.approx(0)
    assert numbers["amplified_users"] == 0
    assert numbers["upd"] == pytest.approx(0, abs=1e-7)
    assert numbers["aplt"] == pytest.approx(numbers["aplt_history"])
    assert recs.deciles == pytest.approx(found.log.deciles)
    assert numbers["gini"] == pytest.approx(found.numbers["log_gini"])
    assert recs.winners == recs.losers == []


# Change since an older log ###########################################################################################


def test_two_logs() -> None:
    found = audit(log(NEW), against=log(OLD), fail_if=["drift_head_turnover>0.5", "drift_distance>0.99"])
    numbers = found.numbers
    assert numbers["drift_new_items_share"] == pytest.approx(4 / 16)
    assert numbers["drift_gone_items_share"] == pytest.approx(2 / 12)
    assert numbers["drift_head_turnover"] == 1.0  # a fifth of five items is one: a before, c now
    assert numbers["drift_head_share"] == pytest.approx(8 / 16 - 6 / 12)
    assert [check.failed for check in found.checks] == [True, False]
    assert audit(log(OLD), against=log(OLD)).numbers["drift_distance"] == 0
    assert audit(log({"x": 3}), against=log({"y": 2})).numbers["drift_distance"] == pytest.approx(1)
    assert any(sentence.startswith("Against the frame") or "Against log" in sentence for sentence in found.in_words())


def test_one_log_cut_at_a_time(tmp_path: Path) -> None:
    both = pl.concat([log(OLD), log(NEW, first=100).with_columns(pl.col("user_id") + "x")])
    cut, apart = audit(both, against="50").numbers, audit(log(NEW), against=log(OLD)).numbers
    names = [name for name in cut if name.startswith("drift_")]
    assert len(names) == 6
    assert {name: cut[name] for name in names} == pytest.approx({name: apart[name] for name in names})
    dated = both.with_columns(pl.from_epoch(pl.col("timestamp") * 86_400))
    assert audit(dated, against="1970-02-15").numbers["drift_distance"] == pytest.approx(cut["drift_distance"])


def test_exposure_of_groups_by_hand() -> None:
    log = pl.DataFrame({"user_id": [1, 1, 2, 2, 3], "item_id": ["a", "b", "a", "c", "d"]})
    items = pl.DataFrame({"item_id": ["a", "b", "c", "d"], "house": ["x", "x", "y", "z"]})
    recs = pl.DataFrame({"user_id": [1, 1, 2, 2], "item_id": ["c", "d", "b", "d"], "rank": [1, 2, 1, 2]})
    low = 1 / np.log2(3)
    total = 2 + 2 * low  # users 1 and 2 took x three times and y once, of four
    found = audit(log, recs, k=2, items=items, group_by="house", fail_if=["exposure@2/house<0.5 of merit"])
    expected = {"exposure@2/house=x": (1 / total) / (3 / 4), "exposure@2/house=y": (1 / total) / (1 / 4)}
    expected |= {"exposure@2/house": (1 / total) / (3 / 4), "exposure_of_catalogue@2/house=z": (2 * low / total) * 4}
    for name, value in expected.items():
        assert found.numbers[name] == pytest.approx(value), name
    assert [check.failed for check in found.checks] == [expected["exposure@2/house"] < 0.5]
    text = found.openmetrics()
    assert 'dpaa_audit_exposure{source="the frame",k="2",group="house=x"}' in text.replace("log the frame", "the frame")
    assert text.count("# TYPE dpaa_audit_exposure gauge") == 1
    assert found.meanings["exposure@2/house=x"].startswith("worst-off item group")


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"group_by": "house"}, "has no column 'house'|no column 'house'"),
        ({"fail_if": ["exposure@2/house<1"]}, "there is no number 'exposure@2/house'"),
        ({"recs": None, "group_by": "house"}, "--group-by applies to recommended lists"),
    ],
)
def test_groups_that_are_not_there_are_refused(how: dict[str, Any], says: str) -> None:
    log = pl.DataFrame({"user_id": [1, 1, 2], "item_id": ["a", "b", "a"]})
    recs = pl.DataFrame({"user_id": [1], "item_id": ["b"], "rank": [1]})
    with pytest.raises(InputError, match=says):
        audit(log, **{"recs": recs} | how)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("head_share>0.8", Check("head_share", ">", 0.8)),
        (" gini  <=  -1.5e-3 ", Check("gini", "<=", -0.0015)),
        ("gini!=.5", Check("gini", "!=", 0.5)),
        ("head_share >= 80%", Check("head_share", ">=", 0.8)),
    ],
)
def test_parsed(text: str, check: Check) -> None:
    assert Check.parse(text) == check


@pytest.mark.parametrize(
    ("text", "value", "failed", "sentence"),
    [
        ("gini>0.8", 0.85, True, "gini is 0.85, which is above 0.8"),
        ("gini>0.8", 0.8, False, "gini is 0.8, which is not above 0.8"),
        ("gini<=0.8", 0.9, False, "gini is 0.9, which is not at most 0.8"),
        ("gini>0.8", math.nan, True, "gini has no value here, so 'gini>0.8' cannot be ruled out"),
    ],
)
def test_sentences(text: str, value: float, failed: bool, sentence: str) -> None:
    found = Check.parse(text).apply({"gini": value})
    assert (found.failed, found.sentence) == (failed, sentence)


def test_public_name_and_words() -> None:
    found = dpaa.audit(LOG, LISTS, fail_if=["log_head_share>0.3", "log_gini > 0.9", "coverage@3<=80%"])
    assert isinstance(found, dpaa.Audit)
    assert [check.check.name for check in found.failed] == ["log_head_share", "coverage@3"]
    assert set(found.numbers) == {*LOG_NUMBERS, *(f"{name}@3" for name in LIST_NUMBERS)}
    assert set(dpaa.audit(LOG).numbers) == set(LOG_NUMBERS)
    words = found.in_words()
    assert words[0] == "5 users, 5 items, 10 interactions."
    assert words[1].startswith("The most popular fifth of the items has 40.0% of the interactions")
    assert any("the list is 58% more popular than the history" in sentence for sentence in words)
    assert not any("nan" in sentence for sentence in words)


def test_every_number_with_a_value_is_a_gauge() -> None:
    found = audit(log(NEW), log(OLD).select("user_id", "item_id"), against=log(OLD))
    text = found.openmetrics()
    for families in (text_string_to_metric_families(text), older_families(text)):
        samples = [sample for family in families for sample in family.samples]
        told = {f"{one.name}@{one.labels['k']}" if "k" in one.labels else one.name: one.value for one in samples}
        expected = {f"dpaa_audit_{name}": value for name, value in found.numbers.items() if value == value}
        assert told == pytest.approx(expected)
