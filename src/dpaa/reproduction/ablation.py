"""Which part of DPAA does what: its variants over severities, for both readings of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpaa.report.parts import Figure
from dpaa.reproduction import paper
from dpaa.reproduction.figures import OURS, PAPERS, Curve, severity_curves
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.severity import METRICS, RECALL
from dpaa.reproduction.tables import LEGEND, Cell, Chapter, Table, form_of, ranked, values_of
from dpaa.reproduction.trainings import RunResult, RunSpec, failures, spec_for

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
    specs = [spec for preset in PRESETS for spec in _specs(plan, preset)]
    results = plan.runner.run(specs, "severity")
    tables, figures = [], []
    for preset in PRESETS:
        severities = _severities(plan, preset)
        if severities:
            tables += [_table(plan, results, preset, severities, metric) for metric in METRICS]
            figures.append(_figure(results, preset, severities))
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


def _severities(plan: Plan, preset: str) -> tuple[float, ...]:
    wanted = plan.given_severities or plan.budget.as_printed_severities
    return tuple(s for s in plan.severities if preset == "dpaa" or s in wanted)


def _specs(plan: Plan, preset: str) -> list[RunSpec]:
    specs = []
    for severity in _severities(plan, preset):
        method, settings = plan.severity_settings(preset, severity)
        for variant, change in VARIANTS.items():
            for seed in plan.seeds:
                folder, label = plan.severity_folder(severity, seed), f"{preset}: {variant}"
                own, common, tuned = settings | WHOLE | change, plan.common("kuairec"), plan.is_tuned(preset)
                specs.append(spec_for(f"s={severity:g}", folder, label, method, own, seed, common, tuned))
    return specs


def _table(plan: Plan, results: Sequence[RunResult], preset: str, severities: Sequence[float], metric: str) -> Table:
    rows = []
    for severity in severities:
        cells = [
            Cell(
                values_of(results, f"s={severity:g}", f"{preset}: {variant}", "drop", metric),
                paper.at_severity(paper.ABLATION[variant], severity) if metric == RECALL else None,
                form_of(metric),
            )
            for variant in VARIANTS
        ]
        rows.append((f"s = {severity:g}", tuple(cells) if metric.startswith("arp") else ranked(cells)))
    seeds = len(plan.seeds)
    return Table(
        f"{preset} {metric}",
        f"Ablation of {preset}: {metric}, overlap convention `drop`",
        f"severity ({seeds} seed{'s' if seeds > 1 else ''})",
        tuple(VARIANTS),
        tuple(rows),
        on_screen=metric == RECALL,
    )


def _figure(results: Sequence[RunResult], preset: str, severities: Sequence[float]) -> Figure:
    def point(severity: float, variant: str) -> tuple[float, float, float]:
        cell = Cell(values_of(results, f"s={severity:g}", f"{preset}: {variant}", "drop", RECALL))
        return severity, cell.mean, cell.deviation

    ours = [Curve(variant, tuple(point(severity, variant) for severity in severities)) for variant in VARIANTS]
    theirs = [
        Curve(name, tuple((s, value, 0.0) for s in severities if (value := paper.at_severity(values, s)) is not None))
        for name, values in paper.ABLATION.items()
    ]
    known = [curve for curve in theirs if curve.points]
    return Figure(
        f"ablation-{preset}",
        f"What the parts of {preset} do",
        "A line per variant: recall@20 over severity, ours first, then the paper's.",
        "A variant that falls below the line of DPAA lacks a part that helped; the shade is one deviation over seeds.",
        lambda look: severity_curves({OURS: ours, PAPERS: known}, look, "recall@20", ["DPAA"]),
    )
