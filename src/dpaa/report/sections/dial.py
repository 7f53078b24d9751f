"""The popularity dial: what turning it does, where a run has measured it on validation."""

from __future__ import annotations

from dpaa.report.charts import Line, curves
from dpaa.report.dial_figure import TICKS
from dpaa.report.inputs import Inputs, Run
from dpaa.report.parts import Cell, Figure, Section, number, suffix, table
from dpaa.report.rendering import render

SHOWN = {
    "ndcg@20": "accuracy (NDCG@20)",
    "recall@20/niche": "recall of niche items",
    "coverage@20": "items shown to anybody",
    "arp@20": "mean popularity (ARP)",
}
FURTHER = ("recall@20",)
MOST = 6


def section(inputs: Inputs) -> Section:
    """A figure per run with a dial."""
    runs = [run for run in inputs.runs if _points(run)][:MOST]
    figures = [_figure(run, suffix(place)) for place, run in enumerate(runs)]
    drawn = [(figure, run.model.kappa(), _in_words(run)) for run, figure in zip(runs, figures, strict=True)]
    return Section("dial", "The popularity dial", "Dial", render("dial.html", drawn=drawn), figures)


def _in_words(run: Run) -> str:
    dial = run.manifest.dial
    if dial.in_words and dial.suggested is None:  # of an earlier version, which did not say what is in force
        return f"κ = {run.model.kappa():g} is in force; {dial.in_words}"
    return dial.in_words


def _points(run: Run) -> list[tuple[float, dict[str, float | None]]]:
    """κ and the metrics there, κ ascending."""
    found = [(kappa, point) for point in run.manifest.dial.curve if (kappa := point.get("kappa")) is not None]
    return sorted(found, key=lambda point: point[0])


def _figure(run: Run, suffix: str) -> Figure:
    points, in_force = _points(run), run.model.kappa()
    dial, kappas = run.manifest.dial, [kappa for kappa, _ in points]
    suggested = dial.kappa if dial.suggested is None else dial.suggested
    lines = []
    for place, (metric, name) in enumerate(SHOWN.items()):
        values = [point.get(metric) for _, point in points]
        largest = max((value for value in values if value is not None), default=0.0)
        if largest > 0:
            lines.append(Line(name, kappas, [None if value is None else value / largest for value in values], place))
    metrics = [name for name in (*SHOWN, *FURTHER) if any(point.get(name) is not None for _, point in points)]
    marks = {suggested: " (suggested)", in_force: " (in force)"}
    rows = [
        [Cell(f"{kappa:g}{marks.get(kappa, '')}", kappa), *(number(point.get(name)) for name in metrics)]
        for kappa, point in points
    ]
    ticks = [tick for tick in TICKS if kappas[0] <= tick <= kappas[-1]]
    axes = ("popularity dial κ", "share of the highest value")
    return Figure(
        f"dial-curve{suffix}",
        f"{run.name}: turning the popularity dial",
        "Metrics over the dial's setting κ, each as a share of its own highest value. "
        f"The dotted line marks the setting in force, κ = {in_force:g}.",
        lambda theme: curves(lines, theme, *axes, percent="y", dots=True, mark=in_force, far=ticks),
        table(f"The dial of {run.name}", ["κ", *metrics], rows),
    )
