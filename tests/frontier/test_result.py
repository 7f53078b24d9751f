"""What is said and written of a choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpaa.evaluation.exposure import ValidationExposure
from dpaa.frontier.choice import Chooser
from dpaa.frontier.estimates import Accuracy
from dpaa.frontier.result import Debiased, Frontier
from tests.frontier.made import made_point, truth_of


def frontier(*points: Any, **more: Any) -> Frontier:
    accuracy = Accuracy(truth_of([{0}, {1}], [3, 1]), 5)
    found = Frontier(
        "shop", "abc", accuracy, ValidationExposure(False, True, None), Chooser(points, 0, "logged", **more)
    )
    for point in points:
        vars(point)["metrics"] = {"aplt@5": point.values[0]}
    return found


BASE = np.array([0.5, 0.5, 0.0, 1.0])


def some(goal: str = "aplt", before: float = 0.2, after: float = 0.5) -> Frontier:
    return frontier(
        made_point(BASE, before, goals=[goal], name="ease"),
        made_point(BASE - [0.1, 0.0, -0.1, 0.04], after, goals=[goal], name="ease", kappa=-0.5),
    )


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
    kept = Debiased(found, 0, "nobody was sure", confirmation, guess=1)
    first, guess = kept.sentences()
    assert first == "ease stays as it is: nobody was sure"
    assert guess.startswith("the best guess is ease, dial -0.5: aplt +150 %")
    assert "; accuracy −2.0 % (between " in guess
    assert guess.endswith("--confidence 0.5 takes it unconfirmed")
    assert kept.as_json()["best_guess"]["name"] == "ease, dial -0.5"
    assert "keep it too" in replace(kept, guess=0).sentences()[1]
    assert len(replace(kept, guess=None).sentences()) == 1
    taken = replace(kept, confirmation=replace(confirmation, confidence=0.5))
    assert len(taken.sentences()) == 1  # it was asked for already


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
