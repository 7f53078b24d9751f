"""Example users: their history and the lists they get, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.report.inputs import Family, Inputs, Run
from dpaa.report.markup import Markup, tag
from dpaa.report.parts import Figure, Section, shown_id

SHOWN_ITEMS, SHOWN_HISTORY, SHOWN_RUNS = 10, 8, 4


def section(inputs: Inputs) -> Section:
    """A few users per dataset."""
    parts: list[Figure | Markup] = []
    for family in inputs.families:
        if family.runs:
            parts += [_user(family, place, why) for place, why in _chosen(family)]
    if parts:
        parts.insert(
            0,
            tag(
                "p",
                tag("strong", "How to read it. "),
                "Each box is one person of the log: what they used, from most to least popular, and the list that each "
                f"run would show them (the first {SHOWN_ITEMS} places and the hits after them). The number behind an "
                "item is how often it was used in training; ",
                tag("span", "niche", class_="badge niche"),
                " marks niche items and ",
                tag("span", "✓", class_="hit"),
                " items the person liked in the test, which no run has seen. Examples help to get a feeling; they "
                "prove nothing.",
                class_="reading",
            ),
        )
    return Section("users", "Example users side by side", "Users", parts)


def _chosen(family: Family) -> list[tuple[int, str]]:
    """Places of users in the lists, and why they were taken: most gained, most lost, most changed, the middle one."""
    last = family.runs[-1]
    reference = family.reference(last)
    if reference is None:
        return [
            (len(family.users) // 3, "taken from the middle"),
            (2 * len(family.users) // 3, "taken from the middle"),
        ]
    gain = _hits(family, last).sum(axis=1) - _hits(family, reference).sum(axis=1)
    kept = np.array([len(np.intersect1d(a, b)) for a, b in zip(last.lists, reference.lists, strict=True)])
    reasons = [
        (int(np.argmax(gain)), f"gains most test items from {reference.name} to {last.name}"),
        (int(np.argmin(gain)), f"loses most test items from {reference.name} to {last.name}"),
        (int(np.argmin(kept)), f"the list changes most from {reference.name} to {last.name}"),
        (len(family.users) // 2, "taken from the middle, whatever happens there"),
    ]
    if not gain.any():
        reasons = reasons[2:]
    found: dict[int, str] = {}
    for place, why in reasons:
        found.setdefault(place, why)
    return list(found.items())


def _hits(family: Family, run: Run) -> NDArray[np.bool_]:
    """Which places of the lists hold test items.  Returns (users, k)."""
    if family.dataset is None or not len(family.dataset.test):
        return np.zeros(run.lists.shape, dtype=bool)
    keys = family.users[:, None].astype(np.int64) * family.dataset.n_items + run.lists
    return np.isin(keys, family.dataset.test.keys(family.dataset.n_items)) & (run.lists >= 0)


def _user(family: Family, place: int, why: str) -> Markup:
    model = family.runs[0].model
    user = int(family.users[place])
    first, last = np.searchsorted(model.train.user, [user, user + 1])
    history = model.train.item[first:last]
    history = history[np.argsort(-family.counts[history], kind="stable")]
    spread = np.unique(np.linspace(0, len(history) - 1, min(SHOWN_HISTORY, len(history))).round().astype(int))
    columns = [
        _list(
            f"history: {len(spread)} of {len(history)} items",
            family,
            history[spread],
            np.zeros(len(spread), dtype=bool),
            ordered=False,
        )
    ]
    runs = family.runs[-SHOWN_RUNS:]
    for run in runs:
        hits = _hits_of(family, run, place)
        columns.append(_list(f"{run.name}: {int(hits.sum())} ✓ in {family.k}", family, run.lists[place], hits))
    title = tag("h3", "User ", shown_id(model.user_ids[user]))
    return tag("article", title, tag("p", why, class_="why"), tag("div", columns, class_="lists"), class_="user")


def _hits_of(family: Family, run: Run, place: int) -> NDArray[np.bool_]:
    if family.dataset is None:
        return np.zeros(run.lists.shape[1], dtype=bool)
    test = family.dataset.test
    first, last = np.searchsorted(test.user, [family.users[place], family.users[place] + 1])
    return np.asarray(np.isin(run.lists[place], test.item[first:last]) & (run.lists[place] >= 0))


def _list(title: str, family: Family, items: Any, hits: NDArray[np.bool_], ordered: bool = True) -> Markup:
    """The top of a list, and the test items further down."""
    entries = []
    for place, (item, hit) in enumerate(zip(items, hits, strict=True)):
        if item < 0 or (place >= SHOWN_ITEMS and not hit):
            continue
        niche = tag("span", "niche", class_="badge niche") if not family.popular[item] else None
        mark = tag("span", "✓", tag("span", " liked in the test", class_="hidden"), class_="hit") if hit else None
        count = tag("span", f"{family.counts[item]:,.0f}", class_="count", title="interactions in training")
        shown = (shown_id(family.runs[0].model.item_ids[int(item)]), " ", count, " ", niche, mark)
        entries.append(tag("li", *shown, value=place + 1 if ordered else None))
    return tag("div", tag("h4", title), tag("ol" if ordered else "ul", entries))
