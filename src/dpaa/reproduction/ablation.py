"""Which part of DPAA does what: its variants over severities, for both readings of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpaa._text import counted
from dpaa.report.parts import Figure
from dpaa.reproduction import paper
from dpaa.reproduction.figures import severity_figure
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.severity import METRICS, RECALL
from dpaa.reproduction.tables import LEGEND, Cell, Chapter, Quantity, Table, ranked, severity_cells
from dpaa.reproduction.trainings import failures

WHOLE: dict[str, Any] = {"iiw": True, "estimate": "blend", "weighted_layers": "first"}
VARIANTS: dict[str, dict[str, Any]] = {
    "DPAA": {},
    "γ0": {"weighted_layers": "all"},
    "w/o c": {"estimate": "pretrained"},
    "γ0 w/o c": {"weighted_layers": "all", "estimate": "pretrained"},
    "w/o m": {"estimate": "current"},
    "γ0 w/o m": {"weighted_layers": "all", "estimate": "current"},
    "w/o IIW": {"iiw": False},
    "w/o LW": {"layer_emphasis": 0.0},
}
"""The paper's columns as settings: γ0 weights all layers, c / m are the current and the pre-trained estimate."""
PRESETS = ("dpaa", "dpaa-as-printed")


def chapter(plan: Plan) -> Chapter:
    """A table and a figure for each reading; the paper's numbers stand beside both."""
    as_printed = plan.given_severities or plan.budget.as_printed_severities
    levels = {preset: [s for s in plan.severities if preset == "dpaa" or s in as_printed] for preset in PRESETS}
    specs = [
        plan.severity_spec(preset, f"{preset}: {variant}", severity, seed, WHOLE | change)
        for preset in PRESETS
        for severity in levels[preset]
        for variant, change in VARIANTS.items()
        for seed in plan.seeds
    ]
    results = plan.runner.run(specs, "severity")
    tables, figures = [], []
    for preset, severities in levels.items():
        if severities:
            labels = {variant: f"{preset}: {variant}" for variant in VARIANTS}
            for metric in METRICS:
                printed = paper.ABLATION if metric == RECALL else {}
                cells = severity_cells(results, labels, severities, Quantity(metric), printed)
                tables.append(_table(plan, cells, preset, severities, metric))
            figures.append(
                _figure(severity_cells(results, labels, severities, Quantity(RECALL), {}), preset, severities)
            )
    about = (
        plan.in_words(),
        "γ0 weights the messages of all layers; w/o c, w/o m: without the current, the pre-trained estimate; w/o IIW: "
        "no interaction weights; w/o LW: all layers alike. Overlap convention `drop`. Variants keep the "
        "settings of the whole method.",
        LEGEND.replace("of a column", "of a row") + ".",
        "The paper's columns w/o IIW and w/o LW are equal to four digits at s = 5, 7, 8 and 9, and its DPAA column "
        "differs from its own severity table.",
    )
    return Chapter("ablation", "Ablation", about, tuple(tables), tuple(figures), tuple(failures(results)))


def _table(plan: Plan, cells: dict[str, list[Cell]], preset: str, severities: Sequence[float], metric: str) -> Table:
    rows = [tuple(cells[variant][place] for variant in VARIANTS) for place in range(len(severities))]
    shown = rows if metric.startswith("arp") else [ranked(row) for row in rows]
    return Table(
        f"{preset} {metric}",
        f"Ablation of {preset}: {metric}, overlap convention `drop`",
        f"severity ({counted(len(plan.seeds), 'seed', 'seeds')})",
        tuple(VARIANTS),
        tuple((f"s = {severity:g}", row) for severity, row in zip(severities, shown, strict=True)),
        on_screen=metric == RECALL,
    )


def _figure(ours: dict[str, list[Cell]], preset: str, severities: Sequence[float]) -> Figure:
    return severity_figure(
        f"ablation-{preset}",
        f"What the parts of {preset} do",
        "A line per variant: recall@20 over severity, ours first, then the paper's.",
        "A variant that falls below the line of DPAA lacks a part that helped; the shade is one deviation over seeds.",
        severities,
        ours,
        paper.ABLATION,
        main=["DPAA"],
    )
