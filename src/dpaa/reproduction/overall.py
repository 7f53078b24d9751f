"""Data with unbiased test sets, under every overlap convention: overall performance, and popular and niche items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import OVERLAPS
from dpaa.reproduction import paper
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.random_baseline import random_ranking
from dpaa.reproduction.results import RunResult
from dpaa.reproduction.sources import TITLES
from dpaa.reproduction.tables import LEGEND, Cell, Chapter, Quantity, Table, cell_of, improvements, ranked_columns
from dpaa.reproduction.trainings import failures
from dpaa.words import counted

FURTHER = ("recall@20/popular", "recall@20/niche", "arp@20", "coverage@20")
FITS = 0.1
"""A convention fits a row of the paper if ours is that near, on average over the metrics."""


def overall_chapter(plan: Plan) -> Chapter:
    """A table per dataset and convention; no table mixes two."""
    tables = []
    for name, data in _real(plan).items():
        tables += _tables(plan, name, data, paper.OVERALL_METRICS, FURTHER, paper.OVERALL[name])
        if len(data.overlap("train", "test")):
            tables.append(_which_convention(plan.real_results, name, plan.rows))
    return _chapter(plan, "overall", "Overall performance", tables)


def groups_chapter(plan: Plan) -> Chapter:
    """For whom each method finds what users like; the trainings are those of the overall table."""
    tables = []
    for name, data in _real(plan).items():
        tables += _tables(plan, name, data, paper.GROUP_METRICS, ("aplt@20", "arp@20"), paper.GROUPS[name])
    about = (
        "Popular items are the fewest that have 80 % of the training pairs; the ranking is over all items, and only "
        "what counts as relevant is restricted to the group."
    )
    return _chapter(plan, "groups", "Popular and niche items", tables, about)


def _real(plan: Plan) -> dict[str, Dataset]:
    if not plan.real:
        raise InputError("there is nothing to run on: " + "; ".join(plan.sources.missing({})))
    return plan.real


def _chapter(plan: Plan, name: str, title: str, tables: Sequence[Table], *about: str) -> Chapter:
    missing = (*plan.sources.missing(plan.real), *plan.left_out.values(), *failures(plan.real_results))
    return Chapter(name, title, (plan.in_words(), *about, LEGEND + "."), tuple(tables), missing=missing)


def _tables(
    plan: Plan,
    name: str,
    data: Dataset,
    compared: Sequence[str],
    further: Sequence[str],
    printed: Mapping[str, paper.Row],
) -> list[Table]:
    """The rows under each convention; where no pair is in both training and test the conventions are one.

    `printed` are the paper's rows: values of the metrics `compared`.
    """
    theirs = {method: dict(zip(compared, row, strict=True)) for method, row in printed.items()}
    metrics = (*compared, *further)
    if len(data.overlap("train", "test")):
        conventions = [(overlap, f"overlap convention `{overlap}`") for overlap in OVERLAPS]
    else:
        conventions = [("drop", "no test pair is a training pair: one convention")]
    tables = [_table(plan, name, data, overlap, named, metrics, theirs) for overlap, named in conventions]
    if plan.runner.with_dial:
        named = "overlap convention `drop`, with the popularity dial where validation puts it"
        tables.append(_table(plan, name, data, "drop", named, metrics, {}, dial=True))
    return tables


def _table(
    plan: Plan,
    name: str,
    data: Dataset,
    overlap: str,
    named: str,
    metrics: Sequence[str],
    theirs: Mapping[str, Mapping[str, float]],
    dial: bool = False,
) -> Table:
    rows, results = [], plan.real_results
    for label in plan.rows:
        printed = theirs.get(paper.row_of(label) or "", {})
        quantities = [Quantity(metric, overlap, dial) for metric in metrics]
        rows.append((label, [cell_of(results, name, label, one, printed.get(one.metric)) for one in quantities]))
    accuracy = [place for place, metric in enumerate(metrics) if metric.startswith(("recall", "ndcg", "hit"))]
    known = [theirs[method] for method in paper.BASELINES if method in theirs]
    best = [max((row[metric] for row in known if metric in row), default=None) for metric in metrics]
    chance = random_ranking(data, overlap)
    expected = tuple(Cell((chance[metric],)) if metric in chance else Cell() for metric in metrics)
    return Table(
        f"{name}-{overlap}{'-dial' if dial else ''}",
        f"{TITLES[name]}, {named}",
        f"method ({counted(len(plan.seeds_on(name)), 'seed', 'seeds')})",
        tuple(metrics),
        ranked_columns(rows, accuracy),
        (*improvements(rows, accuracy, best), *([] if dial else [("random ranking (expected)", expected)])),
    )


def _which_convention(results: Sequence[RunResult], name: str, labels: Sequence[str]) -> Table:
    """Which convention each row of the paper has the level of: mean relative distance over its three metrics."""
    rows = []
    nearest: dict[str, list[str]] = {"mask": [], "keep": [], "drop": []}
    for label in labels:
        theirs = paper.OVERALL[name].get(paper.row_of(label) or "", ())
        apart = {overlap: _distance(results, name, label, overlap, theirs) for overlap in nearest}
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
    title = (
        f"{TITLES[name]}: which convention fits which row of the paper (mean distance of recall, NDCG and hit ratio)"
    )
    return Table(f"{name}-conventions", title, "method", columns, tuple(rows), notes=(note,) if told else ())


def _distance(results: Sequence[RunResult], name: str, label: str, overlap: str, theirs: paper.Row) -> float:
    """Mean of |ours − paper| / paper; no number without the paper's."""
    ours = [cell_of(results, name, label, Quantity(metric, overlap)).mean for metric in paper.OVERALL_METRICS]
    apart = [abs(own - printed) / printed for own, printed in zip(ours, theirs, strict=False)]
    return sum(apart) / len(apart) if apart else math.nan
