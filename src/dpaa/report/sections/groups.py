"""Items by the values of a column (`dpaa evaluate --group-by`): who gets shown, and who is found."""

from __future__ import annotations

from markupsafe import Markup

from dpaa._text import printable
from dpaa.evaluation.metrics import OF_COLUMNS, explain
from dpaa.report.inputs import Family, Inputs, Run
from dpaa.report.parts import Cell, Head, Section, number, share, table
from dpaa.report.rendering import render
from dpaa.report.sections.metrics import ARROWS, best_of, measured_alike

SHOWN_GROUPS = 40
SHOWN_METRIC = "ndcg"
"""The accuracy that stands open; the others are folded."""


def section(inputs: Inputs) -> Section:
    """Tables for each column by which runs that were measured alike were evaluated."""
    parts = []
    for family, alike in measured_alike(inputs):
        columns = {run.protocol.group_by: None for run in alike if run.groups}
        for column in columns:
            runs = [run for run in alike if run.groups and run.protocol.group_by == column]
            parts.append(_part(family, printable(str(column)), runs))
    names = ", ".join(dict.fromkeys(str(part["column"]) for part in parts))
    return Section("groups", f"Items by {names}", "Groups", render("groups.html", parts=parts))


def _part(family: Family, column: str, runs: list[Run]) -> dict[str, object]:
    k = runs[0].protocol.largest_k
    known = {name: group for run in runs for name, group in run.groups.items()}
    largest = sorted(known, key=lambda name: -(known[name].get("history") or 0.0))[:SHOWN_GROUPS]
    shown = [name for name in known if name in largest]
    told = [Cell(printable(name.removeprefix(f"{runs[0].protocol.group_by}="))) for name in shown]
    common = [
        [number(known[name].get("items"), 0) for name in shown],
        [share(known[name].get("history")) for name in shown],
    ]
    of_runs = [[share(run.groups.get(name, {}).get(str(k))) for name in shown] for run in runs]
    heads = [
        Head(column),
        Head("items", "how many items have this value"),
        Head("history", "share of the training interactions of the same users"),
        *(Head(run.name, f"share of the places in lists of {k}") for run in runs),
    ]
    caption = f"Share of the history and of the lists of {k} by {column} on {family.name}"
    tables = {
        metric: _accuracy(f"{metric}@{k}", column, family, runs, shown, told)
        for metric in OF_COLUMNS
        if any(f"{metric}@{k}/{name}" in run.metrics for run in runs for name in shown)
    }
    return {
        "column": column,
        "k": k,
        "runs": len(runs),
        "shares": table(caption, heads, list(zip(told, *common, *of_runs, strict=True))),
        "open": tables.pop(SHOWN_METRIC, None),
        "folded": list(tables.values()),
        "left_out": len(known) - len(shown),
    }


def _accuracy(metric: str, column: str, family: Family, runs: list[Run], shown: list[str], told: list[Cell]) -> Markup:
    """One metric counted on the items of each group; best of each row."""
    words = explain(metric)
    rows = []
    for name, cell in zip(shown, told, strict=True):
        key = f"{metric}/{name}"
        best = best_of(key, {run.name: run.metrics[key] for run in runs if key in run.metrics})
        rows.append([cell, *(number(run.metrics.get(key), 4, best=run.name in best) for run in runs)])
    arrow = f" {ARROWS[words.better]}" if words else ""
    heads = [Head(column), *(Head(run.name, words.words if words else None) for run in runs)]
    caption = f"{metric}{arrow} counted on the items with each value of {column} on {family.name}. ★ = best of its row."
    return table(caption, heads, rows)
