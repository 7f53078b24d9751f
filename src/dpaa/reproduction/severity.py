"""How methods bear growing bias: KuaiRec's full exposure, biased with a severity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpaa._text import counted
from dpaa.errors import InputError
from dpaa.report.parts import Figure, signed
from dpaa.reproduction import paper
from dpaa.reproduction.differences import difference_table, draw_table
from dpaa.reproduction.figures import severity_figure
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.results import RunResult
from dpaa.reproduction.tables import (
    LEGEND,
    Cell,
    Chapter,
    Quantity,
    Table,
    improvements,
    rank_agreement,
    ranked_columns,
    severity_cells,
)
from dpaa.reproduction.trainings import failures

RECALL = "recall@20"
METRICS = (RECALL, "ndcg@20", "hit@20", "recall@20/popular", "recall@20/niche", "arp@20")
HELD_AGAINST = ("most-popular", "lightgcn")
"""What DPAA's curves are drawn with, before those of the other methods."""


def chapter(plan: Plan) -> Chapter:
    """Recall beside the paper's; the other metrics and the dial in tables of their own."""
    results = plan.severity_results
    tables = [table(plan, results, metric) for metric in METRICS]
    figures = [_figure("severity", "Recall@20 as the bias grows", plan, results, dial=False)]
    if plan.runner.with_dial:
        tables += [table(plan, results, metric, dial=True) for metric in METRICS]
        figures.append(_figure("severity-dial", "Recall@20 with the popularity dial", plan, results, dial=True))
    apart = plan.budget.draws is not None
    columns = {f"s = {severity:g}": (f"s={severity:g}", Quantity(RECALL)) for severity in plan.severities}
    tables[1:1] = difference_table("differences", f"{RECALL} by severity", results, columns, same_data=apart)
    whose = "A seed draws the data anew, too: most of the deviation is the data's, which all rows share."
    if apart:
        whose = "Seeds are of training alone: all see one draw of the data. Further draws: `dpaa reproduce draws`."
    about = (
        plan.in_words(),
        "Training pairs are drawn from KuaiRec's fully observed matrix with P ∝ rank^(−s); validation and test are "
        "unbiased. Overlap convention `drop` (no test pair is a training pair, so the conventions are one).",
        f"{LEGEND}. {whose}",
    )
    missing = (*plan.left_out.values(), *failures(results))
    told = conclusion(plan, results)
    return Chapter("severity", "Growing bias severity", about, tuple(tables), tuple(figures), missing, told)


def draws_chapter(plan: Plan) -> Chapter:
    """How much another draw of the data changes, apart from the seeds of training."""
    if plan.budget.draws is None:
        raise InputError(f"in budget {plan.budget.name} every seed draws the data anew; use --budget standard-2")
    draws = plan.draw_results
    every = [one for of_draw in draws.values() for one in of_draw]
    labels = {label: label for label in plan.rows if any(one.label == label for one in every)}
    printed = {label: paper.SEVERITY.get(paper.row_of(label) or "", ()) for label in labels}
    cells = severity_cells(every, labels, plan.severities, Quantity(RECALL), printed)
    columns = tuple(f"s = {severity:g}" for severity in plan.severities)
    corner = f"method ({counted(len(draws), 'draw', 'draws')})"
    title = f"{RECALL} over draws of the data, one seed of training each, overlap convention `drop`"
    rows = tuple((label, tuple(row)) for label, row in cells.items())
    tables = [
        Table("recall@20 over draws", title, corner, columns, rows),
        *draw_table("draws", draws, plan.severities, Quantity(RECALL)),
    ]
    about = (plan.in_words(), "± deviation over draws; below: the paper's number, difference.")
    return Chapter("draws", "Other draws of the severity data", about, tuple(tables), missing=tuple(failures(every)))


def conclusion(plan: Plan, results: Sequence[RunResult]) -> str:
    """What is left of recall from the first severity to the last: of the main rows, and who bears it best."""
    cells = severity_cells(results, {label: label for label in plan.rows}, plan.severities, Quantity(RECALL), {})
    ends = {label: (row[0].mean, row[-1].mean) for label, row in cells.items() if len(row) > 1}
    known = {label: pair for label, pair in ends.items() if all(map(math.isfinite, pair)) and pair[0] > 0}
    main = [label for label in known if label in HELD_AGAINST or paper.row_of(label) == "dpaa"]
    if not main:
        return ""
    told = [f"{label} {known[label][1] / known[label][0]:.0%} ({_from_to(*known[label])})" for label in main]
    best = max(known, key=lambda label: known[label][1])
    first, last = plan.severities[0], plan.severities[-1]
    return (
        f"As the bias grows from severity {first:g} to {last:g}, methods keep of their recall@20: {', '.join(told)}. "
        f"Best at severity {last:g}: {best} ({known[best][1]:.4f})."
    )


def _from_to(before: float, after: float) -> str:
    return f"{before:.4f} → {after:.4f}"


def table(plan: Plan, results: Sequence[RunResult], metric: str, dial: bool = False) -> Table:
    """Methods by severities."""
    main = metric == RECALL and not dial
    printed = {label: paper.SEVERITY.get(paper.row_of(label) or "", ()) for label in plan.rows} if main else {}
    labels = {label: label for label in plan.rows}
    cells = severity_cells(results, labels, plan.severities, Quantity(metric, dial=dial), printed)
    rows = list(cells.items())
    every = range(len(plan.severities))
    best = [
        max((v for m in paper.BASELINES if (v := paper.at_severity(paper.SEVERITY[m], s))), default=None)
        for s in plan.severities
    ]
    named = f"{metric} with the popularity dial where validation puts it" if dial else metric
    return Table(
        f"{metric}{' with dial' if dial else ''}",
        f"{named} by severity, overlap convention `drop`",
        f"method ({counted(len(plan.seeds), 'seed', 'seeds')})",
        tuple(f"s = {severity:g}" for severity in plan.severities),
        ranked_columns(rows, every if not metric.startswith("arp") else ()),
        improvements(rows, every, best if main else [None] * len(best)) if metric in (RECALL, "ndcg@20") else (),
        _agreement(plan, cells) if main else (),
        on_screen=metric == RECALL,
    )


def _agreement(plan: Plan, rows: dict[str, list[Cell]]) -> tuple[str, ...]:
    """Spearman's ρ between our order of the methods and the paper's at each severity, and LightGCN's difference."""
    notes = []
    for preset in ("dpaa", "dpaa-as-printed"):
        known = [label for label in rows if label == preset or label in paper.BASELINES]
        if preset not in rows or len(known) < 3:
            continue
        told = []
        for place, severity in enumerate(plan.severities):
            cells = [rows[label][place] for label in known]
            pairs = [(cell.mean, cell.paper) for cell in cells if cell.paper is not None and not math.isnan(cell.mean)]
            rho = rank_agreement([ours for ours, _ in pairs], [theirs for _, theirs in pairs])
            if not math.isnan(rho):
                told.append(f"{rho:.2f} at s = {severity:g}")
        if told:
            notes.append(
                f"Rank agreement with the paper (Spearman's ρ over {len(known)} methods, {preset} as DPAA): "
                f"{', '.join(told)}."
            )
    apart = [
        f"{signed(cell.mean / cell.paper - 1)} at s = {severity:g}"
        for severity, cell in zip(plan.severities, rows.get("lightgcn", ()), strict=False)
        if cell.paper and not math.isnan(cell.mean)
    ]
    if apart:
        notes.append(f"LightGCN's recall@20 against the paper's: {', '.join(apart)}.")
    return tuple(notes)


def _figure(name: str, title: str, plan: Plan, results: Sequence[RunResult], dial: bool) -> Figure:
    labels = {label: label for label in plan.rows}
    ours = severity_cells(results, labels, plan.severities, Quantity(RECALL, dial=dial), {})
    shown = {row: label for label in reversed(plan.rows) if (row := paper.row_of(label)) is not None}
    told = "" if dial else " The second panel shows the same methods as the paper reports them."
    return severity_figure(
        name,
        title,
        f"A line per method: recall@20 of the unbiased test over the severity of the bias.{told}",
        "To the right the training log shows less and less besides the most popular items. A line that stays up bears "
        "the bias; the shade around it is one deviation over seeds. Thick: DPAA, LightGCN and most-popular; thin: the "
        "other methods, whose numbers are in the table."
        f"{told}",
        plan.severities,
        ours,
        {} if dial else {label: paper.SEVERITY[row] for row, label in shown.items()},
        main=[label for label in ours if label in HELD_AGAINST or label.startswith("dpaa")],
    )
