"""The frontier of `dpaa debias`: accuracy against a goal, over models and re-rankers, and the point that was chosen."""

from __future__ import annotations

from math import isfinite

from markupsafe import Markup

from dpaa.report.charts import FrontierDot, frontier
from dpaa.report.parts import Cell, Figure, Section, number, signed, table
from dpaa.report.records import FrontierFile, FrontierGoal, FrontierPoint
from dpaa.report.rendering import render

DEEPEST = -0.3
"""Points that lose more of the accuracy are no trade, and left out of the figure."""


def section(content: FrontierFile, suffix: str = "") -> Section:
    """What was chosen, in sentences; a figure per goal."""
    figures = [
        _figure(content, goal, f"{suffix}-{place}" if place else suffix) for place, goal in enumerate(content.goals)
    ]
    verdict, *sentences = content.sentences or [""]
    rendered = render(
        "frontier.html",
        verdict=verdict,
        sentences=sentences,
        over_all=_over_all(content),
        figures=[figure for figure in figures if figure is not None],
        users="the" if content.users is None else f"{content.users:,}",
        estimate=content.estimate.in_words,
        exposure=content.exposure.in_words,
        left_out=content.notes,
    )
    drawn = [figure for figure in figures if figure is not None]
    return Section(f"trade{suffix}", "The best trade between accuracy and popularity", "Trade", rendered, drawn)


def _over_all(content: FrontierFile) -> str:
    """The choice's change of accuracy over all users, where the sentences tell that of users without a part in it."""
    confirmed, over_all = content.confirmation.change.estimate, content.chosen.accuracy_change
    if content.chosen.name == content.base.name or not isfinite(confirmed) or not isfinite(over_all):
        return ""
    return "" if signed(confirmed) == signed(over_all) else signed(over_all)


def _figure(content: FrontierFile, goal: FrontierGoal, suffix: str) -> Figure | None:
    models = list(dict.fromkeys(point.model for point in content.points))
    dots = []
    for point in content.points:
        value = point.metrics.get(goal.metric)
        if value is None or not isfinite(value) or not isfinite(point.accuracy_change):
            continue
        if point.accuracy_change < DEEPEST:
            continue
        tip = f"{point.name}: accuracy {signed(point.accuracy_change)}, {goal.metric} {value:.4g}"
        mark = "chosen" if point.name == content.chosen.name else "baseline" if point.name == content.base.name else ""
        dots.append(
            FrontierDot(
                point.model,
                models.index(point.model),
                point.accuracy_change,
                value,
                point.plain,
                point.on_frontier,
                mark,
                tip,
            )
        )
    if len(dots) < 2:
        return None
    return Figure(
        f"frontier{suffix}",
        f"Accuracy against {goal.name}",
        f"Accuracy against the baseline and {goal.metric} of every point; the chosen one and the baseline are marked.",
        lambda theme: frontier(dots, theme, "accuracy against the baseline", goal.metric, falling=goal.better == "low"),
        _table(content, goal),
    )


def _table(content: FrontierFile, goal: FrontierGoal) -> Markup:
    others = [name for name in content.chosen.metrics if name != goal.metric]
    rows = [
        _row(content, point, [goal.metric, *others]) for point in content.points if point.on_frontier or point.plain
    ]
    heads = ["point", "accuracy", "change", "from", "to", goal.metric, *others]
    return table("The frontier, and the models as they are", heads, rows)


def _row(content: FrontierFile, point: FrontierPoint, metrics: list[str]) -> list[Cell]:
    marks = [
        *(["chosen"] if point.name == content.chosen.name else []),
        *(["baseline"] if point.name == content.base.name else []),
        *([] if point.on_frontier else ["beaten by another point"]),
    ]
    name = f"{point.name} ({', '.join(marks)})" if marks else point.name
    changes = (point.accuracy_change, point.accuracy_change_low, point.accuracy_change_high)
    return [
        Cell(name),
        number(point.accuracy),
        *(Cell(signed(value) if isfinite(value) else "–", value) for value in changes),
        *(number(point.metrics.get(metric)) for metric in metrics),
    ]
