"""What is said and written of a choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpaa.evaluation.offpolicy import ValidationExposure
from dpaa.frontier.choice import Chooser
from dpaa.frontier.estimates import Accuracy
from dpaa.frontier.points import user_folds
from dpaa.frontier.result import Debiased, Frontier
from tests.frontier.made import made_point, truth_of


def frontier(*points: Any, **more: Any) -> Frontier:
    accuracy = Accuracy(truth_of([{0}, {1}], [3, 1]), 5)
    told = [replace(point, metrics={"aplt@5": point.values[0]}) for point in points]
    folds = user_folds(len(points[0].accuracy["logged"]), 0)
    chooser = Chooser(told, 0, "logged", folds, **more)
    return Frontier("shop", "abc", accuracy, ValidationExposure(False, True, None), chooser)


BASE = np.array([0.5, 0.5, 0.0, 1.0])


def some(goal: str = "aplt", before: float = 0.2, after: float = 0.5) -> Frontier:
    return frontier(
        made_point(BASE, before, goals=[goal], name="ease"),
        made_point(BASE - [0.1, 0.0, -0.1, 0.04], after, goals=[goal], name="ease", kappa=-0.5),
    )


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (0.2, 0.5, "aplt × 2.5, accuracy −2.0 %"),
        (0.2, 0.25, "aplt +25 %, accuracy −2.0 %"),
        (0.0, 0.5, "aplt 0 → 0.5, accuracy −2.0 %"),
    ],
)
def test_the_headline_by_hand(before: float, after: float, told: str) -> None:
    assert Debiased(some(before=before, after=after), 1, "because", None).headline() == told


def test_the_headline_of_no_change() -> None:
    assert Debiased(some(), 0, "because", None).headline() == "nothing changes: ease stays"


def test_the_headline_names_goals_as_people_do() -> None:
    assert Debiased(some("arp", 10.0, 5.0), 1, "because", None).headline() == "mean popularity −50 %, accuracy −2.0 %"


def test_three_sentences_by_hand() -> None:
    told = Debiased(some(), 1, "because", None).sentences()
    assert told == [
        "ease, dial -0.5 instead of ease: because",
        "aplt +150 % (between +150 and +150 %), 2.5 times as much: aplt@5 0.2 → 0.5",
        told[2],
    ]
    assert told[2].startswith("accuracy (NDCG@5, logged) −2.0 % (between ")
    assert told[2].endswith("25 % of the users get a more accurate list, 50 % a less accurate one")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (0.5, 0.1, "popularity_lift −80 %: popularity_lift@5 0.5 → 0.1"),
        (-0.5, -0.1, "popularity_lift: popularity_lift@5 -0.5 → -0.1"),
        (0.0, 0.2, "popularity_lift from nothing: popularity_lift@5 0 → 0.2"),
        (float("nan"), 0.2, "popularity_lift: popularity_lift@5 nan → 0.2"),
    ],
)
def test_gains_of_a_goal_that_is_best_at_zero(before: float, after: float, told: str) -> None:
    assert Debiased(some("popularity_lift", before, after), 1, "because", None).sentences()[1] == told


def test_where_nothing_could_be_confirmed_the_best_guess_is_told_and_how_to_take_it() -> None:
    found = some()
    _, confirmation = found.chooser.within(0.9)
    kept = Debiased(found, 0, "nobody was sure", confirmation, less_sure=((0.5, 1),))
    first, guess = kept.sentences()
    assert first == "ease stays as it is: nobody was sure"
    assert guess.startswith("as a guess (--confidence 0.5): ease, dial -0.5: aplt +150 %")
    assert "; accuracy −2.0 % (between " in guess
    assert replace(kept, less_sure=((0.8, 1),)).sentences()[1].startswith("at 80 % (--confidence 0.8): ease, dial -0.5")
    (told,) = kept.as_json()["less_sure"]
    assert (told["name"], told["confidence"]) == ("ease, dial -0.5", 0.5)
    assert "best kept" in replace(kept, less_sure=()).sentences()[1]
    unasked = replace(kept, less_sure=(), confirmation=replace(confirmation, refused=None))
    assert len(unasked.sentences()) == 1  # there is nothing to guess
    sure = Debiased(found, 1, "because", confirmation, less_sure=((0.8, 0),))
    assert len(sure.sentences()) == 4  # what could be had for less is told beside a choice, too


def test_json_has_no_number_that_is_none() -> None:
    found = frontier(made_point([0.5], float("nan")), made_point([0.4], float("nan"), kappa=-1.0))
    content = Debiased(found, 0, "because", None, notes=("look",)).as_json()
    assert content["points"][0]["accuracy_change"] is None
    assert content["points"][0]["metrics"] == {"aplt@5": None}
    assert (content["kind"], content["format"], content["k"], content["users"]) == ("frontier", 1, 5, 1)
    assert content["frontier"] == ["m"]
    assert [point["on_frontier"] for point in content["points"]] == [True, False]
    assert content["notes"] == ["look"]
    assert content["confirmation"] is None
