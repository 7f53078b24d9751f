"""Charts in one look, drawn by Altair, and their files.

Colours can be distinguished with any colour vision (Okabe and Ito's).  Charts hold literal colours; the page replaces
them by CSS variables, which follow light and dark (`VARIABLES`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._io import check_file_target, write_file
from dpaa.errors import InputError, import_extra

Chart = Any
"""A chart of Altair, which is an extra."""
REMEDY = "free some space or choose another folder"
WIDTH, HEIGHT = 600, 340
"""Of a whole figure; a legend adds to the height."""
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK, SOFT, GRID = "#111111", "#444444", "#e6e6e6"
VARIABLES = {colour: f"var(--c{index})" for index, colour in enumerate(PALETTE)}
VARIABLES |= {INK: "var(--ink)", SOFT: "var(--soft)", GRID: "var(--grid)"}
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
POINTS = 240
"""Points of a line: more cannot be seen."""
HINTS = 40
"""Points of a line that show their values under the pointer."""
DIAL_TICKS = (-2, -1, 0, 1, 2, 4, 8, 16, 32)
AXES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "": ({}, {}),
    "percent": ({"format": "%"}, {}),
    "steps": ({"format": "d", "tickMinStep": 1}, {"padding": 6}),
    "log": ({"values": [10**n for n in range(10)], "format": "~s"}, {"type": "log", "nice": False}),
    "symlog": ({"format": "~g", "labelOverlap": False}, {"type": "symlog", "constant": 1, "nice": False}),
}
"""Kind of an axis → options of the axis and of its scale."""


def altair() -> Any:
    """Import the drawing library, or say in one sentence what to install."""
    import_extra("vl_convert", "drawing figures", "report")  # Altair draws png, svg and pdf with it
    return import_extra("altair", "drawing figures", "report")


def check_figures(folder: Path) -> None:
    """Refuse, before anything is computed, a folder that cannot take figures.

    Parameters
    ----------
    folder : where the figures will be written
    """
    altair()
    check_file_target(folder / "figure.svg", [".svg"], "a figure", make_folders=True)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose a folder with --figures")


def save_figure(chart: Chart, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and as PNG that is sharp enough for print, each whole or not at all.

    Parameters
    ----------
    chart : chart of Altair
    folder : for both files
    name : of the files, without an ending

    Returns
    -------
    both files
    """
    files = [folder / f"{name}.{form}" for form in ("svg", "png")]
    for file in files:
        write_file(file, partial(chart.save, format=file.suffix[1:], ppi=200), REMEDY, make_folders=True)
    return files


# ---------------------------------------------------------------------- kinds of charts


@dataclass(frozen=True)
class Line:
    """One line of a chart; `index` of its colour, None = grey and dashed: what the others are compared with."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    index: int | None


EQUAL = Line("if all items were alike", [0.0, 1.0], [0.0, 1.0], None)
"""The diagonal of a concentration curve."""


@dataclass(frozen=True)
class Dot:
    """One point of a scatter plot; dots of one name share an entry of the legend."""

    name: str
    index: int
    """Of its colour and shape."""
    x: float
    y: float
    tip: str
    large: bool = True
    joined: bool = False
    """Whether the line of the best trade-offs goes through it."""
    mark: str = ""
    """`chosen` or `baseline`, written beside it."""


def line(
    lines: Sequence[Line],
    x: str,
    y: str,
    *,
    x_axis: str = "",
    y_axis: str = "",
    top: float | None = None,
    mark: float | None = None,
) -> Chart:
    """Lines over a common axis.

    Parameters
    ----------
    lines : in the order of the legend; points without a value are left out
    x, y : titles of the axes
    x_axis, y_axis : kinds, keys of `AXES`
    top : end of the y axis
    mark : where a dashed upright line is drawn

    Returns
    -------
    the chart
    """
    alt = altair()
    shown = ["{:.1%}".format if kind == "percent" else "{:.4g}".format for kind in (x_axis, y_axis)]
    rows: list[dict[str, Any]] = [
        {"name": line.name, "x": float(a), "y": float(b), "tip": f"{line.name}: {shown[0](a)} → {shown[1](b)}"}
        for line in lines
        for a, b in zip(line.x, line.y, strict=True)
        if b is not None
    ]
    table = pl.DataFrame(rows, schema={"name": pl.String, "x": pl.Float64, "y": pl.Float64, "tip": pl.String})
    names = [line.name for line in lines]
    colours = [SOFT if line.index is None else colour(line.index) for line in lines]
    cycles = [None if line.index is None else line.index // len(PALETTE) for line in lines]
    dashes = [[3, 3] if cycle is None else DASHES[cycle % len(DASHES)] for cycle in cycles]
    base = alt.Chart(table).encode(
        x=_axis("X", x, x_axis, [row["x"] for row in rows]),
        y=_axis("Y", y, y_axis, [], top),
        color=_legend(names, colours, symbolType="stroke"),
    )
    # Few points are drawn as dots; along longer lines some unseen ones carry the values for the pointer.
    longest = max((len(line.x) for line in lines), default=0)
    few, hints = longest <= HINTS, table[:: max(1, -(-longest // HINTS))]
    points = base.properties(data=hints).mark_point(filled=True, size=46 if few else 160, opacity=int(few))
    dashed = by_name("StrokeDash", names, dashes)
    layers = [base.mark_line(strokeWidth=2.4).encode(strokeDash=dashed), points.encode(description="tip:N")]
    if mark is not None:
        layers.append(_upright(mark, strokeDash=[4, 4]))
    return _fitted(alt.layer(*layers), names)


def popularity_line(name: str, counts: NDArray[Any], index: int, first: int = 1, last: int | None = None) -> Line:
    """Interactions of the items between two ranks, most popular first; items without any are not drawn."""
    falling = np.sort(counts[counts > 0])[::-1]
    last = len(falling) if last is None else last
    # Evenly spaced on a logarithmic axis.
    rank = np.unique(np.geomspace(first, last, POINTS).round().astype(int)) if last >= first else np.array([], int)
    return Line(name, rank.tolist(), falling[rank - 1].tolist(), index)


def scatter(dots: Sequence[Dot], x: str, y: str, *, relative: bool = False, falling: bool = False) -> Chart:
    """Dots by colour and shape; axes need not start at zero.

    Parameters
    ----------
    dots : what is drawn
    x, y : titles of the axes
    relative : whether x is a change against the baseline: in percent, with an upright line at 0
    falling : whether lower values of y are better, so that they are drawn higher

    Returns
    -------
    the chart
    """
    alt = altair()
    index = {dot.name: dot.index for dot in dots}
    names, shapes = list(index), [SHAPES[each % len(SHAPES)] for each in index.values()]
    axis = alt.Axis(format="+%") if relative else alt.Axis()
    base = alt.Chart(pl.DataFrame([vars(dot) for dot in dots]).sort("x")).encode(
        x=alt.X("x:Q", title=x, scale=_around([dot.x for dot in dots]), axis=axis),
        y=alt.Y("y:Q", title=y, scale=_around([dot.y for dot in dots], reverse=falling)),
        description="tip:N",
    )
    layers = [
        base.mark_point(filled=True, opacity=0.85).encode(
            color=_legend(names, [colour(each) for each in index.values()]),
            shape=by_name("Shape", names, shapes, alt.Undefined),
            size=alt.condition("datum.large", alt.value(160), alt.value(36)),
        )
    ]
    if relative:
        best = base.transform_filter("datum.joined").mark_line(strokeWidth=1.6, color=SOFT, strokeDash=[4, 3])
        chosen = base.transform_filter("datum.mark == 'chosen'").mark_point(size=420, strokeWidth=2.5, color=INK)
        layers = [_upright(0.0), best, *layers, chosen]
    for mark, where in (("chosen", {"dy": -20}), ("baseline", {"dx": 13, "dy": -7, "align": "left"})):
        label = base.transform_filter(f"datum.mark == '{mark}'").mark_text(fontWeight="bold", color=INK, **where)
        layers.append(label.encode(text="mark:N"))
    return _fitted(alt.layer(*layers), names)


def bars(rows: Sequence[Mapping[str, Any]], x: str, indices: Mapping[str, int]) -> Chart:
    """A dot and the bar of its interval per row, around an upright line at zero.

    Parameters
    ----------
    rows : each with `label` (a line), `name` (a colour), `value`, `low`, `high` and `tip`
    x : title of the axis
    indices : name → index of its colour

    Returns
    -------
    the chart
    """
    alt = altair()
    names, labels = (list(dict.fromkeys(row[key] for row in rows)) for key in ("name", "label"))
    base = alt.Chart(pl.DataFrame(rows)).encode(
        y=alt.Y("label:N", sort=labels, title=None, axis=alt.Axis(labelLimit=WIDTH // 2, grid=False)),
        yOffset=alt.YOffset("name:N", sort=names),
        color=_legend(names, [colour(indices[name]) for name in names]),
        description="tip:N",
    )
    bars = base.mark_rule(strokeWidth=2.5).encode(x=alt.X("low:Q", title=x, axis=alt.Axis(format="+%")), x2="high:Q")
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(x=alt.X("value:Q", title=x))
    return _fitted(alt.layer(_upright(0.0), bars, dots), names, 60 + len(labels) * max(22, 13 * len(names)))


def grid(cells: Sequence[Mapping[str, str]], kinds: Mapping[str, str], x: str) -> Chart:
    """A table of coloured cells, each with its text.

    Parameters
    ----------
    cells : each with `row`, `column`, `text`, `name` (a kind) and `tip`
    kinds : name → colour, in the order of the legend
    x : title of the columns

    Returns
    -------
    the chart
    """
    alt = altair()
    rows, columns = (sorted({cell[key] for cell in cells}) for key in ("row", "column"))
    base = alt.Chart(pl.DataFrame(cells)).encode(
        x=alt.X("column:N", sort=columns, title=x, axis=alt.Axis(orient="top", labelAngle=-60, labelFlush=False)),
        y=alt.Y("row:N", sort=rows, title=None, axis=alt.Axis(labelLimit=WIDTH // 2, domain=False)),
        description="tip:N",
    )
    boxes = base.mark_rect(opacity=0.35).encode(color=_legend(list(kinds), list(kinds.values()), symbolType="square"))
    texts = base.mark_text(color=INK, fontSize=12).encode(text="text:N")
    return _fitted(alt.layer(boxes, texts), list(kinds), 70 + 30 * len(rows))


# ---------------------------------------------------------------------- what they share


def colour(index: int) -> str:
    """Colour of the n-th kind; they repeat beyond the palette, where shapes or dashes tell kinds apart."""
    return PALETTE[index % len(PALETTE)]


def styled(chart: Chart, padding: int | dict[str, int] = 12) -> Chart:
    """Give a chart the look of all figures: readable type, no box, faint grid.

    Parameters
    ----------
    chart : chart of Altair
    padding : pixels around the plot

    Returns
    -------
    the configured chart
    """
    # Fonts by family, not embedded: the page must not load any, and every system has one of these.
    text = {"labelColor": INK, "titleColor": INK, "titleFontWeight": "normal", "labelFontSize": 13, "titleFontSize": 13}
    axis = {"gridColor": GRID, "domainColor": SOFT, "tickColor": SOFT, "titlePadding": 10}
    return (
        chart.configure(font="Liberation Sans, Arial, Helvetica, sans-serif", background="white", padding=padding)
        .configure_view(stroke=None)
        .configure_title(fontSize=15, anchor="start", color=INK)
        .configure_axis(**axis, **text)
        .configure_axisX(labelFlush=True, tickCount=8)
        .configure_legend(symbolStrokeWidth=3, **text)
        .configure_header(**text)
    )


def by_name(channel: str, names: Sequence[str], values: Sequence[Any], legend: Any = None) -> Any:
    """Encode the column `name` by a value each, in this order.

    Parameters
    ----------
    channel : `Color`, `Shape`, `StrokeDash`, …
    names, values : in the order of the legend
    legend : of Altair; none unless given

    Returns
    -------
    the channel of Altair
    """
    alt = altair()
    scale = alt.Scale(domain=list(names), range=list(values))
    return getattr(alt, channel)("name:N", sort=list(names), title=None, scale=scale, legend=legend)


def _columns(names: Sequence[str]) -> int:
    """Columns of a legend above the plot; the browser's font may be wider than the one that is measured here."""
    return max(1, min(len(names), (WIDTH - 60) // (9 * max(map(len, names), default=1) + 60)))


def _legend(names: Sequence[str], colours: Sequence[str], **symbols: Any) -> Any:
    form = {"columns": _columns(names), "labelLimit": WIDTH - 60, "columnPadding": 30, "symbolSize": 160}
    return by_name("Color", names, colours, altair().Legend(orient="top", direction="vertical", **form, **symbols))


def _fitted(chart: Chart, names: Sequence[str], height: int = HEIGHT) -> Chart:
    """The width of all figures, and space for a legend of these names above."""
    # Fitted with its padding, so that all figures of a page are of one width whatever their labels.
    size = altair().AutoSizeParams(type="fit", contains="padding")
    rows = -(-len(names) // _columns(names))
    sized = chart.properties(width=WIDTH, height=height + 22 * rows, autosize=size)
    return styled(sized, {"left": 18, "right": 10, "top": 4, "bottom": 4})


def _axis(channel: str, title: str, kind: str, values: Sequence[float], top: float | None = None) -> Any:
    alt, (axis, scale) = altair(), AXES[kind]
    if kind == "symlog":
        axis = axis | {"values": [tick for tick in DIAL_TICKS if min(values) <= tick <= max(values)]}
    if channel == "X":
        scale = {"nice": False, "zero": False} | scale
    elif top is not None:
        scale = {"domain": [0, top]}
    encoded = getattr(alt, channel)
    return encoded(f"{channel.lower()}:Q", title=title, axis=alt.Axis(**axis), scale=alt.Scale(**scale))


def _upright(x: float, **style: Any) -> Chart:
    return altair().Chart(pl.DataFrame({"x": [float(x)]})).mark_rule(color=SOFT, **style).encode(x="x:Q")


def _around(values: Sequence[float], reverse: bool = False) -> Any:
    """A scale with some space around the values, which does not reach below zero if they do not."""
    low, high = min(values), max(values)
    space = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    lowest = max(low - space, 0.0) if low >= 0 else low - space
    return altair().Scale(domain=[lowest, high + space], zero=False, nice=False, reverse=reverse)
