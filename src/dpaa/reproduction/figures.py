"""Curves over severity: ours with a band of one deviation over seeds, the paper's beside them on the same scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from dpaa.report.figures import Chart, altair, styled
from dpaa.report.parts import Figure
from dpaa.report.theme import SHAPES, Theme
from dpaa.reproduction import paper
from dpaa.reproduction.tables import Cell

OURS, PAPERS = "ours", "the paper"
OTHERS = "other methods"
FAINT = 0.4


@dataclass(frozen=True)
class Curve:
    """One line: a value and its deviation at each severity."""

    name: str
    points: tuple[tuple[float, float, float], ...]
    """Severity, mean, deviation (0 or no number: no band)."""


def severity_figure(
    name: str,
    title: str,
    description: str,
    reading: str,
    severities: Sequence[float],
    ours: Mapping[str, Sequence[Cell]],
    theirs: Mapping[str, paper.Row],
    main: Sequence[str],
) -> Figure:
    """Recall@20 over severity: ours, and the paper's where it has any."""
    own = [
        Curve(label, tuple((s, cell.mean, cell.deviation) for s, cell in zip(severities, cells, strict=True)))
        for label, cells in ours.items()
    ]
    printed = [
        Curve(label, tuple((s, value, 0.0) for s in severities if (value := paper.at_severity(row, s)) is not None))
        for label, row in theirs.items()
    ]
    panels = {OURS: own, PAPERS: [curve for curve in printed if curve.points]}
    draw = partial(severity_curves, panels, y="recall@20", main=main)
    return Figure(name, title, description, draw, reading=reading)


def severity_curves(panels: Mapping[str, Sequence[Curve]], theme: Theme, y: str, main: Sequence[str] = ()) -> Chart:
    """A panel per origin; a curve has the same colour, dash and shape in each.

    The main ones are thick on top of the others, which are thin, and where they are many of one colour: the pointer
    tells them, and the tables have their numbers.
    """
    alt = altair()
    panels = {title: curves for title, curves in panels.items() if curves}
    names = dict.fromkeys(curve.name for curves in panels.values() for curve in curves)
    first = [name for name in names if name in main]
    style = _style(alt, first, [name for name in names if name not in main], theme)
    side_by_side = not theme.narrow and len(panels) > 1
    width = (theme.width - 70) // len(panels) - 14 if side_by_side else theme.width - 78
    top = max((mean + _number(deviation) for c in panels.values() for one in c for _, mean, deviation in one.points))
    scale = alt.Scale(domain=[0, 1.04 * top if top > 0 else 1.0], nice=False)
    drawn = []
    for place, (title, curves) in enumerate(panels.items()):
        titled = title if len(panels) > 1 else ""
        drawn.append(_panel(curves, titled, theme, style, scale, y if place == 0 or not side_by_side else None, width))
    joined = alt.hconcat(*drawn, spacing=14) if side_by_side else alt.vconcat(*drawn, spacing=14)
    return styled(joined.resolve_scale(color="shared", shape="shared", strokeDash="shared"), theme, padding=6)


def energy_points(places: Mapping[str, Sequence[tuple[str, float, float]]], theme: Theme) -> Chart:
    """A panel per dataset: share of energy on the direction of popularity, and ARP; `places`: name, share, ARP."""
    alt = altair()
    drawn = []
    columns = 1 if theme.narrow else min(len(places), 2)
    width = (theme.width - 60 * columns) // columns - 30
    for title, points in places.items():
        rows = [
            {"share": 100 * share, "arp": arp, "tip": f"{name}: {share:.0%}, ARP {arp:.1f}"}
            for name, share, arp in points
        ]
        table = pl.DataFrame(rows, schema={"share": pl.Float64, "arp": pl.Float64, "tip": pl.String})
        x = alt.X("share:Q", title="energy on the first singular vector, %", scale=alt.Scale(domain=[0, 100]))
        y = alt.Y("arp:Q", title="ARP@20", scale=alt.Scale(zero=False))
        dots = alt.Chart(table).mark_point(filled=True, size=50, opacity=0.75, color=theme.colour(0))
        named = alt.Title(title, fontSize=theme.font_size + 1, anchor="middle")
        height = (theme.height - 90) * 2 // 3
        drawn.append(dots.encode(x=x, y=y, description="tip:N").properties(width=width, height=height, title=named))
    return styled(alt.concat(*drawn, columns=columns, spacing=18), theme, padding=6)


def _panel(
    curves: Sequence[Curve], title: str, theme: Theme, style: dict[str, Any], scale: Any, y: str | None, width: int
) -> Chart:
    alt = altair()
    rows = [
        {
            "name": curve.name,
            "x": severity,
            "y": mean,
            "low": max(mean - _number(deviation), 0.0),
            "high": mean + _number(deviation),
            "tip": f"{curve.name}, s = {severity:g}: {mean:.4f}",
        }
        for curve in curves
        for severity, mean, deviation in curve.points
        if not math.isnan(mean)
    ]
    schema = {name: pl.String if name in ("name", "tip") else pl.Float64 for name in ("name", "x", "y", "low", "high")}
    table = pl.DataFrame(rows, schema=schema | {"tip": pl.String})
    severities = sorted(set(table["x"]))
    axis = alt.Axis(values=severities, format="~g", grid=False)
    x = alt.X("x:Q", title="severity of the bias", axis=axis, scale=alt.Scale(zero=False, nice=False, padding=8))
    upright = alt.Axis(labels=y is not None, ticks=y is not None, format=".2f")
    upper = alt.Y("y:Q", title=y, scale=scale, axis=upright)
    low = alt.Y("low:Q", title=y, scale=scale, axis=upright)
    # One by one in plain colours: the legend is to show lines, not shades.
    bands = [
        alt.Chart(table.filter(pl.col("name") == name))
        .mark_area(opacity=0.16, color=colour)
        .encode(x=x, y=low, y2="high:Q")
        for name, colour in style["colours"].items()
        if (name in style["main"] or not style["faint"])
        and (table.filter(pl.col("name") == name)["high"] > table.filter(pl.col("name") == name)["low"]).any()
    ]
    lines = []
    for main in (False, True):
        some = table.filter(pl.col("name").is_in(style["main"]) == main)
        if some.is_empty():
            continue
        base = alt.Chart(some).encode(x=x, y=upper, color=style["color"], detail="name:N")
        faint = style["faint"] and not main
        seen = FAINT if faint else 1.0
        lines.append(base.mark_line(strokeWidth=3.2 if main else 1.3, opacity=seen).encode(strokeDash=style["dash"]))
        dots = base.mark_point(filled=True, size=54 if main else 12 if faint else 26, opacity=seen)
        lines.append(dots.encode(shape=style["shape"], description="tip:N"))
    drawn = alt.layer(*bands, *lines).properties(width=width, height=theme.height - 90)
    return drawn.properties(title=alt.Title(title, fontSize=theme.font_size + 1, anchor="middle")) if title else drawn


def _style(alt: Any, main: Sequence[str], others: Sequence[str], theme: Theme) -> dict[str, Any]:
    """Colours begin again after the palette's end and after the main curves, then with another dash and shape.

    Where there are too many to be told apart, those beside the main ones share one look and one name in the legend.
    """
    n = len(theme.palette)
    faint = bool(main and others) and len(main) + len(others) > n
    begin = -(-len(main) // n) * n
    parts = [(0, main)] if faint else [(0, main), (begin, others)]
    places = {name: place for first, part in parts for place, name in enumerate(part, first)}
    crowd = [OTHERS, *others] if faint else []
    names = [*places, *crowd]
    shown = [*places, *crowd[:1]]
    colours = [*(theme.colour(place % n) for place in places.values()), *(theme.soft for _ in crowd)]
    dashes = [*(([1, 0], [5, 3], [2, 2])[place // n % 3] for place in places.values()), *([1, 0] for _ in crowd)]
    shapes = [*(SHAPES[place // n % len(SHAPES)] for place in places.values()), *(SHAPES[0] for _ in crowd)]
    longest = max(len(name) for name in shown)
    columns = max(1, min(len(shown), int((theme.width - 20) // (longest * 7.2 + 46))))
    legend = alt.Legend(
        orient="bottom",
        direction="horizontal",
        columns=columns,
        values=shown,
        symbolSize=90,
        symbolStrokeWidth=0,
        symbolOpacity=1,
        labelLimit=theme.width - 60,
        columnPadding=14 + 1.4 * longest,
    )

    def scale(values: Sequence[Any]) -> Any:
        return alt.Scale(domain=names, range=list(values))

    return {
        "main": list(main),
        "faint": faint,
        "color": alt.Color("name:N", sort=names, title=None, scale=scale(colours), legend=legend),
        "colours": dict(zip(names, colours, strict=True)),
        "dash": alt.StrokeDash("name:N", sort=names, title=None, scale=scale(dashes), legend=None),
        "shape": alt.Shape("name:N", sort=names, title=None, scale=scale(shapes), legend=legend),
    }


def _number(deviation: float) -> float:
    return 0.0 if math.isnan(deviation) else deviation
