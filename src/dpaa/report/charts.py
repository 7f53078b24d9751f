"""Charts of the page and of papers: the same code, drawn with the theme it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.data.popularity import popular_items
from dpaa.report.figures import POINTS, Chart, altair, by_name, log_axis, styled
from dpaa.report.theme import SHAPES, Theme

HINTS = 40
"""Places of a line that tell their values under the pointer."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])


@dataclass(frozen=True)
class Line:
    """One line of a chart, and how it is told from the others."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    place: int | None
    """Place in the palette; None = the ink, dashed: what everything else is measured against."""


@dataclass(frozen=True)
class Point:
    """One point of a scatter."""

    name: str
    """In the legend; several points may share it."""
    x: float
    y: float
    place: int
    tip: str


@dataclass(frozen=True)
class Interval:
    """A dot and its interval."""

    label: str
    name: str
    place: int
    value: float
    low: float
    high: float
    tip: str


@dataclass(frozen=True)
class FrontierDot:
    """A trade between accuracy and a goal."""

    name: str
    """Its model, in the legend."""
    place: int
    x: float
    y: float
    plain: bool
    """The model as it is: drawn large."""
    best: bool
    """On the frontier: joined by the line."""
    mark: str
    """Written beside it."""
    tip: str


# ---------------------------------------------------------------------- data


def long_tail(counts: NDArray[Any], theme: Theme) -> Chart:
    """Training counts, the most popular item first, on log axes; popular and niche in two colours."""
    alt = altair()
    falling = np.sort(counts[counts > 0])[::-1].astype(float)
    n_popular = int(popular_items(counts).sum())
    names = [f"popular: {n_popular:,} items", f"niche: {len(counts) - n_popular:,} items"]
    rank = np.unique(np.geomspace(1, len(falling), POINTS).round().astype(int))
    rank = np.unique(np.append(rank, n_popular))  # the line of the niche begins where the other ends
    table = pl.concat(
        pl.DataFrame({"rank": part, "count": falling[part - 1]}).with_columns(group=pl.lit(name))
        for name, part in zip(names, (rank[rank <= n_popular], rank[rank >= n_popular]), strict=True)
    )
    told = pl.format("item {} of {}: {} interactions", "rank", pl.lit(len(counts)), pl.col("count").cast(pl.Int64))
    table = table.with_columns(told.alias("tip"))
    base = alt.Chart(table).encode(
        x=log_axis("X", "rank", "item, most popular first"),
        y=log_axis("Y", "count", "interactions of the item"),
        color=_legend("group", names, [theme.colour(1), theme.colour(0)], theme),
    )
    line = base.mark_line(strokeWidth=3, interpolate="linear")
    return fitted(alt.layer(line, _hints(base, table, "group")), theme, names)


def concentration(counts: NDArray[Any], theme: Theme) -> Chart:
    """Share of all interactions that the most popular x % of the items have; the diagonal: all alike."""
    falling = np.sort(counts)[::-1].astype(float)
    share = np.concatenate([[0.0], np.cumsum(falling) / max(falling.sum(), 1)])
    place = np.unique(np.linspace(0, len(falling), POINTS).round().astype(int))
    lines = [
        Line("this log", list(place / len(falling)), list(share[place]), 0),
        Line("if all items were alike", [0.0, 1.0], [0.0, 1.0], None),
    ]
    return curves(lines, theme, "share of items, most popular first", "share of interactions", percent="xy", top=1.0)


# ---------------------------------------------------------------------- runs


def scatter(points: Sequence[Point], theme: Theme, x: str, y: str) -> Chart:
    """Points by colour and shape; axes need not start at zero."""
    alt = altair()
    places = {point.name: point.place for point in points}
    names, axis = list(places), alt.Axis(**_few(theme))
    shapes = [SHAPES[place % len(SHAPES)] for place in places.values()]
    chart = (
        alt.Chart(pl.DataFrame([vars(point) for point in points]))
        .mark_point(filled=True, size=150, opacity=0.92, clip=False)
        .encode(
            x=alt.X("x:Q", title=theme.lines(x), scale=_around([point.x for point in points]), axis=axis),
            y=alt.Y("y:Q", title=y, scale=_around([point.y for point in points])),
            color=_legend("name", names, [theme.colour(place) for place in places.values()], theme),
            shape=by_name("Shape", "name", names, shapes, alt.Undefined),
            description="tip:N",
        )
    )
    return fitted(chart, theme, names)


def frontier(dots: Sequence[FrontierDot], theme: Theme, x: str, y: str, *, falling: bool = False) -> Chart:
    """Trades by model, the best of them joined by a line; upwards is better, so that a `falling` goal is turned."""
    alt = altair()
    places = {dot.name: dot.place for dot in dots}
    names = list(places)
    table = pl.DataFrame([vars(dot) for dot in dots]).sort("x")
    room = _around([dot.y for dot in dots])
    if falling:
        room.reverse = True
    across = alt.X(
        "x:Q", title=theme.lines(x), scale=_open([dot.x for dot in dots]), axis=alt.Axis(format="+%", **_few(theme))
    )
    base = alt.Chart(table).encode(x=across, y=alt.Y("y:Q", title=theme.lines(y), scale=room), description="tip:N")
    colour = _legend("name", names, [theme.colour(place) for place in places.values()], theme)
    kinds = [SHAPES[place // len(theme.palette) % len(SHAPES)] for place in places.values()]
    shape = by_name("Shape", "name", names, kinds, alt.Undefined)
    line = base.transform_filter("datum.best").mark_line(strokeWidth=1.6, color=theme.soft, strokeDash=[4, 3])
    small = base.mark_point(filled=True, size=36, opacity=0.75).encode(color=colour, shape=shape)
    plain = base.transform_filter("datum.plain")
    large = plain.mark_point(filled=True, size=170, opacity=0.95).encode(color=colour, shape=shape)
    ring = base.transform_filter("datum.mark == 'chosen'").mark_point(size=420, strokeWidth=2.5, color=theme.ink)
    labels = [
        base.transform_filter(f"datum.mark == '{mark}'")
        .mark_text(fontWeight="bold", color=theme.ink, fontSize=theme.font_size, **where)
        .encode(text="mark:N")
        for mark, where in (("chosen", {"dy": -20}), ("baseline", _beside(dots)))
    ]
    upright = _upright(0.0, color=theme.soft, strokeWidth=0.8)
    return fitted(alt.layer(upright, line, small, large, ring, *labels), theme, names)


def curves(
    lines: Sequence[Line],
    theme: Theme,
    x: str,
    y: str,
    *,
    percent: str = "",
    top: float | None = None,
    dots: bool = False,
    whole: bool = False,
    mark: float | None = None,
    far: Sequence[float] = (),
) -> Chart:
    """Lines over a common axis.

    `percent` names the axes shown as shares, `top` ends the y axis, `dots` marks every value, `whole` counts the x axis
    in whole steps, `mark` draws an upright line, `far` are the ticks of an x axis that goes by logarithms on both sides
    of 0.
    """
    alt = altair()
    forms = ["{:.1%}".format if axis in percent else "{:.4g}".format for axis in "xy"]
    table = pl.DataFrame(
        [
            {"name": line.name, "x": float(a), "y": float(b), "tip": f"{line.name}: {forms[0](a)} → {forms[1](b)}"}
            for line in lines
            for a, b in zip(line.x, line.y, strict=True)
            if b is not None
        ],
        schema={"name": pl.String, "x": pl.Float64, "y": pl.Float64, "tip": pl.String},
    )
    names = [line.name for line in lines]
    colours = [theme.soft if line.place is None else theme.colour(line.place) for line in lines]
    dashes = [
        [3, 3] if line.place is None else DASHES[line.place // len(theme.palette) % len(DASHES)] for line in lines
    ]
    if far:
        x_scale = alt.Scale(type="symlog", constant=1, nice=False)
        axis = alt.Axis(values=list(far), format="~g", labelFlush=True)
    else:
        x_scale = alt.Scale(nice=False, zero=False, **({"padding": 6} if whole else {}))
        form = "%" if "x" in percent else "d" if whole else "~s"
        axis = alt.Axis(format=form, tickMinStep=1 if whole else 0, **_few(theme))
    y_scale = alt.Scale(domain=[0, top]) if top is not None else alt.Scale(zero=True)
    base = alt.Chart(table).encode(
        x=alt.X("x:Q", title=theme.lines(x), scale=x_scale, axis=axis),
        y=alt.Y("y:Q", title=y, scale=y_scale, axis=alt.Axis(format="%") if "y" in percent else alt.Axis()),
        color=_legend("name", names, colours, theme, symbolType="stroke", symbolSize=240),
    )
    dashed = by_name("StrokeDash", "name", names, dashes)
    layers = [base.mark_line(strokeWidth=2.4).encode(strokeDash=dashed, detail="name:N")]
    if dots:
        layers.append(base.mark_point(filled=True, size=46, opacity=1).encode(description="tip:N"))
    else:
        layers.append(_hints(base, table))
    if mark is not None:
        layers.append(_upright(mark, color=theme.soft, strokeDash=[4, 4], strokeWidth=1.4))
    return fitted(alt.layer(*layers), theme, names)


def intervals(rows: Sequence[Interval], theme: Theme, x: str) -> Chart:
    """A dot and its interval per row, around an upright line at zero; a colour per name, a line per label."""
    alt = altair()
    places = {row.name: row.place for row in rows}
    names, labels = list(places), list(dict.fromkeys(row.label for row in rows))
    colours = [theme.colour(place) for place in places.values()]
    table = pl.DataFrame([vars(row) for row in rows])
    base = alt.Chart(table).encode(
        y=alt.Y("label:N", sort=labels, title=None, axis=alt.Axis(labelLimit=theme.width // 2, grid=False)),
        yOffset=alt.YOffset("name:N", sort=names),
        color=_legend("name", names, colours, theme),
        description="tip:N",
    )
    zero = _upright(0.0, color=theme.ink, strokeWidth=1)
    axis = alt.Axis(format="+%", **_few(theme) | {"labelFlush": False})
    bars = base.mark_rule(strokeWidth=2.5).encode(x=alt.X("low:Q", title=theme.lines(x), axis=axis), x2="high:Q")
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(x=alt.X("value:Q", title=theme.lines(x)))
    height = 60 + len(labels) * max(22, 13 * len(names))
    return fitted(alt.layer(zero, bars, dots), theme, names, height)


# ---------------------------------------------------------------------- common


ROOM_FOR_FONTS = {"left": 18, "right": 8, "top": 4, "bottom": 4}
"""Around a plot: a reader's browser may have a wider font than the one that labels were measured with."""


def fitted(chart: Chart, theme: Theme, names: Sequence[str], height: int | None = None) -> Chart:
    """The theme's size as a whole, with room for a legend of these names above."""
    size = altair().AutoSizeParams(type="fit", contains="padding")
    rows = -(-len(names) // _columns(names, theme))
    sized = chart.properties(width=theme.width, height=(height or theme.height) + 20 * rows, autosize=size)
    return styled(sized, theme, padding=ROOM_FOR_FONTS)


def _legend(field: str, names: Sequence[str], colours: Sequence[str], theme: Theme, **symbols: Any) -> Any:
    """A colour by name, explained above the plot; nothing to explain where there is one name."""
    legend = altair().Legend(
        orient="top",
        direction="vertical",
        columns=_columns(names, theme),
        labelLimit=theme.width - 50,
        offset=8,
        # The reader's font may be wider than the one that is measured here.
        columnPadding=14 + max((len(name) for name in names), default=0) * 1.4,
        **{"symbolSize": 110, **symbols},
    )
    return by_name("Color", field, names, colours, legend)


def _columns(names: Sequence[str], theme: Theme) -> int:
    longest = max((len(name) for name in names), default=1)
    return max(1, min(len(names), int((theme.width - 60) // (longest * 8.4 + 44))))


def _hints(base: Chart, table: pl.DataFrame, by: str = "name") -> Chart:
    """Unseen marks along lines, which tell their values under the pointer."""
    place, length = pl.int_range(pl.len()).over(by), pl.len().over(by)
    step = pl.max_horizontal((length / HINTS).ceil().cast(pl.Int64), pl.lit(1, pl.Int64))
    some = table.filter((place % step == 0) | (place == length - 1))
    return base.properties(data=some).mark_point(filled=True, size=160, opacity=0).encode(description="tip:N")


def _beside(dots: Sequence[FrontierDot]) -> dict[str, Any]:
    """Where the baseline's label stands: beside its dot, which is often the lowest, on the side away from the choice
    unless there is no room.
    """
    low, high = min(dot.x for dot in dots), max(dot.x for dot in dots)
    marked = {dot.mark: dot.x for dot in dots if dot.mark}
    base = marked.get("baseline", low)
    room_left, room_right = base - low, high - base
    crowded = min(room_left, room_right) < 0.25 * (high - low)
    to_left = room_left > room_right if crowded else marked.get("chosen", low) > base
    return {"align": "right", "dx": -13, "dy": -7} if to_left else {"align": "left", "dx": 13, "dy": -7}


def _upright(x: float, **style: Any) -> Chart:
    return altair().Chart(pl.DataFrame({"x": [float(x)]})).mark_rule(**style).encode(x="x:Q")


def _around(values: Sequence[float]) -> Any:
    """The values with some room, which does not reach below zero if they do not."""
    low, high = min(values), max(values)
    room = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    lowest = max(low - room, 0.0) if low >= 0 else low - room
    return altair().Scale(domain=[lowest, high + room], zero=False, nice=False)


def _open(values: Sequence[float]) -> Any:
    """The values with some room on both sides."""
    low, high = min(values), max(values)
    room = 0.08 * (high - low) or 0.01
    return altair().Scale(domain=[low - room, high + room], zero=False, nice=False)


def _few(theme: Theme) -> dict[str, Any]:
    return {"tickCount": 5 if theme.narrow else 10, "labelFlush": True}
