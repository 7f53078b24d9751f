"""How methods bear growing bias: KuaiRec's full exposure, biased with a severity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpaa.report.parts import Figure, signed
from dpaa.reproduction import paper
from dpaa.reproduction.figures import OURS, PAPERS, Curve, severity_curves
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.tables import (
    LEGEND,
    Cell,
    Chapter,
    Table,
    form_of,
    improvements,
    rank_agreement,
    ranked_columns,
    values_of,
)
from dpaa.reproduction.trainings import RunResult, failures

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
    about = (
        plan.in_words(),
        "Training pairs are drawn from KuaiRec's fully observed matrix with P ∝ rank^(−s); validation and test are "
        "unbiased. Overlap convention `drop` (no test pair is a training pair, so the conventions are one).",
        f"{LEGEND}. A seed draws the data anew, too: most of the deviation is the data's, which all rows share.",
    )
    missing = (*plan.left_out.values(), *failures(results))
    return Chapter("severity", "Growing bias severity", about, tuple(tables), tuple(figures), missing)


def table(plan: Plan, results: Sequence[RunResult], metric: str, dial: bool = False) -> Table:
    """Methods by severities."""
    rows = []
    for label in plan.rows:
        printed = paper.SEVERITY.get(paper.row_of(label) or "") if metric == RECALL and not dial else None
        cells = [
            Cell(
                values_of(results, f"s={severity:g}", label, "drop", metric, dial),
                paper.at_severity(printed, severity),
                form_of(metric),
            )
            for severity in plan.severities
        ]
        rows.append((label, cells))
    every = range(len(plan.severities))
    marked = ranked_columns(rows, every if not metric.startswith("arp") else ())
    main = metric == RECALL and not dial
    best = [_best_baseline(severity) for severity in plan.severities]
    seeds = len(plan.seeds)
    named = f"{metric} with the popularity dial where validation puts it" if dial else metric
    return Table(
        f"{metric}{' with dial' if dial else ''}",
        f"{named} by severity, overlap convention `drop`",
        f"method ({seeds} seed{'s' if seeds > 1 else ''})",
        tuple(f"s = {severity:g}" for severity in plan.severities),
        tuple((label, tuple(cells)) for label, cells in marked),
        improvements(rows, every, best if main else [None] * len(best)) if metric in (RECALL, "ndcg@20") else (),
        _agreement(plan, dict(rows)) if main else (),
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
            pairs = [(rows[label][place].mean, rows[label][place].paper) for label in known]
            kept = [(ours, theirs) for ours, theirs in pairs if theirs is not None and not math.isnan(ours)]
            rho = rank_agreement([ours for ours, _ in kept], [theirs for _, theirs in kept]) if kept else math.nan
            if not math.isnan(rho):
                told.append(f"{rho:.2f} at s = {severity:g}")
        if told:
            notes.append(
                f"Rank agreement with the paper (Spearman's ρ over {len(known)} methods, {preset} as DPAA): "
                f"{', '.join(told)}."
            )
    if "lightgcn" in rows:
        apart = [
            f"{signed(cell.mean / cell.paper - 1)} at s = {severity:g}"
            for severity, cell in zip(plan.severities, rows["lightgcn"], strict=True)
            if cell.paper and not math.isnan(cell.mean)
        ]
        if apart:
            notes.append(f"LightGCN's recall@20 against the paper's: {', '.join(apart)}.")
    return tuple(notes)


def _figure(name: str, title: str, plan: Plan, results: Sequence[RunResult], dial: bool) -> Figure:
    ours = [
        Curve(label, tuple(_point(results, severity, label, dial) for severity in plan.severities))
        for label in plan.rows
    ]
    shown = {row: label for label in reversed(plan.rows) if (row := paper.row_of(label)) is not None}
    theirs = [
        Curve(label, tuple((s, value, 0.0) for s in plan.severities if (value := _printed(method, s)) is not None))
        for method, label in shown.items()
    ]
    known = [curve for curve in theirs if curve.points]
    main = [curve.name for curve in ours if curve.name in HELD_AGAINST or curve.name.startswith("dpaa")]
    told = "" if dial else " The second panel shows the same methods as the paper reports them."
    return Figure(
        name,
        title,
        f"A line per method: recall@20 of the unbiased test over the severity of the bias.{told}",
        "To the right the training log shows less and less besides the most popular items. A line that stays up bears "
        "the bias; the shade around it is one deviation over seeds. Thick: DPAA, LightGCN and most-popular."
        f"{told}",
        lambda look: severity_curves({OURS: ours} | ({} if dial else {PAPERS: known}), look, "recall@20", main),
    )


def _point(results: Sequence[RunResult], severity: float, label: str, dial: bool) -> tuple[float, float, float]:
    cell = Cell(values_of(results, f"s={severity:g}", label, "drop", RECALL, dial))
    return severity, cell.mean, cell.deviation


def _best_baseline(severity: float) -> float | None:
    """The paper's."""
    values = [_printed(method, severity) for method in paper.BASELINES]
    return max((value for value in values if value is not None), default=None)


def _printed(method: str, severity: float) -> float | None:
    return paper.at_severity(paper.SEVERITY.get(method), severity)
