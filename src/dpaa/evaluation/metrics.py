"""The table of all metrics, `METRICS`, used to compute, compare, explain and document them.

A metric is one formula with its entry above it.  It takes a `Context` (lists, hits and what they are measured against)
and returns one number per user, or one for all lists together.  The docstring's first paragraph is the definition in
docs/metrics.md; lines `Range:`, `Case:` (worked by hand) and `Source:` below it fill the other columns there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dpaa.data.ids import Array, Floats
from dpaa.evaluation import bias
from dpaa.evaluation.bias import TASTES
from dpaa.evaluation.context import Context, GroundTruth

Formula = Callable[[Context], Any]


@dataclass(frozen=True)
class Metric:
    """One entry of the table."""

    name: str
    formula: Formula
    """Returns (users,), NaN for a user without a value, where `per_user`; else one number."""
    kind: Literal["accuracy", "popularity", "spread", "exposure"]
    """Accuracy formulas see only users with a relevant item: of all items, of the popular and of the niche ones.
    Exposure is that of groups of items, by a column: over all of them `exposure@20/publisher`, of one
    `exposure@20/publisher=X`."""
    better: Literal["high", "low", "zero"]
    """`zero`: the closer the better."""
    words: str
    """What the number says, for people who do not know the formula."""
    per_user: bool = True
    """Whether it is a mean over users: it can then be tested, and is a column of `per_user.parquet`."""
    by_taste: bool = True
    """Whether a mean over users is also taken by the users' taste."""
    on_page: bool = True
    """Whether `dpaa report` shows it."""

    @classmethod
    def of(cls, key: str) -> Metric:
        """Look up the metric of a known key, such as `recall@20/niche`."""
        return METRICS[key.partition("@")[0]]

    def merit(self, value: float) -> float:
        """Return the value with its sign changed if lower is better, so that higher is better."""
        return {"high": value, "low": -value, "zero": -abs(value)}[self.better]

    def in_words(self) -> str:
        """What the number says, and which direction is better."""
        return f"{self.words}; {BETTER[self.better]}"


METRICS: dict[str, Metric] = {}
BETTER = {"high": "higher is better", "low": "lower is better", "zero": "closer to 0 is better"}
GROUPS = {
    "popular": "counted on popular items only",
    "niche": "counted on niche items only",
    "niche-tastes": "for users who like niche items",
    "diverse-tastes": "for users with mixed tastes",
    "blockbuster-tastes": "for users who like popular items",
    "warm-users": "for users with training pairs",
    "cold-users": "for users without training pairs, who get the most popular items",
}
"""What stands behind the slash of a key; besides `COLUMN=VALUE`, items that have this value."""
OF_COLUMNS = ("recall", "ndcg", "hit")
"""Accuracy that is counted on items by the values of a column (`evaluate --group-by`)."""


def metric(*entry: Any, name: str | None = None, **more: Any) -> Callable[[Formula], Formula]:
    """Put the formula into the table under its own name, unless another is given; the rest are `Metric`'s fields."""

    def add(formula: Formula) -> Formula:
        added = Metric(name or formula.__name__, formula, *entry, **more)
        METRICS[added.name] = added
        return formula

    return add


def at_k(name: str, k: int) -> str:
    """The key of a metric of lists of k: `recall/niche` → `recall@20/niche`."""
    name, slash, group = name.partition("/")
    return f"{name}@{k}{slash}{group}"


def of_kind(*kinds: str) -> list[Metric]:
    """The metrics of these kinds, in the table's order."""
    return [metric for metric in METRICS.values() if metric.kind in kinds]


def explain(key: str) -> Metric | None:
    """The metric of a key such as `recall@20/niche`, its words about that group; None for a name that is not known."""
    name, _, rest = key.partition("@")
    behind = rest.partition("/")[2]
    of_column = f"counted on items with {behind} only" if "=" in behind else None
    known, group = METRICS.get(name), GROUPS.get(behind, of_column)
    return known if known is None or group is None else replace(known, words=f"{known.words}; {group}")


# ------------------------------------------------------------------ accuracy


@metric("accuracy", "high", "share of what a user liked in the test that is in the list")
def recall(at: Context) -> Floats:
    """Hits / relevant.

    Case: 2/4
    Source: not divided by min(k, relevant); see [deviations](deviations.md)
    """
    return np.asarray(at.hits.sum(axis=1) / at.relevant)


@metric("accuracy", "high", "share of the list that the user liked in the test")
def precision(at: Context) -> Floats:
    """Hits / k, also where the list ends early.

    Case: 2/3
    """
    return np.asarray(at.hits.mean(axis=1))


@metric("accuracy", "high", "like recall, but hits near the top of the list count more; 1 is perfect")
def ndcg(at: Context) -> Floats:
    """Σ over hits of 1/log2(rank + 1), over the same sum for the best list of min(k, relevant) hits.

    Case: 1.5/2.1309 = 0.7039
    Source: Järvelin & Kekäläinen, TOIS 2002
    """
    k = at.hits.shape[1]
    discount = 1.0 / np.log2(np.arange(k) + 2.0)
    best = np.concatenate([[0.0], np.cumsum(discount)])
    return np.asarray(at.hits @ discount / best[np.minimum(at.relevant, k)])


@metric("accuracy", "high", "one over the rank of the first hit, on average")
def mrr(at: Context) -> Floats:
    """1 / rank of the first hit, 0 without one.

    Case: 1
    Source: Voorhees, TREC-8 1999
    """
    return np.asarray(at.hits.any(axis=1) / (at.hits.argmax(axis=1) + 1.0))


@metric("accuracy", "high", "precision averaged over the ranks of the hits", name="map")
def average_precision(at: Context) -> Floats:
    """Σ over hits of (hits so far / rank), over min(k, relevant).

    Case: (1 + 2/3)/3 = 0.5556
    Source: TREC divides by relevant: a list of k could then not reach 1
    """
    rank = np.arange(1, at.hits.shape[1] + 1)
    precision_at_hits = np.where(at.hits, np.cumsum(at.hits, axis=1) / rank, 0.0)
    return np.asarray(precision_at_hits.sum(axis=1) / np.minimum(at.relevant, at.hits.shape[1]))


@metric("accuracy", "high", "share of users with at least one hit")
def hit(at: Context) -> Floats:
    """1 if there is a hit.

    Case: 1
    """
    return np.asarray(at.hits.any(axis=1), dtype=np.float64)


# ------------------------------------------------------------------ popularity of what is recommended


@metric("popularity", "low", "average popularity: training interactions of a recommended item")
def arp(at: Context) -> Floats:
    """Mean over users of the mean count of the list.

    Range: 0 … largest count
    Case: (19/3 + 11/2)/2 = 5.9167
    Source: Yin et al., VLDB 2012
    """
    return at.mean_count


@metric("popularity", "high", "share of niche items in a list", by_taste=False)
def aplt(at: Context) -> Floats:
    """Mean over users of the share of niche items in the list.

    Case: (1/3 + 1/2)/2 = 0.4167
    Source: Abdollahpouri et al., FLAIRS 2019
    """
    return bias.mean_of_lists((~at.truth.popular).astype(np.float64), at.lists)


@metric("popularity", "zero", "how much more popular a list is than its user's own history; 0 = as popular, 1 = twice")
def popularity_lift(at: Context) -> Floats:
    """Mean over users of (mean count of list − mean count of history) / mean count of history.

    Range: > −1
    Case: list 9, history 6: 0.5
    Source: after Abdollahpouri et al., RecSys 2020, who take it of groups of users
    """
    history = at.truth.history_count[at.rows]
    return np.asarray((at.mean_count - history) / history)


@metric("popularity", "low", "distance between popularity in a user's history and in the list; 0 = the same mix")
def upd(at: Context) -> Floats:
    """Mean over users of the Jensen-Shannon distance (base 2) of list and history by shares of tail, middle, head.

    Case: (½, ½, 0) against (1, 0, 0): √0.3113 = 0.5579
    Source: after Abdollahpouri et al., UMAP 2021, who take the divergence, its square, and average over groups
    """
    row, rank = np.nonzero(at.lists >= 0)
    of_lists = bias.band_shares(row, at.lists[row, rank], at.truth.band, len(at.lists))
    return bias.jensen_shannon(of_lists, at.truth.history_bands[at.rows])


@metric("popularity", "high", "number of niche items in a list", per_user=False, on_page=False)  # aplt says it already
def aclt(at: Context) -> float:
    """Mean over users of the number of niche items in the list.

    Range: 0 … k
    Case: (1 + 1)/2 = 1
    Source: Abdollahpouri et al., FLAIRS 2019
    """
    taken = at.lists >= 0
    return bias.mean_of_known((taken & ~at.truth.popular[at.lists]).sum(axis=1)[taken.any(axis=1)])


@metric("popularity", "low", "share of recommendations that go to the most popular fifth of the items", per_user=False)
def head_share(at: Context) -> float:
    """Share of all recommendations that fall on the head.

    Case: 2/5
    Source: as in `dpaa audit`
    """
    return bias.share_of(bias.head(at.truth.counts), at.exposure)


# ------------------------------------------------------------------ spread over items, and equal chances


@metric("spread", "high", "share of the candidate items that are recommended to at least one user", per_user=False)
def coverage(at: Context) -> float:
    """Distinct recommended candidates / candidates.

    Case: 4/5
    Source: Ge et al., RecSys 2010
    """
    return float((at.candidate_exposure > 0).sum() / len(at.candidate_exposure))


@metric(
    *("spread", "low", "how unevenly recommendations are distributed over items; 0 = evenly, 1 = all on one item"),
    per_user=False,
)
def gini(at: Context) -> float:
    """Σ_j (2j − n − 1) c_(j) / (n Σ c) over all n candidates, c_(1) ≤ … ≤ c_(n) how often they are recommended.

    Range: 0 … (n − 1)/n
    Case: 8/25 = 0.32
    Source: Gini, 1912
    """
    return bias.gini(at.candidate_exposure)


@metric("spread", "high", "how widely recommendations are spread over items, in bits", per_user=False)
def entropy(at: Context) -> float:
    """−Σ p log2 p, p = an item's share of all recommendations.

    Range: 0 … log2 n bits
    Case: 0.4 log2 2.5 + 0.6 log2 5 = 1.9219
    Source: Shannon, 1948
    """
    shown = at.exposure[at.exposure > 0]
    share = shown / shown.sum()
    return max(0.0, float(-(share @ np.log2(share)))) if len(shown) else float("nan")


@metric(
    *("spread", "low", "how much the hit rate of relevant pairs differs between popular and niche items"),
    per_user=False,
)
def pop_reo(at: Context) -> float:
    """Std/mean over the two item groups of hits on the group / relevant pairs of the group, all users together.

    Case: 1 of 3 popular, 1 of 2 niche: 0.2
    Source: Zhu, Wang & Caverlee, SIGIR 2020
    """
    popular = at.truth.popular
    return bias.relative_spread(
        bias.by_group(at.lists[at.hits], popular), bias.by_group(at.truth.relevant_pairs[1], popular)
    )


@metric("spread", "low", "how much the recommendation rate differs between popular and niche items", per_user=False)
def pop_rsp(at: Context) -> float:
    """std/mean over the two item groups of recommendations of the group / pairs that could be recommended.

    Case: 3 of 3 popular, 2 of 8 niche: 0.6
    Source: Zhu, Wang & Caverlee, SIGIR 2020
    """
    return bias.relative_spread(bias.by_group(at.lists[at.lists >= 0], at.truth.popular), at.truth.available)


# ------------------------------------------------------------------ exposure of groups of items, by a column


def _worst(shown: Floats, due: Floats) -> float:
    """Smallest ratio of the groups that are due something; NaN without any."""
    return float((shown[due > 0] / due[due > 0]).min()) if (due > 0).any() else float("nan")


@metric(
    *("exposure", "high", "worst-off item group: exposure / share of the relevant pairs; 1 = proportional"),
    per_user=False,
)
def exposure(at: Context) -> float:
    """Min over groups of share of the exposure / share of the relevant pairs; rank r is worth 1/log2(r + 1).

    Range: 0 … 1; of one group 0 … ∞
    Case: b has 0.6309 of 3.7619, and 2 of 5 relevant pairs: 0.1677/0.4 = 0.4193
    Source: disparate treatment of Singh & Joachims, KDD 2018; weights as in AWRF, Raj & Ekstrand, SIGIR 2022
    """
    return _worst(*at.group_shares[:2])


@metric(
    *("exposure", "high", "worst-off item group: exposure / share of the catalogue; 1 = proportional"),
    per_user=False,
)
def exposure_of_catalogue(at: Context) -> float:
    """Min over groups of share of the exposure / share of the candidates; rank r is worth 1/log2(r + 1).

    Range: 0 … 1; of one group 0 … ∞
    Case: b has 0.1677 of the exposure and 1 of 4 candidates: 0.6708
    """
    return _worst(*at.group_shares[::2])


@metric("exposure", "low", "how far the groups' exposure is from their shares of the relevant pairs", per_user=False)
def exposure_loss(at: Context) -> float:
    """Σ over groups of (share of the exposure − share of the relevant pairs)²; rank r is worth 1/log2(r + 1).

    Range: 0 … 2
    Case: (0.8323 − 0.6)² + (0.1677 − 0.4)² = 0.1079
    Source: expected-exposure loss, Diaz et al., CIKM 2020, of groups
    """
    shown, merit, _ = at.group_shares
    return float(((shown - merit) ** 2).sum())


# ------------------------------------------------------------------ all metrics of some lists


@dataclass(frozen=True, eq=False)
class Measured:
    """All metrics of some lists."""

    metrics: dict[str, float]
    """`name@k`, with `/popular`, `/niche`, `/genre=Drama` (item groups), `/genre` (exposure of all its groups) and
    `/niche-tastes`, `/cold-users` … (user groups) behind it; NaN where there is nothing to measure."""
    per_row: dict[str, Array]
    """At the largest k, one value per list: NaN where it has none; `taste` in words, None without a history."""
    exposure: dict[str, list[float]]
    """k → share of the recommendations on each popularity decile, rarest first; then on items not in training."""


def measure_all(truth: GroundTruth, lists: Array, cuts: Sequence[int]) -> Measured:
    """Compute all metrics of recommendation lists from anywhere.

    Parameters
    ----------
    truth : what the lists are measured against
    lists : (rows, at least the largest k) item indices, best first, each once in a row; −1 where a list ends early
    cuts : values of k, ascending

    Returns
    -------
    Measured

    Examples
    --------
    >>> truth = GroundTruth(np.arange(2), 2, counts=np.array([5, 3, 1]), relevant=np.array([0 * 3 + 2, 1 * 3 + 1]))
    >>> result = measure_all(truth, np.array([[2, 0], [0, -1]]), [2])
    >>> result.metrics["recall@2"], result.metrics["arp@2"]
    (0.5, 4.0)
    """
    whole = truth.context(lists)
    metrics: dict[str, float] = {}
    per_row: dict[str, Array] = {}
    exposure = {}
    for k in cuts:
        at = whole.cut(k)
        # Of the largest k at the end: one table per user would else have a column per metric and k.
        per_row = dict(_accuracy(at, k))
        of_all: dict[str, Any] = {}
        for metric in of_kind("popularity", "spread"):
            (per_row if metric.per_user else of_all)[f"{metric.name}@{k}"] = metric.formula(at)
        of_all |= exposures(at, k)
        metrics |= {name: bias.mean_of_known(values) for name, values in per_row.items()} | of_all
        metrics |= _by_users(truth, per_row, k)
        exposure[str(k)] = bias.decile_shares(at.lists, truth.decile).tolist()
    per_row["taste"] = np.array([*TASTES, None], dtype=object)[truth.taste]
    return Measured(metrics, per_row, exposure)


def _accuracy(at: Context, k: int) -> Iterator[tuple[str, Floats]]:
    """Name and values of each row, NaN for a row without a relevant item in the group."""
    popular = at.truth.popular
    of_columns = ((f"/{name}", group) for name, group in at.truth.groups.items())
    for suffix, group in (("", None), ("/popular", popular), ("/niche", ~popular), *of_columns):
        part = at.of_items(group)
        for metric in of_kind("accuracy"):
            if "=" not in suffix or metric.name in OF_COLUMNS:
                values = np.full(len(at.lists), np.nan)
                values[part.rows] = metric.formula(part)
                yield f"{metric.name}@{k}{suffix}", values


def exposures(at: Context, k: int) -> dict[str, float]:
    """Exposure of groups of items: of all groups of the column together, and of each.

    Parameters
    ----------
    at : lists of k, and the truth with its groups

    Returns
    -------
    `exposure@k/COLUMN`, `exposure@k/COLUMN=VALUE` and so on; nothing without groups
    """
    parts = {name: at.of_group(index) for index, name in enumerate(at.truth.groups)}
    columns = {name.partition("=")[0]: at for name in parts}
    return {
        f"{metric.name}@{k}/{where}": metric.formula(part)
        for metric in of_kind("exposure")
        for where, part in (columns | parts).items()
    }


def _by_users(truth: GroundTruth, per_row: dict[str, Array], k: int) -> dict[str, float]:
    """Means over users by taste, and over warm and cold users where there are both."""
    cold = truth.taste < 0
    by_taste = [metric for metric in METRICS.values() if metric.per_user and metric.by_taste]
    groups = [(f"/{taste}-tastes", truth.taste == index, by_taste) for index, taste in enumerate(TASTES)]
    if cold.any():
        groups += [("/warm-users", ~cold, of_kind("accuracy")), ("/cold-users", cold, of_kind("accuracy"))]
    return {
        f"{metric.name}@{k}{suffix}": bias.mean_of_known(per_row[f"{metric.name}@{k}"][rows])
        for suffix, rows, counted in groups
        for metric in counted
    }
