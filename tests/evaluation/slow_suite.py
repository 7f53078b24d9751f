"""The suite again, with sets, loops and fractions: slow, readable, and sharing no code with the package."""

import math
from collections import Counter
from typing import Any


def mean(values: Any) -> float:
    known = [value for value in values if value == value]
    return sum(known) / len(known) if known else math.nan


def popular_set(counts: list[float], share: float = 0.8) -> set[int]:
    chosen: set[int] = set()
    covered = 0.0
    for item in sorted(range(len(counts)), key=lambda i: (-counts[i], i)):
        if covered >= share * sum(counts) or counts[item] == 0:
            break
        chosen.add(item)
        covered += counts[item]
    return chosen


def accuracy(ranked: list[int], wanted: set[int], k: int) -> dict[str, float]:
    """`ranked` may hold −1 places; `wanted` is not empty."""
    hits = [rank for rank, item in enumerate(ranked[:k], start=1) if item in wanted]
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    return {
        "recall": len(hits) / len(wanted),
        "precision": len(hits) / k,
        "ndcg": sum(1 / math.log2(rank + 1) for rank in hits) / best,
        "mrr": 1 / hits[0] if hits else 0.0,
        "map": sum((place + 1) / rank for place, rank in enumerate(hits)) / min(k, len(wanted)),
        "hit": float(bool(hits)),
    }


def gini(values: list[int]) -> float:
    """Mean absolute difference of all pairs over twice the mean."""
    n, total = len(values), sum(values)
    if not total:
        return math.nan
    return sum(abs(one - other) for one in values for other in values) / (2 * n * total)


def entropy(values: list[int]) -> float:
    total = sum(values)
    return sum(value / total * math.log2(total / value) for value in values if value) if total else math.nan


def spread(one: float, other: float) -> float:
    return abs(one - other) / (one + other) if one + other > 0 else math.nan


def jensen_shannon(one: list[float], other: list[float]) -> float:
    def divergence(p: list[float], q: list[float]) -> float:
        return sum(a * math.log2(a / b) for a, b in zip(p, q, strict=True) if a > 0)

    middle = [(a + b) / 2 for a, b in zip(one, other, strict=True)]
    return math.sqrt(max(0.0, (divergence(one, middle) + divergence(other, middle)) / 2))


def taste_of_rows(histories: list[set[int]], popular: set[int]) -> list[str | None]:
    shares = [len(items & popular) / len(items) if items else None for items in histories]
    there = sorted(share for share in shares if share is not None)
    if not there:
        return [None for _ in shares]
    lo, hi = there[math.floor(0.2 * (len(there) - 1))], there[math.ceil(0.8 * (len(there) - 1))]

    def name(share: float | None) -> str | None:
        if share is None:
            return None
        if lo == hi or lo < share < hi:
            return "diverse"
        return "niche" if share <= lo else "blockbuster"

    return [name(share) for share in shares]


def suite(
    lists: list[list[int]],
    relevant: list[set[int]],
    counts: list[int],
    histories: list[set[int]],
    candidates: list[int],
    k: int,
) -> dict[str, float]:
    items = range(len(counts))
    popular = popular_set(counts)
    niche = set(items) - popular
    cut = [row[:k] for row in lists]
    held = [[item for item in row if item >= 0] for row in cut]
    tastes = taste_of_rows(histories, popular)
    found: dict[str, float] = {}

    def group_accuracy(suffix: str, group: set[int], rows: list[int]) -> None:
        each = [accuracy(cut[r], relevant[r] & group, k) for r in rows if relevant[r] & group]
        for name in ("recall", "precision", "ndcg", "mrr", "map", "hit"):
            found[f"{name}@{k}{suffix}"] = mean([one[name] for one in each])

    everyone = list(range(len(lists)))
    for suffix, group in (("", set(items)), ("/popular", popular), ("/niche", niche)):
        group_accuracy(suffix, group, everyone)
    arp = [mean([counts[i] for i in row]) for row in held]
    history_arp = [mean([counts[i] for i in history]) for history in histories]
    lift = [
        (one - other) / other if history else math.nan
        for one, other, history in zip(arp, history_arp, histories, strict=True)
    ]
    head_band = popular_set(counts, 0.2)

    def bands(values: Any) -> list[float]:
        values = list(values)
        parts = [sum(i in part for i in values) for part in (niche, popular - head_band, head_band)]
        return [part / len(values) for part in parts]

    upd = [
        jensen_shannon(bands(row), bands(history)) if row and history else math.nan
        for row, history in zip(held, histories, strict=True)
    ]
    for rows, suffix in [(everyone, "")] + [
        ([r for r in everyone if tastes[r] == taste], f"/{taste}-tastes")
        for taste in ("niche", "diverse", "blockbuster")
    ]:
        if suffix:
            group_accuracy(suffix, set(items), rows)
        found[f"arp@{k}{suffix}"] = mean([arp[r] for r in rows])
        found[f"popularity_lift@{k}{suffix}"] = mean([lift[r] for r in rows])
        found[f"upd@{k}{suffix}"] = mean([upd[r] for r in rows])
    cold = [r for r in everyone if not histories[r]]
    if cold:
        group_accuracy("/cold-users", set(items), cold)
        group_accuracy("/warm-users", set(items), [r for r in everyone if histories[r]])
    found[f"aplt@{k}"] = mean([len(niche & set(row)) / len(row) for row in held if row])
    found[f"aclt@{k}"] = mean([len(niche & set(row)) for row in held if row])
    shown = Counter(item for row in held for item in row)
    n_head = math.ceil(sum(count > 0 for count in counts) / 5)
    head = sorted(items, key=lambda i: (-counts[i], i))[:n_head]
    found[f"head_share@{k}"] = sum(shown[i] for i in head) / sum(shown.values()) if shown else math.nan
    found[f"coverage@{k}"] = len(set(shown) & set(candidates)) / len(candidates)
    found[f"gini@{k}"] = gini([shown[i] for i in candidates])
    found[f"entropy@{k}"] = entropy(list(shown.values()))
    rates = []
    for group in (popular, niche):
        wanted = sum(len(items_of & group) for items_of in relevant)
        hits = sum(len(set(row) & items_of & group) for row, items_of in zip(held, relevant, strict=True))
        rates.append(hits / wanted if wanted else math.nan)
    found[f"pop_reo@{k}"] = spread(*rates)
    rates = []
    for group in (popular, niche):
        could = sum(len((set(candidates) & group) - history) for history in histories)
        rates.append(sum(len(set(row) & group) for row in held) / could if could else math.nan)
    found[f"pop_rsp@{k}"] = spread(*rates)
    return found


def exposures(
    lists: list[list[int]], relevant: list[set[int]], candidates: list[int], groups: dict[str, set[int]], k: int
) -> dict[str, float]:
    """Exposure of groups of items, named `column=value`."""
    places = [(item, 1 / math.log2(rank + 1)) for row in lists for rank, item in enumerate(row[:k], 1) if item >= 0]
    liked = [item for items in relevant for item in items]

    def share(pairs: list[tuple[int, float]], group: set[int]) -> float:
        total = sum(worth for _, worth in pairs)
        return sum(worth for item, worth in pairs if item in group) / total if total else 0.0

    found, ratios, loss = {}, {"exposure": [], "exposure_of_catalogue": []}, 0.0
    for name, group in groups.items():
        shown, merit = share(places, group), share([(item, 1.0) for item in liked], group)
        for metric, due in (
            ("exposure", merit),
            ("exposure_of_catalogue", share([(i, 1.0) for i in candidates], group)),
        ):
            found[f"{metric}@{k}/{name}"] = shown / due if due else math.nan
            ratios[metric] += [shown / due] if due else []
        found[f"exposure_loss@{k}/{name}"] = (shown - merit) ** 2
        loss += (shown - merit) ** 2
    column = next(iter(groups)).split("=")[0]
    found |= {f"{metric}@{k}/{column}": min(each) if each else math.nan for metric, each in ratios.items()}
    return found | {f"exposure_loss@{k}/{column}": loss}
