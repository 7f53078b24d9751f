"""Example users: their history and the lists they get, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpaa.report.inputs import Family, Inputs, Ints, Run
from dpaa.report.parts import ListedItem, Section
from dpaa.report.rendering import render

SHOWN_ITEMS, SHOWN_HISTORY, SHOWN_RUNS = 10, 8, 4


def section(inputs: Inputs) -> Section:
    """A few users per dataset."""
    shown = [
        (family.runs[0].model.user_ids[int(family.users[place])], why, _lists(family, place))
        for family in inputs.families
        if family.runs
        for place, why in _chosen(family)
    ]
    return Section("users", "Example users side by side", "Users", render("users.html", users=shown, most=SHOWN_ITEMS))


def _chosen(family: Family) -> list[tuple[int, str]]:
    """Places of users in the lists, and why they were taken: most gained, most lost, most changed, the middle one."""
    last, n_users = family.runs[-1], len(family.users)
    reference = family.reference(last)
    if reference is None:
        return [(place, "taken from the middle") for place in (n_users // 3, 2 * n_users // 3)]
    gain = hits(family, last).sum(axis=1) - hits(family, reference).sum(axis=1)
    kept = np.array([len(np.intersect1d(a, b)) for a, b in zip(last.lists, reference.lists, strict=True)])
    between = f"from {reference.name} to {last.name}"
    reasons = [
        (int(np.argmax(gain)), f"gains most test items {between}"),
        (int(np.argmin(gain)), f"loses most test items {between}"),
        (int(np.argmin(kept)), f"the list changes most {between}"),
        (n_users // 2, "taken from the middle, whatever happens there"),
    ]
    found: dict[int, str] = {}
    for place, why in reasons if gain.any() else reasons[2:]:
        found.setdefault(place, why)
    return list(found.items())


def hits(family: Family, run: Run, chosen: slice = slice(None)) -> NDArray[np.bool_]:
    """Which places of the lists of all users, or of some, hold test items.  Returns (users, k)."""
    lists = run.lists[chosen]
    if family.dataset is None or not len(family.dataset.test):
        return np.zeros(lists.shape, dtype=bool)
    keys = family.users[chosen, None].astype(np.int64) * family.dataset.n_items + lists
    return np.isin(keys, family.dataset.test.keys(family.dataset.n_items)) & (lists >= 0)


def _lists(family: Family, place: int) -> list[tuple[str, list[ListedItem], bool]]:
    """What the user used, from most to least popular, then the list of each run."""
    train, user = family.runs[0].model.train, family.users[place]
    history = train.item[slice(*np.searchsorted(train.user, [user, user + 1]))]
    history = history[np.argsort(-family.counts[history], kind="stable")]
    spread = np.unique(np.linspace(0, len(history) - 1, min(SHOWN_HISTORY, len(history))).round().astype(int))
    told = f"history: {len(spread)} of {len(history)} items"
    found = [(told, _listed(family, history[spread], [False] * len(spread)), False)]
    for run in family.runs[-SHOWN_RUNS:]:
        marks = hits(family, run, slice(place, place + 1))[0]
        title = f"{run.name}: {int(marks.sum())} ✓ in {family.k}"
        found.append((title, _listed(family, run.lists[place], marks.tolist()), True))
    return found


def _listed(family: Family, items: Ints, marks: Sequence[bool]) -> list[ListedItem]:
    """The top of a list, and the test items further down."""
    ids = family.runs[0].model.item_ids
    return [
        ListedItem(
            ids[int(item)],
            hit,
            "popular" if family.popular[item] else "niche",
            family.counts[item],
            rank,
            family.title(int(item)),
        )
        for rank, (item, hit) in enumerate(zip(items, marks, strict=True), 1)
        if item >= 0 and (rank <= SHOWN_ITEMS or hit)
    ]
