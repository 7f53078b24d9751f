"""What users type, and which way is better."""

from __future__ import annotations

import numpy as np
import pytest

from dpaa.errors import InputError
from dpaa.frontier.goals import OFFERED, Goal, parse_goals
from tests.frontier.made import truth_of


def test_every_offered_goal_is_one() -> None:
    keys = [Goal.parse(name).key(5) for name in OFFERED]
    assert keys == ["recall@5/niche", "coverage@5", "arp@5", "gini@5", "upd@5"]
    assert Goal.parse(" Recall/Niche ").key(5) == keys[0]


@pytest.mark.parametrize("text", ["ndcg", "arp/niche", "niche", "", "coverage@5"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(InputError, match="there is no goal"):
        Goal.parse(text)


def test_each_once() -> None:
    with pytest.raises(InputError, match="named twice"):
        parse_goals(["niche-recall", "recall/niche"])
    with pytest.raises(InputError, match="at least one"):
        parse_goals([])


def test_higher_scores_are_better_whatever_the_direction() -> None:
    assert Goal.parse("aplt").score(0.3) == 0.3
    assert Goal.parse("arp").score(30.0) == -30.0
    lift = Goal.parse("popularity_lift")  # the closer to 0, the better
    assert lift.score(-0.2) == lift.score(0.2) > lift.score(0.5)
    assert Goal.parse("aplt").score(float("nan")) == -np.inf


def test_values_by_hand() -> None:
    # Counts 8, 1, 1: item 0 is popular.  User 0 likes items 0 and 1, user 1 only the popular one.
    at = truth_of([{0, 1}, {0}], [8, 1, 1]).context(np.array([[1, 2], [0, 1]]))
    niche = Goal.parse("niche-recall")
    assert niche.per_user(at) == pytest.approx([1.0, np.nan], nan_ok=True)
    assert niche.of_all(at) == 1.0
    assert Goal.parse("coverage").per_user(at) is None
    assert Goal.parse("coverage").of_all(at) == 1.0
    with pytest.raises(InputError, match="needs the users' histories"):
        Goal.parse("calibration").of_all(at)
