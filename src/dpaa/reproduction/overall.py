"""Overall performance on data with unbiased test sets, under every overlap convention."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import OVERLAPS
from dpaa.reproduction import paper
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.random_baseline import random_ranking
from dpaa.reproduction.sources import TITLES
from dpaa.reproduction.tables import LEGEND, Cell, Chapter, Table, form_of, improvements, ranked_columns, values_of
from dpaa.reproduction.trainings import RunResult, failures

FURTHER = ("recall@20/popular", "recall@20/niche", "arp@20", "coverage@20")
FITS = 0.1
"""A convention fits a row of the paper if ours is that near, on average over the metrics."""


def chapter(plan: Plan) -> Chapter:
    """A table per dataset and convention; no table mixes two."""
    need_some_data(plan)
    results, tables = plan.real_results, []
    for name, data in plan.real.items():
        metrics = (*paper.OVERALL_METRICS, *FURTHER)
        tables += convention_tables(plan, results, name, data, metrics, paper.OVERALL[name], paper.OVERALL_METRICS)
        if len(data.overlap("train", "test")):
            tables.append(_which_convention(results, name, plan.rows))
    about = (plan.in_words(), LEGEND + ".")
    missing = (*plan.sources.missing(plan.real), *plan.left_out.values(), *failures(results))
    return Chapter("overall", "Overall performance", about, tuple(tables), missing=missing)


def need_some_data(plan: Plan) -> None:
    """At least one real dataset."""
    if not plan.real:
        raise InputError("there is nothing to run on: " + "; ".join(plan.sources.missing({})))


def convention_tables(
    plan: Plan,
    results: Sequence[RunResult],
    name: str,
    data: Dataset,
    metrics: Sequence[str],
    printed: Mapping[str, tuple[float, ...]],
    compared: Sequence[str],
) -> list[Table]:
    """The rows under each convention; where no pair is in both training and test the conventions are one.

    `printed` are the paper's rows: values of the metrics `compared`, which are the first of `metrics`.
    """
    differ = len(data.overlap("train", "test")) > 0
    tables = []
    for overlap in OVERLAPS if differ else ("drop",):
        named = f"overlap convention `{overlap}`" if differ else "no test pair is a training pair: one convention"
        tables.append(_table(plan, results, name, data, overlap, named, metrics, printed, compared, dial=False))
    if plan.runner.with_dial:
        named = "overlap convention `drop`, with the popularity dial where validation puts it"
        tables.append(_table(plan, results, name, data, "drop", named, metrics, printed, compared, dial=True))
    return tables


def _table(
    plan: Plan,
    results: Sequence[RunResult],
    name: str,
    data: Dataset,
    overlap: str,
    named: str,
    metrics: Sequence[str],
    printed: Mapping[str, tuple[float, ...]],
    compared: Sequence[str],
    dial: bool,
) -> Table:
    rows = []
    for label in plan.rows:
        theirs = dict(zip(compared, printed.get(paper.row_of(label) or "", ()), strict=False))
        cells = [
            Cell(
                values_of(results, name, label, overlap, metric, dial),
                None if dial else theirs.get(metric),
                form_of(metric),
            )
            for metric in metrics
        ]
        rows.append((label, cells))
    accuracy = [place for place, metric in enumerate(metrics) if metric.startswith(("recall", "ndcg", "hit"))]
    marked = tuple((label, tuple(cells)) for label, cells in ranked_columns(rows, accuracy))
    floor = random_ranking(data, overlap)
    chance = tuple(Cell((floor[metric],)) if metric in floor else Cell() for metric in metrics)
    best = [max(printed[method][place] for method in paper.BASELINES) for place in range(len(compared))]
    theirs_best = [*(None if dial else value for value in best), *(None for _ in metrics[len(compared) :])]
    footer = (
        *improvements(rows, accuracy, theirs_best),
        *([("random ranking (expected)", chance)] if not dial else []),
    )
    seeds = len(plan.seeds_on(name))
    return Table(
        f"{name}-{overlap}{'-dial' if dial else ''}",
        f"{TITLES[name]}, {named}",
        f"method ({seeds} seed{'s' if seeds > 1 else ''})",
        tuple(metrics),
        marked,
        footer,
    )


def _which_convention(results: Sequence[RunResult], name: str, labels: Sequence[str]) -> Table:
    """Which convention each row of the paper has the level of: mean relative distance over its three metrics."""
    rows, fits = [], []
    for label in labels:
        theirs = paper.OVERALL[name].get(paper.row_of(label) or "")
        apart = {overlap: _distance(results, name, label, overlap, theirs) for overlap in ("mask", "keep", "drop")}
        if theirs is None or all(math.isnan(value) for value in apart.values()):
            continue
        least = min((value, overlap) for overlap, value in apart.items() if not math.isnan(value))
        verdict = least[1] if least[0] <= FITS else f"none ({least[1]} is nearest)"
        rows.append((label, (*(Cell((100 * value,), form=".0f") for value in apart.values()), Cell(text=verdict))))
        fits.append((label, least[1]))
    told = [
        f"`{overlap}`: {', '.join(label for label, nearest in fits if nearest == overlap)}"
        for overlap in ("mask", "keep", "drop")
        if any(nearest == overlap for _, nearest in fits)
    ]
    note = "Nearest convention by row of the paper: " + "; ".join(told) + ". A table that mixes two compares nothing."
    columns = ("mask, % apart", "keep, % apart", "drop, % apart", f"fits (within {FITS:.0%})")
    title = (
        f"{TITLES[name]}: which convention fits which row of the paper (mean distance of recall, NDCG and hit ratio)"
    )
    return Table(f"{name}-conventions", title, "method", columns, tuple(rows), notes=(note,) if told else ())


def _distance(
    results: Sequence[RunResult], name: str, label: str, overlap: str, theirs: tuple[float, ...] | None
) -> float:
    """Mean of |ours − paper| / paper."""
    if theirs is None:
        return math.nan
    ours = [Cell(values_of(results, name, label, overlap, metric)).mean for metric in paper.OVERALL_METRICS]
    return sum(abs(own - printed) / printed for own, printed in zip(ours, theirs, strict=True)) / len(theirs)
