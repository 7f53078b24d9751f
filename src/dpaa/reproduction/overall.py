"""Data with unbiased test sets, under every overlap convention: overall performance, and popular and niche items.

A dataset that is not here is shown from results that were made elsewhere and taken in (`importing.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dpaa._text import counted
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import OVERLAPS
from dpaa.reproduction import paper
from dpaa.reproduction.budget import FIRST, ROWS, SIMPLE, Budget
from dpaa.reproduction.differences import difference_table
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.random_baseline import random_ranking
from dpaa.reproduction.results import RunResult
from dpaa.reproduction.sources import TITLES
from dpaa.reproduction.tables import LEGEND, Cell, Chapter, Quantity, Table, cell_of, improvements, ranked_columns
from dpaa.reproduction.trainings import failures

FURTHER = ("recall@20/popular", "recall@20/niche", "arp@20", "coverage@20")
FITS = 0.1
"""A convention fits a row of the paper if ours is that near, on average over the metrics."""


@dataclass(frozen=True)
class Shown:
    """The results of one dataset and protocol: trained here, or taken in."""

    data: str
    results: Sequence[RunResult]
    labels: tuple[str, ...]
    seeds: int
    overlapping: bool
    """Whether test pairs are training pairs too, so that conventions differ."""
    chance: Callable[[str], dict[str, float]] | None = None
    """What a random ranking would give under a convention, where the data are here."""
    name: str = ""
    """Of its tables; empty where trained here."""
    how: str = ""
    """The protocol, where it is not the budget's."""
    origins: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Of its tables."""
        return TITLES[self.data] + (f", made elsewhere ({self.how})" if self.how else "")

    @property
    def table(self) -> str:
        """How the names of its tables begin."""
        return f"{self.data}-{self.name}" if self.name else self.data


def overall_chapter(plan: Plan) -> Chapter:
    """A table per dataset and convention; no table mixes two."""
    tables = []
    for shown in _shown(plan):
        tables += _tables(plan, shown, paper.OVERALL_METRICS, FURTHER, paper.OVERALL[shown.data])
        if shown.overlapping:
            tables.append(_which_convention(shown))
        else:
            tables.append(_distances(shown, paper.OVERALL_METRICS, paper.OVERALL[shown.data]))
        columns = {
            f"{metric} {overlap}" if shown.overlapping else metric: (shown.data, Quantity(metric, overlap))
            for overlap in (OVERLAPS if shown.overlapping else ("drop",))
            for metric in ("recall@20", "ndcg@20")
        }
        tables += difference_table(f"{shown.table}-differences", shown.title, shown.results, columns)
    return _chapter(plan, "overall", "Overall performance", tables)


def groups_chapter(plan: Plan) -> Chapter:
    """For whom each method finds what users like; the trainings are those of the overall table."""
    tables = []
    for shown in _shown(plan):
        tables += _tables(plan, shown, paper.GROUP_METRICS, ("aplt@20", "arp@20"), paper.GROUPS[shown.data])
        if not shown.overlapping:
            tables.append(_distances(shown, paper.GROUP_METRICS, paper.GROUPS[shown.data]))
    about = (
        "Popular items are the fewest that have 80 % of the training pairs; the ranking is over all items, and only "
        "what counts as relevant is restricted to the group."
    )
    return _chapter(plan, "groups", "Popular and niche items", tables, about)


# ---------------------------------------------------------------------- what is shown


def _shown(plan: Plan) -> list[Shown]:
    """Datasets that are here, then those of which results were taken in."""
    found = []
    for name, data in plan.real.items():
        rows = [one for one in plan.real_results if one.data == name]
        found.append(Shown(name, rows, plan.rows, len(plan.seeds_on(name)), _overlaps(data), _chance(data)))
    for name, results in plan.imported.items():
        found += foreign(name, results, plan.budget)
    if not found:
        raise InputError("there is nothing to run on: " + "; ".join(plan.sources.missing({})))
    return found


def _overlaps(data: Dataset) -> bool:
    return bool(len(data.overlap("train", "test")))


def _chance(data: Dataset) -> Callable[[str], dict[str, float]]:
    return lambda overlap: random_ranking(data, overlap)


def foreign(data: str, results: Sequence[RunResult], budget: Budget) -> list[Shown]:
    """Results taken in, those that were made alike together; of this budget's protocol only, where there are any.

    Under the first protocol made alike means: the same embedding size and learning rate; what has neither is with all.
    """
    same = [one for one in results if one.protocol == budget.protocol]
    if budget.protocol != FIRST and same:
        return [_foreign(data, budget.protocol, f"protocol {budget.protocol}", same)]
    older = [one for one in results if one.protocol == FIRST]
    sizes = {tuple(one.settings.get(name) for name in ("embedding_size", "learning_rate")) for one in older}
    trained = sorted((size, rate) for size, rate in sizes if size and rate)
    found = []
    for size, rate in trained:
        alike = [
            one
            for one in older
            if one.settings.get("embedding_size", size) == size and one.settings.get("learning_rate", rate) == rate
        ]
        layers = next(one.settings["layers"] for one in alike if "layers" in one.settings)
        how = f"D {size}, L {layers}, learning rate {rate:g} all along, settings not tuned"
        found.append(_foreign(data, f"D{size}-lr{rate:g}", how, alike))
    return found


def _foreign(data: str, name: str, how: str, results: Sequence[RunResult]) -> Shown:
    order = {method: place for place, method in enumerate((*ROWS, *SIMPLE))}
    labels = sorted({one.label for one in results}, key=lambda label: (order.get(label.split()[0], len(order)), label))
    metrics = [one.metrics for one in results if one.metrics]
    overlapping = any(one["drop"] != one[overlap] for one in metrics for overlap in OVERLAPS)
    seeds = max(len([one for one in results if one.label == label]) for label in labels)
    origins = tuple(dict.fromkeys((one.imported or {}).get("origin", "") for one in results))
    how = f"{how}, {counted(seeds, 'seed', 'seeds')}"
    return Shown(data, results, tuple(labels), seeds, overlapping, name=name, how=how, origins=origins)


def _chapter(plan: Plan, name: str, title: str, tables: Sequence[Table], *about: str) -> Chapter:
    own = {**plan.real, **dict.fromkeys(plan.imported)}
    missing = (*plan.sources.missing(own), *plan.left_out.values(), *failures(plan.real_results if plan.real else ()))
    return Chapter(name, title, (plan.in_words(), *about, LEGEND + "."), tuple(tables), missing=missing)


# ---------------------------------------------------------------------- tables


def _tables(
    plan: Plan, shown: Shown, compared: Sequence[str], further: Sequence[str], printed: Mapping[str, paper.Row]
) -> list[Table]:
    """The rows under each convention; where no pair is in both training and test the conventions are one.

    `printed` are the paper's rows: values of the metrics `compared`.
    """
    theirs = {method: dict(zip(compared, row, strict=True)) for method, row in printed.items()}
    metrics = (*compared, *further)
    if shown.overlapping:
        conventions = [(overlap, f"overlap convention `{overlap}`") for overlap in OVERLAPS]
    else:
        conventions = [("drop", "no test pair is a training pair: one convention")]
    tables = [_table(shown, overlap, named, metrics, theirs) for overlap, named in conventions]
    if plan.runner.with_dial:
        named = "overlap convention `drop`, with the popularity dial where validation puts it"
        tables.append(_table(shown, "drop", named, metrics, {}, dial=True))
    return tables


def _table(
    shown: Shown,
    overlap: str,
    named: str,
    metrics: Sequence[str],
    theirs: Mapping[str, Mapping[str, float]],
    dial: bool = False,
) -> Table:
    rows = []
    for label in shown.labels:
        printed = theirs.get(paper.row_of(label) or "", {})
        quantities = [Quantity(metric, overlap, dial) for metric in metrics]
        cells = [cell_of(shown.results, shown.data, label, one, printed.get(one.metric)) for one in quantities]
        rows.append((label, cells))
    accuracy = [place for place, metric in enumerate(metrics) if metric.startswith(("recall", "ndcg", "hit"))]
    known = [theirs[method] for method in paper.BASELINES if method in theirs]
    best = [max((row[metric] for row in known if metric in row), default=None) for metric in metrics]
    chance = shown.chance(overlap) if shown.chance and not dial else {}
    expected = tuple(Cell((chance[metric],)) if metric in chance else Cell() for metric in metrics)
    return Table(
        f"{shown.table}-{overlap}{'-dial' if dial else ''}",
        f"{shown.title}, {named}",
        f"method ({counted(shown.seeds, 'seed', 'seeds')})",
        tuple(metrics),
        ranked_columns(rows, accuracy),
        (*improvements(rows, accuracy, best), *([("random ranking (expected)", expected)] if chance else [])),
        tuple(f"Made elsewhere: {origin}." for origin in shown.origins),
    )


def _distances(shown: Shown, metrics: Sequence[str], printed: Mapping[str, paper.Row]) -> Table:
    """How far each row is from the paper's, relative to it: by metric, and the mean of the sizes."""
    rows = []
    for label in shown.labels:
        theirs = printed.get(paper.row_of(label) or "")
        if theirs is None:
            continue
        own = [cell_of(shown.results, shown.data, label, Quantity(metric)).mean for metric in metrics]
        apart = [100 * (ours / number - 1) for ours, number in zip(own, theirs, strict=True) if number]
        cells = [Cell((value,), form="%") for value in apart] + [Cell() for _ in range(len(metrics) - len(apart))]
        mean = sum(map(abs, apart)) / len(apart) if apart else math.nan
        rows.append((label, (*cells, Cell((mean,), form=".1f"))))
    columns = (*(f"{metric} against the paper's" for metric in metrics), "mean distance, %")
    title = f"{shown.title}: how far each row is from the paper's"
    return Table(f"{shown.table}-distances", title, "method", columns, tuple(rows))


def _which_convention(shown: Shown) -> Table:
    """Which convention each row of the paper has the level of: mean relative distance over its three metrics."""
    rows = []
    nearest: dict[str, list[str]] = {"mask": [], "keep": [], "drop": []}
    for label in shown.labels:
        theirs = paper.OVERALL[shown.data].get(paper.row_of(label) or "", ())
        apart = {overlap: _distance(shown, label, overlap, theirs) for overlap in nearest}
        known = [(value, overlap) for overlap, value in apart.items() if not math.isnan(value)]
        if not known:
            continue
        distance, overlap = min(known)
        verdict = overlap if distance <= FITS else f"none ({overlap} is nearest)"
        rows.append((label, (*(Cell((100 * value,), form=".0f") for value in apart.values()), Cell(text=verdict))))
        nearest[overlap].append(label)
    told = [f"`{overlap}`: {', '.join(fitting)}" for overlap, fitting in nearest.items() if fitting]
    note = "Nearest convention by row of the paper: " + "; ".join(told) + ". A table that mixes two compares nothing."
    columns = ("mask, % apart", "keep, % apart", "drop, % apart", f"fits (within {FITS:.0%})")
    title = f"{shown.title}: which convention fits which row of the paper (mean distance of recall, NDCG and hit ratio)"
    return Table(f"{shown.table}-conventions", title, "method", columns, tuple(rows), notes=(note,) if told else ())


def _distance(shown: Shown, label: str, overlap: str, theirs: Iterable[float]) -> float:
    """Mean of |ours − paper| / paper; no number without the paper's."""
    ours = [
        cell_of(shown.results, shown.data, label, Quantity(metric, overlap)).mean for metric in paper.OVERALL_METRICS
    ]
    apart = [abs(own - printed) / printed for own, printed in zip(ours, theirs, strict=False)]
    return sum(apart) / len(apart) if apart else math.nan
