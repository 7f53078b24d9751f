"""The one table of metrics, `METRICS`: whatever computes, compares, explains or documents a metric reads it here.

A metric is one formula with its entry above it.  It takes a `Context` (lists, hits and what they are measured against)
and returns one number per user, or one for all lists together, or None where the context lacks what it needs.  The
docstring's first paragraph is the definition in docs/metrics.md.  `bias` has the same over plain arrays, and as others
define it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dpaa.errors import InputError
from dpaa.evaluation import bias, concentration
from dpaa.evaluation.concentration import TASTES
from dpaa.evaluation.context import Array, Context, Floats, GroundTruth, Pairs

Formula = Callable[[Context], Any]


@dataclass(frozen=True)
class Metric:
    """One entry of the table."""

    name: str
    formula: Formula
    """Returns (users,), NaN for a user without a value, where `per_user`; else one number."""
    kind: Literal["accuracy", "popularity", "spread"]
    """Accuracy formulas see only users with a relevant item: of all items, of the popular and of the niche ones."""
    better: Literal["high", "low", "zero"]
    """`zero`: the closer the better."""
    words: str
    """What the number says, for people who do not know the formula."""
    range: str = "0 … 1"
    case: str = ""
    """Worked by hand, in docs/metrics.md."""
    source: str = ""
    per_user: bool = True
    """Whether it is a mean over users: it can then be tested, and is a column of `per_user.parquet`."""
    by_taste: bool = True
    """Whether a mean over users is also taken by the users' taste."""
    on_page: bool = True
    """Whether `dpaa report` shows it."""

    @property
    def definition(self) -> str:
        """The formula in words."""
        return " ".join((self.formula.__doc__ or "").partition("\n\n")[0].split()).removesuffix(".")

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
        found = Metric(name or formula.__name__, formula, *entry, **more)
        METRICS[found.name] = found
        return formula

    return add


def of_kind(*kinds: str) -> list[Metric]:
    """The metrics of these kinds, in the table's order."""
    return [one for one in METRICS.values() if one.kind in kinds]


def explain(key: str) -> Metric | None:
    """The metric of a key such as `recall@20/niche`, its words about that group; None for a name that is not known."""
    name, _, rest = key.partition("@")
    behind = rest.partition("/")[2]
    of_column = f"counted on items with {behind} only" if "=" in behind else None
    found, group = METRICS.get(name), GROUPS.get(behind, of_column)
    return found if found is None or group is None else replace(found, words=f"{found.words}; {group}")


# ------------------------------------------------------------------ accuracy


@metric(
    *("accuracy", "high", "share of what a user liked in the test that is in the list"),
    case="2/4",
    source="not divided by min(k, relevant); see [deviations](deviations.md)",
)
def recall(at: Context) -> Floats:
    """Hits / relevant."""
    return np.asarray(at.hits.sum(axis=1) / at.relevant)


@metric("accuracy", "high", "share of the list that the user liked in the test", case="2/3")
def precision(at: Context) -> Floats:
    """Hits / k, also where the list ends early."""
    return np.asarray(at.hits.mean(axis=1))


@metric(
    *("accuracy", "high", "like recall, but hits near the top of the list count more; 1 is perfect"),
    case="1.5/2.1309 = .7039",
    source="Järvelin & Kekäläinen, TOIS 2002",
)
def ndcg(at: Context) -> Floats:
    """Σ over hits of 1/log2(rank + 1), over the same sum for the best list of min(k, relevant) hits."""
    k = at.hits.shape[1]
    discount = 1.0 / np.log2(np.arange(k) + 2.0)
    best = np.concatenate([[0.0], np.cumsum(discount)])
    return np.asarray(at.hits @ discount / best[np.minimum(at.relevant, k)])


@metric("accuracy", "high", "one over the place of the first hit, on average", case="1", source="Voorhees, TREC-8 1999")
def mrr(at: Context) -> Floats:
    """1 / rank of the first hit, 0 without one."""
    return np.asarray(at.hits.any(axis=1) / (at.hits.argmax(axis=1) + 1.0))


@metric(
    *("accuracy", "high", "precision averaged over the places of the hits"),
    name="map",
    case="(1 + 2/3)/3 = .5556",
    source="TREC divides by relevant: a list of k could then not reach 1",
)
def average_precision(at: Context) -> Floats:
    """Σ over hits of (hits so far / rank), over min(k, relevant)."""
    rank = np.arange(1, at.hits.shape[1] + 1)
    precision_at_hits = np.where(at.hits, np.cumsum(at.hits, axis=1) / rank, 0.0)
    return np.asarray(precision_at_hits.sum(axis=1) / np.minimum(at.relevant, at.hits.shape[1]))


@metric("accuracy", "high", "share of users with at least one hit", case="1")
def hit(at: Context) -> Floats:
    """1 if there is a hit."""
    return np.asarray(at.hits.any(axis=1), dtype=np.float64)


# ------------------------------------------------------------------ popularity of what is recommended


@metric(
    *("popularity", "low", "average popularity: training interactions of a recommended item"),
    range="0 … largest count",
    case="(19/3 + 11/2)/2 = 5.9167",
    source="Yin et al., VLDB 2012",
)
def arp(at: Context) -> Floats:
    """Mean over users of the mean count of the list."""
    return at.mean_count


@metric(
    *("popularity", "high", "share of niche items in a list"),
    case="(1/3 + 1/2)/2 = .4167",
    source="Abdollahpouri et al., FLAIRS 2019",
    by_taste=False,
)
def aplt(at: Context) -> Floats:
    """Mean over users of the share of niche items in the list."""
    return bias.mean_of_lists((~at.truth.popular).astype(np.float64), at.lists)


@metric(
    *("popularity", "zero", "how much more popular a list is than its user's own history; 0 = as popular, 1 = twice"),
    range="> −1",
    case="list 9, history 6: .5",
    source="after Abdollahpouri et al., RecSys 2020, who take it of groups of users",
)
def popularity_lift(at: Context) -> Floats | None:
    """Mean over users of (mean count of list − mean count of history) / mean count of history."""
    if at.truth.history_count is None:
        return None
    history = at.truth.history_count[at.rows]
    return np.asarray((at.mean_count - history) / history)


@metric(
    *("popularity", "low", "distance between popularity in a user's history and in the list; 0 = the same mix"),
    case="(½, ½, 0) against (1, 0, 0): √.3113 = .5579",
    source="after Abdollahpouri et al., UMAP 2021, who take the divergence, its square, and average over groups",
)
def upd(at: Context) -> Floats | None:
    """Mean over users of the Jensen-Shannon distance (base 2) of list and history by shares of tail, middle, head."""
    history = at.truth.history_bands
    if history is None:
        return None
    row, place = np.nonzero(at.lists >= 0)
    of_lists = bias.band_shares(row, at.lists[row, place], at.truth.band, len(at.lists))
    return bias.upd(of_lists, history[at.rows])


@metric(
    *("popularity", "high", "number of niche items in a list"),
    range="0 … k",
    case="(1 + 1)/2 = 1",
    source="Abdollahpouri et al., FLAIRS 2019",
    per_user=False,
    on_page=False,  # aplt says it already
)
def aclt(at: Context) -> float:
    """Mean over users of the number of niche items in the list."""
    taken = at.lists >= 0
    return bias.mean_of_known((taken & ~at.truth.popular[at.lists]).sum(axis=1)[taken.any(axis=1)])


@metric(
    *("popularity", "low", "share of recommendations that go to the most popular fifth of the items"),
    case="2/5",
    source="as in `dpaa audit`",
    per_user=False,
)
def head_share(at: Context) -> float:
    """Share of all recommendations that fall on the head."""
    return concentration.share_of(concentration.head(at.truth.counts), at.exposure)


# ------------------------------------------------------------------ spread over items, and equal chances


@metric(
    *("spread", "high", "share of the candidate items that are recommended to anybody"),
    case="4/5",
    source="Ge et al., RecSys 2010",
    per_user=False,
)
def coverage(at: Context) -> float:
    """Distinct recommended candidates / candidates."""
    shown = at.exposure if at.truth.candidates is None else at.exposure[at.truth.candidates]
    return float((shown > 0).sum() / len(shown))


@metric(
    *("spread", "low", "how unevenly recommendations fall on items; 0 = all alike, 1 = one item gets all"),
    range="0 … (n − 1)/n",
    case="8/25 = .32",
    source="Gini, 1912",
    per_user=False,
)
def gini(at: Context) -> float:
    """Σ_j (2j − n − 1) c_(j) / (n Σ c) over all n candidates, c_(1) ≤ … ≤ c_(n) how often they are recommended."""
    return bias.gini(at.lists, at.truth.n_items, at.truth.candidates)


@metric(
    *("spread", "high", "how widely recommendations are spread over items, in bits"),
    range="0 … log2 n bits",
    case=".4 log2 2.5 + .6 log2 5 = 1.9219",
    source="Shannon, 1948",
    per_user=False,
)
def entropy(at: Context) -> float:
    """−Σ p log2 p, p = an item's share of all recommendations."""
    return bias.entropy(at.lists, at.truth.n_items)


@metric(
    *("spread", "low", "how much the chance to be found, if liked, differs between popular and niche items"),
    case="1 of 3 popular, 1 of 2 niche: .2",
    source="Zhu, Wang & Caverlee, SIGIR 2020",
    per_user=False,
)
def pop_reo(at: Context) -> float:
    """Std/mean over the two item groups of hits on the group / relevant pairs of the group, all users together."""
    return bias.pop_reo(at.lists, at.hits, at.truth.relevant_pairs[1], at.truth.popular)


@metric(
    *("spread", "low", "how much the chance to be shown differs between popular and niche items"),
    case="3 of 3 popular, 2 of 8 niche: .6",
    source="Zhu, Wang & Caverlee, SIGIR 2020",
    per_user=False,
)
def pop_rsp(at: Context) -> float | None:
    """std/mean over the two item groups of recommendations of the group / pairs that could be recommended."""
    if at.truth.available is None:
        return None
    return bias.relative_spread(bias.by_group(at.lists[at.lists >= 0], at.truth.popular), at.truth.available)


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found."""

    metrics: dict[str, float]
    """`name@k`, with `/popular`, `/niche`, `/genre=Drama` (item groups) and `/niche-tastes`, `/cold-users` … (user
    groups) behind it; NaN where there is nothing to measure."""
    per_row: dict[str, Array]
    """At the largest k, one value per list: NaN where it has none; `taste` in words, None without a history."""
    exposure: dict[str, list[float]]
    """k → share of the recommendations on each popularity decile, rarest first; then on items not in training."""


def measure_all(truth: GroundTruth, lists: Array, cuts: Sequence[int]) -> Measured:
    """All metrics of the lists, (rows, at least the largest k)."""
    whole = truth.context(lists)
    metrics: dict[str, float] = {}
    per_row: dict[str, Array] = {}
    exposure = {}
    for k in cuts:
        at = whole.cut(k)
        per_row = dict(_accuracy(at, k))
        of_all: dict[str, Any] = {}
        for metric in METRICS.values():
            found = None if metric.kind == "accuracy" else metric.formula(at)
            if found is not None:
                (per_row if metric.per_user else of_all)[f"{metric.name}@{k}"] = found
        metrics |= {name: bias.mean_of_known(values) for name, values in per_row.items()} | of_all
        metrics |= _by_users(truth, per_row, k)
        exposure[str(k)] = bias.decile_shares(at.lists, truth.decile).tolist()
    if truth.taste is not None:
        per_row["taste"] = np.array([*TASTES, None], dtype=object)[truth.taste]
    return Measured(metrics, per_row, exposure)


def _accuracy(at: Context, k: int) -> Iterator[tuple[str, Floats]]:
    """Name and values of each row, NaN for a row without a relevant item in the group."""
    popular = at.truth.popular
    of_columns = ((f"/{name}", group) for name, group in at.truth.groups.items())
    for suffix, group in (("", None), ("/popular", popular), ("/niche", ~popular), *of_columns):
        part = at.of_items(group)
        for metric in of_kind("accuracy"):
            if "=" in suffix and metric.name not in OF_COLUMNS:
                continue
            values = np.full(len(at.lists), np.nan)
            values[part.rows] = metric.formula(part)
            yield f"{metric.name}@{k}{suffix}", values


def _by_users(truth: GroundTruth, per_row: dict[str, Array], k: int) -> dict[str, float]:
    """Means over users by taste, and over warm and cold users where there are both."""
    if truth.taste is None:
        return {}
    names = [f"{metric.name}@{k}" for metric in METRICS.values() if metric.per_user and metric.by_taste]
    groups = [(f"/{taste}-tastes", truth.taste == place) for place, taste in enumerate(TASTES)]
    found = {name + suffix: bias.mean_of_known(per_row[name][group]) for suffix, group in groups for name in names}
    if (cold := truth.taste < 0).any():
        names = [f"{metric.name}@{k}" for metric in of_kind("accuracy")]
        groups = [("/warm-users", ~cold), ("/cold-users", cold)]
        found |= {name + suffix: bias.mean_of_known(per_row[name][group]) for suffix, group in groups for name in names}
    return found


def measure(
    lists: Any,
    relevant: Any,
    counts: Any,
    *,
    k: int | Sequence[int] | None = None,
    history: Any = None,
    candidates: Any = None,
) -> Measured:
    """All metrics of recommendation lists from anywhere.

    `lists` is (n, k) item indices, best first, −1 where a list ends early; `relevant` are the items each list should
    have held: n collections of item indices, or two arrays (row, item); `counts` is (n_items,) how often each item
    occurs in training.  `history`, in either form, is what each row's user had in training: with it come
    popularity_lift, upd, pop_rsp and the tastes.  `candidates` are the items that may be recommended (all unless
    given), `k` the cuts (the whole width unless given).

        >>> found = measure([[2, 0], [0, -1]], relevant=[{2}, {1}], counts=[5, 3, 1])
        >>> found.metrics["recall@2"], found.metrics["arp@2"]
        (0.5, 4.0)
    """
    per_item = np.asarray(counts)
    numbers = per_item.ndim == 1 and len(per_item) > 0 and per_item.dtype.kind in "iuf"
    if not numbers or not np.all(np.isfinite(per_item) & (per_item >= 0)):
        raise InputError("counts must be one number from 0 for each item")
    table = _checked_lists(lists, len(per_item))
    cuts = tuple(sorted({table.shape[1]} if k is None else {k} if isinstance(k, int) else set(k)))
    if not cuts or cuts[0] < 1:
        raise InputError(f"k must be at least 1, got {k!r}")
    if cuts[-1] > table.shape[1]:
        filler = np.full((len(table), cuts[-1] - table.shape[1]), -1)
        table = np.concatenate([table, filler], axis=1)
    wanted = _pairs(relevant, "relevant", len(table), len(per_item))
    known = None if history is None else _pairs(history, "history", len(table), len(per_item))
    chosen = None if candidates is None else np.unique(_indices(candidates, "candidates", len(per_item)))
    truth = GroundTruth(
        users=np.arange(len(table)),
        n_users=len(table),
        counts=per_item,
        relevant=np.unique(wanted[0] * len(per_item) + wanted[1]),
        history=known,
        masked=known,
        candidates=chosen,
    )
    return measure_all(truth, table, cuts)


def _checked_lists(lists: Any, n_items: int) -> Array:
    try:
        table = np.asarray(lists)
    except ValueError:
        table = np.empty(0)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "iu":
        raise InputError("lists must be a table of item indices, one row per list; fill rows that end early with -1")
    if table.min() < -1 or table.max() >= n_items:
        raise InputError(f"lists holds an index outside -1 to {n_items - 1}; counts has {n_items:,} items")
    in_order = np.sort(table, axis=1)
    twice = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    if twice.any():
        row = int(np.argmax(twice.any(axis=1)))
        raise InputError(f"list {row} holds item {in_order[row, 1:][twice[row]][0]} twice; each item may occur once")
    return table


def _pairs(given: Any, name: str, n_rows: int, n_items: int) -> Pairs:
    """(rows, items), each pair once, from two arrays or from one collection per row."""
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, np.ndarray) for part in given):
        rows, items = _indices(given[0], name, n_rows), _indices(given[1], name, n_items)
        if len(rows) != len(items):
            raise InputError(f"{name} has {len(rows):,} rows and {len(items):,} items; give one item for each row")
    else:
        if len(given) != n_rows:
            raise InputError(f"{name} has {len(given):,} collections for {n_rows:,} lists; give one for each list")
        rows = np.repeat(np.arange(n_rows), [len(items) for items in given])
        items = _indices([item for items in given for item in items], name, n_items)
    keys = np.unique(rows * n_items + items)
    return keys // n_items, keys % n_items


def _indices(given: Any, name: str, n: int) -> Array:
    values = np.asarray(given)
    if not values.size:
        return np.empty(0, dtype=np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= n:
        raise InputError(f"{name} must hold whole numbers from 0 to {n - 1}")
    return values.astype(np.int64)
