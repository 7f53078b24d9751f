"""The popularity dial: what turning it does, where a run has measured it on validation.

`manifest.json` holds `"dial": {"kappa": κ, "suggested": κ, "curve": [{"kappa": κ, "ndcg@20": …, …}, …], …}`, `kappa`
being in force and `suggested` what the objective would choose (`dpaa.evaluation.dial_curve`).
"""

from __future__ import annotations

from typing import Any

from dpaa.evaluation.dial_curve import SUGGESTED
from dpaa.report.charts import Line, curves
from dpaa.report.dial_figure import TICKS
from dpaa.report.foreign import is_number, text_at
from dpaa.report.inputs import Inputs, Run
from dpaa.report.markup import Markup
from dpaa.report.parts import Cell, Figure, Head, Section, number, paragraph, table

KAPPA = "kappa"
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
    found = [(run, curve) for run in inputs.runs if (curve := _curve(run))]
    parts: list[Figure | Markup] = []
    for place, (run, curve) in enumerate(found[:MOST]):
        parts.append(_figure(run, curve, f"-{place + 1}" if place else ""))
        dial = run.model.manifest["dial"]
        words = text_at(dial, "in_words") if isinstance(dial, dict) else ""
        if words and SUGGESTED not in dial:  # of an earlier version, which did not say what is in force
            words = f"κ = {run.model.kappa():g} is in force; {words}"
        if words:
            parts.append(paragraph(f"{words[0].upper()}{words[1:]}."))
    return Section("dial", "The popularity dial", "Dial", parts)


def _curve(run: Run) -> list[dict[str, Any]]:
    """The points with a κ, ascending; none where the manifest has no dial of this form."""
    dial = run.model.manifest.get("dial")
    points = dial.get("curve") if isinstance(dial, dict) else dial
    if not isinstance(points, list):
        return []
    kept = [point for point in points if isinstance(point, dict) and is_number(point.get(KAPPA))]
    return sorted(kept, key=lambda point: float(point[KAPPA]))


def _figure(run: Run, curve: list[dict[str, Any]], suffix: str) -> Figure:
    dial, mark = run.model.manifest["dial"], run.model.kappa()
    suggested = dial.get(SUGGESTED, dial.get(KAPPA)) if isinstance(dial, dict) else None
    told = f" The dotted line marks the setting in force, κ = {mark:g}."
    lines = []
    for place, (metric, name) in enumerate(SHOWN.items()):
        values = [float(point[metric]) if is_number(point.get(metric)) else None for point in curve]
        largest = max((value for value in values if value is not None), default=0.0)
        if largest > 0:
            scaled = [None if value is None else value / largest for value in values]
            lines.append(Line(name, [float(point[KAPPA]) for point in curve], scaled, place))
    metrics = [name for name in (*SHOWN, *FURTHER) if any(is_number(point.get(name)) for point in curve)]
    rows = [
        [
            Cell(f"{point[KAPPA]:g}{_mark(point[KAPPA], mark, suggested)}", float(point[KAPPA])),
            *(number(point.get(name) if is_number(point.get(name)) else None) for name in metrics),
        ]
        for point in curve
    ]
    return Figure(
        f"dial-curve{suffix}",
        f"{run.name}: turning the popularity dial",
        f"Metrics over the dial's setting κ, each as a share of its own highest value.{told}",
        "The dial adds or takes away popularity when items are ranked: to the right (κ above 0) popular items are "
        "favoured, to the left held back, and 0 leaves the ranking as it was. Each line is drawn as a share of its own "
        "highest value, so that lines of different size can be seen together; the table has the values "
        f"themselves. Steps of κ are drawn narrower further out.{told}",
        lambda look: curves(
            lines,
            look,
            "popularity dial κ",
            "share of the highest value",
            percent="y",
            dots=True,
            mark=mark,
            far=[tick for tick in TICKS if curve[0][KAPPA] <= tick <= curve[-1][KAPPA]],
        ),
        table(f"The dial of {run.name}", [Head("κ", numeric=False), *(Head(name) for name in metrics)], rows),
    )


def _mark(kappa: float, in_force: float, suggested: object) -> str:
    return " (in force)" if kappa == in_force else " (suggested)" if kappa == suggested else ""
