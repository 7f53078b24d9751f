"""How popular the recommended items are, and for whom: one formula each.

`lists` is (users, k) item indices, −1 where a list ends early or the item is not known; `counts` is (n_items,)
training counts; `popular` is (n_items,) bool (see `dpaa.data.popularity`).  An empty list says nothing about
popularity: its user is left out of averages.  NaN where there is nothing to measure.

The same names mean other things elsewhere: `definition=` reproduces the numbers of RecBole, Elliot, WarpRec and
LensKit where they have the metric; `docs/metrics.md` shows all of them side by side.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpaa.data.popularity import POPULAR_SHARE, popular_items
from dpaa.errors import InputError
from dpaa.evaluation import concentration

Array = NDArray[Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


Definition = Literal["dpaa", "recbole", "elliot", "warprec", "warprec-2.1", "warprec-1.14.0", "lenskit"]

# ------------------------------------------------------------------ what lists hold


def exposure(lists: Array, n_items: int) -> NDArray[np.int64]:
    """How often each item is recommended.  Returns (n_items,)."""
    return np.bincount(lists[lists >= 0], minlength=n_items)


def mean_of_lists(value: Array, lists: Array) -> Floats:
    """Mean of the items' values over each list, NaN for an empty one.  Returns (users,)."""
    taken = lists >= 0
    length = taken.sum(axis=1)
    sums = np.where(taken, value[lists], 0.0).sum(axis=1)
    return np.where(length > 0, sums / np.maximum(length, 1), np.nan)


def mean_of_known(values: Floats) -> float:
    """Over users that have a value; NaN without any."""
    there = ~np.isnan(values)
    return float(values[there].mean()) if there.any() else float("nan")


# ------------------------------------------------------------------ popularity of the recommended


def arp(lists: Array, counts: Array, definition: Definition = "dpaa") -> float:
    """Average recommendation popularity `mean_u mean_{i ∈ L_u} count(i)`; lower is less popular.

    Yin et al., VLDB 2012.  `recbole` divides each list's sum by k, so that a list that ends early counts for less;
    `elliot` is ours; `warprec` divides by k and lets no item count less than 1; `lenskit` takes not counts but
    quantiles of their ranks among the items that occur, ties averaged, 0 for the others.
    """
    _check(definition, "arp", ("dpaa", "recbole", "elliot", "warprec", "lenskit"))
    value = counts.astype(np.float64)
    if definition == "lenskit":
        return mean_of_known(mean_of_lists(_rank_quantiles(counts), lists))
    if definition == "warprec":
        value = np.maximum(value, 1.0)
    if definition in ("recbole", "warprec"):
        sums = np.where(lists >= 0, value[lists], 0.0).sum(axis=1)
        return float(np.mean(sums / lists.shape[1])) if len(lists) else float("nan")
    return mean_of_known(mean_of_lists(value, lists))


def decile_shares(lists: Array, decile: Array) -> Floats:
    """Share of all recommendations on each popularity decile, rarest first; the last is items not in training.

    `decile` is (n_items,) from `popularity_deciles`.  Returns (11,), which sum to 1.
    """
    given = decile[lists[lists >= 0]]
    counts = np.bincount(np.where(given < 0, 10, given), minlength=11)
    return counts / counts.sum() if counts.sum() else np.full(11, np.nan)


# ------------------------------------------------------------------ spread over items


def gini(lists: Array, n_items: int, candidates: Array | None = None, definition: Definition = "dpaa") -> float:
    """Gini coefficient of how often each candidate is recommended; 0 = all alike, near 1 = a few have all.

    `G = Σ_j (2j − n − 1) c_(j) / (n Σ c)` over the n candidates, c_(1) ≤ … ≤ c_(n); lower is more equal; at most
    (n − 1)/n.  `recbole` takes n + 1 items (its padding is one), `elliot` gives `1 − G n/(n − 1)` (higher is more
    equal), `warprec` gives `G n/(n − 1)`; `lenskit` is ours.
    """
    _check(definition, "gini", ("dpaa", "recbole", "elliot", "warprec", "lenskit"))
    counts = exposure(lists, n_items)
    if candidates is not None:
        counts = counts[candidates]
    if definition == "recbole":
        counts = np.append(counts, 0)
    found = concentration.gini(counts)
    if definition in ("elliot", "warprec"):
        n = len(counts)
        found = found * n / (n - 1) if n > 1 else float("nan")
    return 1.0 - found if definition == "elliot" else found


def entropy(lists: Array, n_items: int, definition: Definition = "dpaa") -> float:
    """Shannon entropy `−Σ_i p_i log2 p_i` in bits, p_i the share of item i in all recommendations.

    From 0 (one item only) to log2 of the number of items; higher is more diverse (Shannon, 1948).  `recbole` takes
    the natural logarithm and divides by the number of distinct recommended items; `warprec` takes the natural
    logarithm; `elliot` weighs every user alike instead of every recommendation, which differs where lists end early.
    LensKit's entropy is of categories within one list and has no counterpart.
    """
    _check(definition, "entropy", ("dpaa", "recbole", "elliot", "warprec"))
    counts = exposure(lists, n_items)
    total = counts.sum()
    if not total:
        return float("nan")
    recommended = counts > 0
    p = counts[recommended] / total
    if definition == "elliot":
        taken = lists >= 0
        length = taken.sum(axis=1)
        weight = np.repeat(1.0 / np.maximum(length, 1), length)
        by_user = np.bincount(lists[taken], weight, minlength=n_items)[recommended] / (length > 0).sum()
        return float(-(by_user @ np.log2(p)))
    bits = max(0.0, float(-(p @ np.log2(p))))
    if definition == "dpaa":
        return bits
    nats = bits * np.log(2.0)
    return float(nats / len(p) if definition == "recbole" else nats)


# ------------------------------------------------------------------ equal chances of popular and niche items


def popular_by(counts: Array, definition: Definition = "dpaa") -> Mask:
    """The popular items as each definition cuts them: the most frequent that have 80 % of all interactions.

    `warprec` asks for more than 80 %: where a set has 80 % to the last interaction, one item more is popular.
    """
    if not definition.startswith("warprec"):
        return popular_items(counts)
    order = np.argsort(-counts, kind="stable")
    enough = np.cumsum(counts[order]) > POPULAR_SHARE * counts.sum()
    popular = np.zeros(len(counts), dtype=bool)
    popular[order[: int(np.argmax(enough)) + 1]] = True
    return popular & (counts > 0)


def pop_reo(lists: Array, hits: Mask, relevant: Array, popular: Mask, definition: Definition = "dpaa") -> float:
    """Popularity-based ranking equal opportunity: `std(P) / mean(P)` of the two item groups; 0 = equal, at most 1.

    `P(g) = hits on items of g / relevant pairs with an item of g`, over all users together (Zhu, Wang & Caverlee,
    SIGIR 2020).  Lower is better.  `relevant` holds the item of every relevant pair.  NaN where a group has no
    relevant pair, or nothing was hit.

    `elliot` is ours; `warprec` (2.2.8) is ours with `popular_by(counts, "warprec")`.  Up to 2.1 (`warprec-2.1`) it gave
    0 where a group has no relevant pair, and before 1.14.1 (`warprec-1.14.0`) it also counted every recommended item as
    a hit.
    """
    _check(definition, "pop_reo", ("dpaa", "elliot", "warprec", "warprec-2.1", "warprec-1.14.0"))
    counted = lists[lists >= 0] if definition == "warprec-1.14.0" else lists[hits]
    of_groups = by_group(relevant, popular)
    if definition in ("warprec-2.1", "warprec-1.14.0") and not of_groups.all():
        return 0.0
    return relative_spread(by_group(counted, popular), of_groups)


def available_pairs(popular: Mask, n_users: int, candidates: Array | None, masked: Array) -> NDArray[np.int64]:
    """(niche, popular) pairs that could be recommended: all candidates for all users, less the masked pairs' items."""
    allowed = among(len(popular), candidates)
    return n_users * by_group(np.flatnonzero(allowed), popular) - by_group(masked[allowed[masked]], popular)


def among(n_items: int, candidates: Array | None) -> Mask:
    """Whether each item is a candidate; None = all are.  Returns (n_items,)."""
    allowed = np.full(n_items, candidates is None)
    if candidates is not None:
        allowed[candidates] = True
    return allowed


def by_group(items: Array, popular: Mask) -> NDArray[np.int64]:
    """How many of the items are niche, and how many popular."""
    return np.bincount(popular[items].astype(np.int64), minlength=2)


def relative_spread(part: Array, whole: Array) -> float:
    """`std / mean` of the shares of two groups, `|p − q| / (p + q)`; NaN where a group has nothing, or no part any."""
    if not (whole > 0).all() or not part.any():
        return float("nan")
    share = part / whole
    return float(share.std() / share.mean())


# ------------------------------------------------------------------ a list against its user's history


BANDS = ("tail", "middle", "head")


def popularity_bands(counts: Array) -> NDArray[np.int64]:
    """Three groups of items: head = most frequent with a fifth of all interactions, tail = the niche items, middle.

    Returns (n_items,): 0 tail, 1 middle, 2 head.  The tail has the last fifth of the interactions (Abdollahpouri et
    al., UMAP 2021).
    """
    return popular_items(counts).astype(np.int64) + popular_items(counts, 1.0 - POPULAR_SHARE)


def band_shares(rows: Array, items: Array, band: Array, n_rows: int) -> Floats:
    """Shares of the three bands among the items of each row; NaN for a row without items.  Returns (n_rows, 3)."""
    counts = np.bincount(rows * len(BANDS) + band[items], minlength=n_rows * len(BANDS)).reshape(n_rows, len(BANDS))
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total > 0, counts / np.maximum(total, 1), np.nan)


def upd(of_lists: Floats, of_history: Floats) -> Floats:
    """User popularity deviation: Jensen-Shannon distance between the band shares of list and history, per user.

    `√(½ KL(p‖m) + ½ KL(q‖m))`, m = (p + q)/2, logarithms to base 2: 0 = as the history, 1 = no band in common; lower
    is closer to the user's taste; NaN without a list or a history.  Abdollahpouri et al., UMAP 2021, who take the
    divergence (the square) and average it over groups of users.
    """
    middle = (of_lists + of_history) / 2.0
    divergence = np.zeros(len(middle))
    for p in (of_lists, of_history):
        ratio = np.divide(p, middle, out=np.ones_like(p), where=p > 0)  # 0 · log 0 = 0
        divergence += 0.5 * (p * np.log2(ratio)).sum(axis=1)
    return np.sqrt(np.clip(divergence, 0.0, 1.0))


# ------------------------------------------------------------------ other people's definitions


def _rank_quantiles(counts: Array) -> Floats:
    """Rank of each item's count among the items that occur, ties averaged, over their number; 0 for the others."""
    from scipy.stats import rankdata  # half a second of every start, for a definition that few ask for

    there = counts > 0
    found = np.zeros(len(counts))
    found[there] = rankdata(counts[there]) / max(int(there.sum()), 1)
    return found


def _check(definition: str, metric: str, known: tuple[str, ...]) -> None:
    if definition not in known:
        raise InputError(f"there is no definition {definition!r} of {metric}; choose one of {', '.join(known)}")
