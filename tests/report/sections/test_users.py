from __future__ import annotations

from pathlib import Path

import numpy as np

from dpaa.report.inputs import gather
from dpaa.report.sections import users
from tests.report.made import add_run, made_family, made_inputs
from tests.report.reader import Reader


def test_hits_are_the_test_items(demo_folder: Path) -> None:
    (family,) = gather([demo_folder / "data", demo_folder / "runs" / "lightgcn"]).families
    assert family.dataset is not None
    run = family.runs[0]
    hits = users.hits(family, run)
    liked = set(zip(family.dataset.test.user.tolist(), family.dataset.test.item.tolist(), strict=True))
    for place, user in enumerate(family.users[:20].tolist()):
        assert hits[place].tolist() == [(user, item) in liked for item in run.lists[place].tolist()]
        assert users.hits(family, run, slice(place, place + 1)).tolist() == [hits[place].tolist()]


def test_hits_by_hand() -> None:
    family = made_family()
    run = add_run(family, "new", lists=["cd", "bd", "ed", "bc"])
    assert users.hits(family, run).tolist() == [[True, False], [True, False], [False, True], [False, False]]
    family.dataset = None
    assert not users.hits(family, run).any()


def test_who_gains_who_loses_and_whose_list_changes_are_shown() -> None:
    family = made_family()
    add_run(family, "plain", lists=["ed", "bd", "ce", "bc"])
    add_run(family, "new", "item-knn", lists=["cd", "de", "ce", "be"])
    page = Reader(str(users.section(made_inputs(family)).content))
    assert [tag.text for tag in page.named("h3")] == ["User 1", "User 2", "User 3"]
    assert [tag.text for tag in page.named("p", class_="why")] == [
        "gains most test items from plain to new",
        "loses most test items from plain to new",
        "taken from the middle, whatever happens there",
    ]
    assert [tag.text for tag in page.named("h4")][:3] == [
        "history: 2 of 2 items",
        "plain: 0 ✓ in 2",
        "new: 1 ✓ in 2",
    ]
    first = [" ".join(tag.text.split()) for tag in page.named("li")][:6]
    assert first == ["a 4", "b 2", "e 0 niche", "d 1 niche", "c 1 ✓ liked in the test", "d 1 niche"]


def test_a_run_alone_is_shown_by_users_from_the_middle() -> None:
    family = made_family()
    add_run(family, "new", lists=["cd", "bd", "cd", "bc"])
    page = Reader(str(users.section(made_inputs(family)).content))
    assert [tag.text for tag in page.named("h3")] == ["User 2", "User 3"]
    assert {tag.text for tag in page.named("p", class_="why")} == {"taken from the middle"}


def test_of_a_long_list_the_top_and_the_hits_below_are_shown() -> None:
    family = made_family()
    add_run(family, "new")
    places = np.array([0] * 12 + [4, -1])
    found = users._listed(family, places, [False] * 11 + [True, False, False])
    assert [item.rank for item in found] == [*range(1, users.SHOWN_ITEMS + 1), 12]
