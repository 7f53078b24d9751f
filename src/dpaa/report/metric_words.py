"""Metrics in plain words, and which direction is better."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MetricWords:
    """What a number says."""

    says: str
    better: str
    """`high`, `low`, or `zero` (the closer the better)."""


WORDS = {
    "recall": MetricWords("share of what a user liked in the test that is in the list", "high"),
    "precision": MetricWords("share of the list that the user liked in the test", "high"),
    "ndcg": MetricWords("like recall, but hits near the top of the list count more; 1 is perfect", "high"),
    "mrr": MetricWords("one over the place of the first hit, on average", "high"),
    "map": MetricWords("precision averaged over the places of the hits", "high"),
    "hit": MetricWords("share of users with at least one hit", "high"),
    "arp": MetricWords("average popularity: training interactions of a recommended item", "low"),
    "aplt": MetricWords("share of niche items in a list", "high"),
    "aclt": MetricWords("number of niche items in a list", "high"),
    "coverage": MetricWords("share of all items that are recommended to anybody", "high"),
    "gini": MetricWords("how unevenly recommendations fall on items; 0 = all alike, 1 = one item gets all", "low"),
    "entropy": MetricWords("how widely recommendations are spread over items, in bits", "high"),
    "pop_reo": MetricWords("how much the chance to be found, if liked, differs between popular and niche items", "low"),
    "pop_rsp": MetricWords("how much the chance to be shown differs between popular and niche items", "low"),
    "popularity_lift": MetricWords(
        "how much more popular a list is than its user's own history; 0 = as popular", "zero"
    ),
    "upd": MetricWords("distance between popularity in a user's history and in the list; 0 = the same mix", "low"),
    "head_share": MetricWords("share of recommendations that go to the most popular fifth of the items", "low"),
}
GROUPS = {
    "popular": "counted on popular items only",
    "niche": "counted on niche items only",
    "niche-tastes": "for users who like niche items",
    "diverse-tastes": "for users with mixed tastes",
    "blockbuster-tastes": "for users who like popular items",
}


def explain(metric: str) -> MetricWords | None:
    """What `recall@20/niche` says; None for a name that is not known."""
    name, _, rest = metric.partition("@")
    words = WORDS.get(name)
    group = GROUPS.get(rest.partition("/")[2])
    if words is None:
        return None
    return words if group is None else MetricWords(f"{words.says}; {group}", words.better)


def best_of(metric: str, values: dict[str, float]) -> set[str]:
    """The names with the best value, as shown with four digits; none where a name has no direction."""
    words = explain(metric)
    if words is None or len(values) < 2:
        return set()
    rounded = {name: round(value, 4) for name, value in values.items()}
    distance = {"high": lambda value: -value, "low": lambda value: value, "zero": abs}[words.better]
    least = min(distance(value) for value in rounded.values())
    found = {name for name, value in rounded.items() if distance(value) == least}
    return found if len(found) < len(values) else set()
