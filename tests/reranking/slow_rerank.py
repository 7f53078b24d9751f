"""Re-ranking as the papers write it: one user, one candidate after the other, the whole objective each time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Objective = Callable[[list[int]], float]
"""Of a list of places."""


def from_zero_to_one(scores: Sequence[float]) -> list[float]:
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 0.0 for score in scores]


def groups_by_popularity(counts: Sequence[float], *shares: float) -> list[int]:
    """Walk down the items by count and see how much was covered before each."""
    total, before, group = sum(counts), 0.0, [len(shares)] * len(counts)
    for item in sorted(range(len(counts)), key=lambda item: (-counts[item], item)):
        if counts[item] > 0:
            group[item] = sum(before >= share * total for share in shares)
        before += counts[item]
    return group


def shares_of(groups: Sequence[int], n_groups: int) -> list[float]:
    return [groups.count(group) / max(len(groups), 1) for group in range(n_groups)]


def xquad_gain(
    kind: str, strength: float, scores: Sequence[float], groups: Sequence[int], history: Sequence[int]
) -> Callable[[list[int], int], float]:
    """What an item adds to the list so far."""
    wanted = shares_of(history, 2)

    def gain(chosen: list[int], place: int) -> float:
        same = [other for other in chosen if groups[other] == groups[place]]
        share = len(same) / len(chosen) if chosen else 0.0
        missing = {"binary": float(not same), "proportional": 1.0 - share}
        missing["smooth"] = math.prod(1.0 - share for _ in chosen)
        return (1.0 - strength) * scores[place] + strength * wanted[groups[place]] * missing[kind]

    return gain


def divergence(kind: str, wanted: Sequence[float], found: Sequence[float], smoothing: float = 0.01) -> float:
    """Jensen-Shannon in bits, or Kullback-Leibler from a smoothed list in nats."""

    def leibler(one: Sequence[float], two: Sequence[float]) -> float:
        return sum(p * math.log(p / q) for p, q in zip(one, two, strict=True) if p > 0)

    if kind == "steck":
        return leibler(wanted, [(1.0 - smoothing) * q + smoothing * p for p, q in zip(wanted, found, strict=True)])
    middle = [(p + q) / 2 for p, q in zip(wanted, found, strict=True)]
    return (leibler(wanted, middle) + leibler(found, middle)) / 2 / math.log(2)


def calibration_gain(
    kind: str, strength: float, scores: Sequence[float], groups: Sequence[int], history: Sequence[int]
) -> Callable[[list[int], int], float]:
    """The whole objective of the list with the item."""
    wanted = shares_of(history, 3)

    def gain(chosen: list[int], place: int) -> float:
        longer = [*chosen, place]
        far = divergence(kind, wanted, shares_of([groups[one] for one in longer], 3)) if history else 0.0
        return (1.0 - strength) * sum(scores[one] for one in longer) - strength * far

    return gain


def slow_compensation(
    scores: Sequence[float], counts: Sequence[float], strength: float, score_share: float
) -> list[float]:
    """PC, over the candidates given."""
    back = [(score_share * s + 1 - score_share) / (d + 1) for s, d in zip(scores, counts, strict=True)]
    length = math.sqrt(sum(c * c for c in back))
    scale = math.sqrt(sum(s * s for s in scores)) / length if length else 0.0
    return [s + strength * c * scale for s, c in zip(scores, back, strict=True)]


def slow_scale(scores: Sequence[float], counts: Sequence[float], strength: float) -> list[float]:
    weights = [(d + 1) ** -strength for d in counts]
    mean = sum(weights) / len(weights)
    return [s * w / mean for s, w in zip(from_zero_to_one(scores), weights, strict=True)]


def slow_fewest(k: int, share: float, significance: float) -> list[int]:
    """FA*IR's table from the definition of the binomial distribution."""
    needed = []
    for n in range(1, k + 1):
        below, t = 0.0, -1
        while below <= significance:
            t += 1
            below += math.comb(n, t) * share**t * (1 - share) ** (n - t)
        needed.append(t)
    return needed


def assert_greedy(found: list[int], n: int, k: int, gain: Callable[[list[int], int], float]) -> None:
    """At every step no candidate that is left is worth more; where one is best by far, it is that one.

    Worths that differ by rounding alone may go either way.
    """
    assert len(found) == k
    chosen: list[int] = []
    for place in found:
        left = [other for other in range(n) if other not in chosen]
        if not left:
            assert place == -1
            continue
        assert place in left
        best = max(gain(chosen, other) for other in left)
        assert gain(chosen, place) >= best - 1e-9
        chosen.append(place)
