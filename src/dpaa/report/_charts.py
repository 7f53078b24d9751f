"""The kinds of charts on the page; the theme decides whether one is for the page, a phone or paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.report._drawing import PAPER, SHAPES, Chart, Theme, altair, by_name, styled

POINTS = 240
"""Points of a curve: more cannot be seen."""
HINTS = 40
"""Points of a line that show their values under the pointer."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
DIAL_TICKS = (-2, -1, 0, 1, 2, 4, 8, 16, 32)
MARGINS = {"left": 18, "right": 8, "top": 4, "bottom": 4}
"""Around a plot: the browser's font may be wider than the one that labels were measured with."""


@dataclass(frozen=True)
class Line:
    """One line of a chart."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    index: int | None
    """Of its colour; None = grey and dashed: what the others are compared with."""


EQUAL = Line("if all items were alike", [0.0, 1.0], [0.0, 1.0], None)
"""The diagonal of a concentration curve."""


@dataclass(frozen=True)
class Dot:
    """One point of a scatter plot."""

    name: str
    """In the legend; several dots may share it."""
    index: int
    x: float
    y: float
    tip: str
    large: bool = True
    joined: bool = False
    """Whether the line of the best trade-offs goes through it."""
    mark: str = ""
    """`chosen` or `baseline`, written beside it."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its interval."""

    label: str
    name: str
    index: int
    value: float
    low: float
    high: float
    tip: str


def curves(
    lines: Sequence[Line],
    theme: Theme,
    x: str,
    y: str,
    *,
    across: str = "",
    upwards: str = "",
    top: float | None = None,
    mark: float | None = None,
) -> Chart:
    """Lines over a common axis.

    Parameters
    ----------
    lines : in the order of the legend; points without a value are left out
    theme : size and colours
    x, y : titles of the axes
    across, upwards : kind of each axis: `percent`, `steps` (whole numbers), `log`, `symlog` (on both sides of 0)
    top : end of the y axis
    mark : where a dotted upright line is drawn

    Returns
    -------
    the chart
    """
    alt = altair()
    shown = ["{:.1%}".format if kind == "percent" else "{:.4g}".format for kind in (across, upwards)]
    table = pl.DataFrame(
        [
            {"name": line.name, "x": float(a), "y": float(b), "tip": f"{line.name}: {shown[0](a)} → {shown[1](b)}"}
            for line in lines
            for a, b in zip(line.x, line.y, strict=True)
            if b is not None
        ],
        schema={"name": pl.String, "x": pl.Float64, "y": pl.Float64, "tip": pl.String},
    )
    names = [line.name for line in lines]
    colours = [theme.soft if line.index is None else theme.colour(line.index) for line in lines]
    cycles = [None if line.index is None else line.index // len(theme.palette) for line in lines]
    dashes = [[3, 3] if cycle is None else DASHES[cycle % len(DASHES)] for cycle in cycles]
    base = alt.Chart(table).encode(
        x=_axis("X", "x", theme.lines(x), across, table["x"], theme),
        y=_axis("Y", "y", y, upwards, table["y"], theme, top),
        color=_legend("name", names, colours, theme, symbolType="stroke", symbolSize=240),
    )
    dashed = by_name("StrokeDash", "name", names, dashes)
    layers = [base.mark_line(strokeWidth=2.4).encode(strokeDash=dashed, detail="name:N")]
    # Few points are drawn as dots; along longer lines some unseen ones carry the values for the pointer.
    few = max((len(line.x) for line in lines), default=0) <= HINTS
    index, length = pl.int_range(pl.len()).over("name"), pl.len().over("name")
    step = pl.max_horizontal((length / HINTS).ceil().cast(pl.Int64), pl.lit(1, pl.Int64))
    points = base.properties(data=table.filter((index % step == 0) | (index == length - 1)))
    layers.append(points.mark_point(filled=True, size=46 if few else 160, opacity=int(few)).encode(description="tip:N"))
    if mark is not None:
        layers.append(_upright(mark, color=theme.soft, strokeDash=[4, 4], strokeWidth=1.4))
    return _fitted(alt.layer(*layers), theme, names)


def popularity_line(name: str, counts: NDArray[Any], index: int, first: int = 1, last: int | None = None) -> Line:
    """Interactions of the items, most popular first; items without any are not drawn.

    Parameters
    ----------
    name : in the legend
    counts : (n_items,) training interactions
    index : of its colour
    first, last : ranks at which the line begins and ends

    Returns
    -------
    at most `POINTS` points, evenly spaced on a logarithmic axis
    """
    falling = np.sort(counts[counts > 0])[::-1]
    last = len(falling) if last is None else last
    rank = np.unique(np.geomspace(first, last, POINTS).round().astype(int)) if last >= first else np.array([], int)
    return Line(name, rank.tolist(), falling[rank - 1].tolist(), index)


def popularity_curves(counts: Mapping[str, NDArray[Any]], title: str = "Training popularity", by: str = "") -> Chart:
    """Training interactions of the items on logarithmic axes, for paper.

    Parameters
    ----------
    counts : name of a line → (n_items,) training interactions
    title : of the figure
    by : what the names are, such as `severity`

    Returns
    -------
    the chart
    """
    lines = [popularity_line(f"{by} {name}".strip(), each, index) for index, (name, each) in enumerate(counts.items())]
    axes = ("item, most popular first", "training pairs of the item")
    return curves(lines, PAPER, *axes, across="log", upwards="log").properties(title=title)


def scatter(
    dots: Sequence[Dot], theme: Theme, x: str, y: str, *, relative: bool = False, falling: bool = False
) -> Chart:
    """Dots by colour and shape; axes need not start at zero.

    Parameters
    ----------
    dots : what is drawn
    theme : size and colours
    x, y : titles of the axes
    relative : whether x is a change against the baseline: in percent, with an upright line at 0
    falling : whether lower values of y are better, so that they are drawn higher

    Returns
    -------
    the chart
    """
    alt = altair()
    index = {dot.name: dot.index for dot in dots}
    colours = [theme.colour(each) for each in index.values()]
    shapes = [SHAPES[each % len(SHAPES)] for each in index.values()]
    few: dict[str, Any] = {"tickCount": 5 if theme.narrow else 10, "labelFlush": True}
    axis = alt.Axis(format="+%", **few) if relative else alt.Axis(**few)
    base = alt.Chart(pl.DataFrame([vars(dot) for dot in dots]).sort("x")).encode(
        x=alt.X("x:Q", title=theme.lines(x), scale=_around([dot.x for dot in dots]), axis=axis),
        y=alt.Y("y:Q", title=theme.lines(y), scale=_around([dot.y for dot in dots], reverse=falling)),
        description="tip:N",
    )
    points = base.mark_point(filled=True, opacity=0.85).encode(
        color=_legend("name", list(index), colours, theme),
        shape=by_name("Shape", "name", list(index), shapes, alt.Undefined),
        size=alt.condition("datum.large", alt.value(160), alt.value(36)),
    )
    layers = [points]
    if relative:
        best = base.transform_filter("datum.joined").mark_line(strokeWidth=1.6, color=theme.soft, strokeDash=[4, 3])
        layers = [_upright(0.0, color=theme.soft, strokeWidth=0.8), best, points]
    for dot in dots:
        if dot.mark:
            marked = base.transform_filter(f"datum.mark == '{dot.mark}'")
            left = dot.x > (min(each.x for each in dots) + max(each.x for each in dots)) / 2
            beside = {"align": "right" if left else "left", "dx": -13 if left else 13, "dy": -7}
            where = {"dy": -20} if dot.mark == "chosen" else beside
            label = {"fontWeight": "bold", "color": theme.ink, "fontSize": theme.font_size} | where
            layers.append(marked.mark_text(**label).encode(text="mark:N"))
            if dot.mark == "chosen":
                layers.append(marked.mark_point(size=420, strokeWidth=2.5, color=theme.ink))
    return _fitted(alt.layer(*layers), theme, list(index))


def intervals(rows: Sequence[Interval], theme: Theme, x: str) -> Chart:
    """A dot and its interval per row, around an upright line at zero.

    Parameters
    ----------
    rows : a colour per name, a line per label
    theme : size and colours
    x : title of the axis

    Returns
    -------
    the chart
    """
    alt = altair()
    index, labels = {row.name: row.index for row in rows}, list(dict.fromkeys(row.label for row in rows))
    colours = [theme.colour(each) for each in index.values()]
    base = alt.Chart(pl.DataFrame([vars(row) for row in rows])).encode(
        y=alt.Y("label:N", sort=labels, title=None, axis=alt.Axis(labelLimit=theme.width // 2, grid=False)),
        yOffset=alt.YOffset("name:N", sort=list(index)),
        color=_legend("name", list(index), colours, theme),
        description="tip:N",
    )
    axis = alt.Axis(format="+%", tickCount=5 if theme.narrow else 10, labelFlush=False)
    bars = base.mark_rule(strokeWidth=2.5).encode(x=alt.X("low:Q", title=theme.lines(x), axis=axis), x2="high:Q")
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(x=alt.X("value:Q", title=theme.lines(x)))
    height = 60 + len(labels) * max(22, 13 * len(index))
    return _fitted(alt.layer(_upright(0.0, color=theme.ink, strokeWidth=1), bars, dots), theme, list(index), height)


def _fitted(chart: Chart, theme: Theme, names: Sequence[str], height: int | None = None) -> Chart:
    """The theme's size as a whole, with space for a legend of these names above."""
    size = altair().AutoSizeParams(type="fit", contains="padding")
    rows = -(-len(names) // _columns(names, theme))
    sized = chart.properties(width=theme.width, height=(height or theme.height) + 20 * rows, autosize=size)
    return styled(sized, theme, padding=MARGINS)


def _legend(field: str, names: Sequence[str], colours: Sequence[str], theme: Theme, **symbols: Any) -> Any:
    legend = altair().Legend(
        orient="top",
        direction="vertical",
        columns=_columns(names, theme),
        labelLimit=theme.width - 50,
        offset=8,
        # The browser's font may be wider than the one that is measured here.
        columnPadding=14 + max((len(name) for name in names), default=0) * 1.4,
        **{"symbolSize": 110, **symbols},
    )
    return by_name("Color", field, names, colours, legend)


def _columns(names: Sequence[str], theme: Theme) -> int:
    longest = max((len(name) for name in names), default=1)
    return max(1, min(len(names), int((theme.width - 60) // (longest * 8.4 + 44))))


def _axis(
    channel: str, field: str, title: Any, kind: str, values: pl.Series, theme: Theme, top: float | None = None
) -> Any:
    alt = altair()
    ticks = {"tickCount": 5 if theme.narrow else 10, "labelFlush": True} if channel == "X" else {}
    if kind == "log":  # ticks at 1, 10, 100 …: the steps between are crowded
        scale, axis = alt.Scale(type="log", nice=False), alt.Axis(values=[10**n for n in range(10)], format="~s")
    elif kind == "symlog":
        within = [tick for tick in DIAL_TICKS if values.min() <= tick <= values.max()]  # type: ignore[operator]
        scale = alt.Scale(type="symlog", constant=1, nice=False)
        axis = alt.Axis(values=within, format="~g", labelFlush=True)
    else:
        forms: dict[str, dict[str, Any]] = {"percent": {"format": "%"}, "steps": {"format": "d", "tickMinStep": 1}}
        axis = alt.Axis(**forms.get(kind, {}), **ticks)
        if channel == "X":
            scale = alt.Scale(nice=False, zero=False, padding=6 if kind == "steps" else 0)
        else:
            scale = alt.Scale(zero=True) if top is None else alt.Scale(domain=[0, top])
    return getattr(alt, channel)(f"{field}:Q", title=title, scale=scale, axis=axis)


def _upright(x: float, **style: Any) -> Chart:
    return altair().Chart(pl.DataFrame({"x": [float(x)]})).mark_rule(**style).encode(x="x:Q")


def _around(values: Sequence[float], reverse: bool = False) -> Any:
    """A scale with some space around the values, which does not reach below zero if they do not."""
    low, high = min(values), max(values)
    space = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    lowest = max(low - space, 0.0) if low >= 0 else low - space
    return altair().Scale(domain=[lowest, high + space], zero=False, nice=False, reverse=reverse)
