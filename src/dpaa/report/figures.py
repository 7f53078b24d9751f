"""Figures by Altair, the same for paper, page and machine: png, svg, pdf, html (self-contained) or json (Vega-Lite).

Colours can be told apart by people who see them differently: Okabe and Ito's for kinds, viridis for an order, blue to
orange around a middle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._io import check_file_target, write_file
from dpaa.errors import InputError, MissingExtraError
from dpaa.report.theme import PALETTE, PAPER, Theme
from dpaa.trace.run import Trace

Chart = Any
"""Of Altair, which is an extra."""
FORMATS = ("png", "svg", "pdf", "html", "json")
OPTIONS: dict[str, dict[str, Any]] = {"png": {"ppi": 200}, "html": {"inline": True}}
"""Sharp enough for print; a page that needs no network."""
POINTS = 240
"""Points of a curve: more cannot be seen."""
ORDERED = "viridis"
MIDDLE = "blueorange"
DECILE = "popularity decile (1 = rarest tenth of items)"


def altair() -> ModuleType:
    """The drawing library, or one sentence that says what to install."""
    try:
        import altair
        import vl_convert  # noqa: F401  # Altair draws png, svg and pdf with it
    except ImportError:
        raise MissingExtraError("drawing figures", "report") from None
    return altair


def check_figures(folder: Path, figure_format: str) -> None:
    """Refuse, before anything is computed, a folder that cannot take figures of this format."""
    check_figure(folder / f"figure.{figure_format}")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose a folder with --figures")


def check_figure(file: Path) -> None:
    """Refuse a file that no figure can be written to, before anything is computed for it."""
    altair()
    check_file_target(file, [f".{form}" for form in FORMATS], "a figure", make_folders=True)


def save(chart: Chart, file: str | Path) -> Path:
    """Write a figure in the format its ending tells; it appears whole or not at all."""
    target = Path(file)
    check_figure(target)
    form = target.suffix.lower().removeprefix(".")

    def draw(fresh: Path) -> None:
        chart.save(str(fresh), format=form, **OPTIONS.get(form, {}))

    write_file(target, draw, "make room or choose another place", make_folders=True)
    return target


def styled(chart: Chart, theme: Theme = PAPER, padding: int | dict[str, int] = 12) -> Chart:
    """The same for all: readable type, no box, faint grid."""
    small, large = theme.font_size, theme.font_size + 1
    text = {"labelColor": theme.ink, "titleColor": theme.ink, "titleFontWeight": "normal", "labelFontSize": small}
    lines = {"gridColor": theme.grid, "domainColor": theme.soft, "tickColor": theme.soft, "titlePadding": 10}
    title = {"fontSize": 15, "anchor": "start", "fontWeight": "bold", "color": theme.ink}
    return (
        chart.configure(font=theme.font, background=theme.ground, padding=padding)
        .configure_view(stroke=None)
        .configure_title(**title, subtitleFontSize=small, subtitleColor=theme.soft)
        .configure_axis(titleFontSize=large, **lines, **text)
        .configure_legend(titleFontSize=small, symbolStrokeWidth=3, **text)
        .configure_header(titleFontSize=large, **text)
    )


# ---------------------------------------------------------------------- what charts share


def by_name(channel: str, field: str, names: Sequence[str], values: Sequence[Any], legend: Any = None) -> Any:
    """A channel (`Color`, `Shape`, `StrokeDash`) with a value for each name, in this order."""
    alt = altair()
    scale = alt.Scale(domain=list(names), range=list(values))
    return getattr(alt, channel)(f"{field}:N", sort=list(names), title=None, scale=scale, legend=legend)


def strokes(**where: Any) -> Any:
    """A legend that shows lines as lines."""
    return altair().Legend(symbolType="stroke", symbolSize=300, **where)


def log_axis(channel: str, field: str, title: str) -> Any:
    """Logarithmic, with ticks at 1, 10, 100 …: the steps between are crowded."""
    alt = altair()
    axis = alt.Axis(values=[10**power for power in range(10)], format="~s", grid=True)
    return getattr(alt, channel)(f"{field}:Q", title=title, scale=alt.Scale(type="log", nice=False), axis=axis)


def _deciles(title: str = "popularity decile") -> Any:
    alt = altair()
    return alt.X("decile:O", title=title, axis=alt.Axis(labelAngle=0))


def _epochs(**more: Any) -> Any:
    alt = altair()
    axis = alt.Axis(tickMinStep=1, format="d", **more.pop("axis", {}))
    return alt.X("epoch:Q", title="epoch", axis=axis, scale=alt.Scale(nice=False, **more))


# ---------------------------------------------------------------------- data


def popularity_curves(
    curves: Mapping[str, NDArray[Any]], title: str = "Training popularity", by: str = "", theme: Theme | None = None
) -> Chart:
    """Training counts of the items, sorted, on log axes: one line per name; items without pairs are not drawn.

    With a theme of its own it has no title: it stands on a page that has one.
    """
    alt = altair()
    frames, names = [], list(curves)
    for name, counts in curves.items():
        falling = np.sort(np.asarray(counts)[np.asarray(counts) > 0])[::-1]
        rank = np.unique(np.geomspace(1, max(len(falling), 1), POINTS).round().astype(int))[: len(falling)]
        frames.append(
            pl.DataFrame({"rank": rank, "count": falling[rank - 1].astype(float)}).with_columns(curve=pl.lit(name))
        )
    if theme is None:
        size, legend = {"title": title, "width": 440, "height": 300}, alt.Undefined
    else:
        size = {"width": theme.width - 80, "height": theme.height - 80}
        legend = strokes(orient="bottom", columns=5 if theme.narrow else 10)
    # Kinds up to three, an order beyond.
    ordered = {"scheme": {"name": ORDERED, "extent": [0.0, 0.92]}}
    scale = alt.Scale(**({"range": list(PALETTE[: len(names)])} if len(names) <= 3 else ordered))
    colour = alt.Color("curve:N", sort=names, scale=scale, title=by or None, legend=legend)
    chart = (
        alt.Chart(pl.concat(frames), **size)
        .mark_line(strokeWidth=1.6, interpolate="step-after")
        .encode(
            x=log_axis("X", "rank", "item, most popular first"),
            y=log_axis("Y", "count", "training pairs of the item"),
            color=colour if len(names) > 1 else alt.value(PALETTE[0]),
        )
    )
    return styled(chart, theme or PAPER)


# ---------------------------------------------------------------------- trace


def trace_figures(trace: Trace) -> dict[str, Chart]:
    """The figures of a trace by name; those over epochs only where the history tells of them."""
    found = {"relative-weights": relative_weights(trace)}
    if any(layer.mass_share for layer in trace.weights):
        found["message-mass"] = message_mass(trace)
    found["inverse-interaction-weights"] = premises(trace)
    if any(line.get("embedding_shift") is not None for line in trace.epochs):
        found["share-and-shift"] = share_and_shift(trace)
    if any(line.get("iiw_by_decile") for line in trace.epochs):
        found["weights-over-epochs"] = weights_over_epochs(trace)
    return found


def relative_weights(trace: Trace, theme: Theme | None = None) -> Chart:
    """Heat map, layer × decile: mean message weight relative to LightGCN's, on a log colour scale around 1.

    With a theme of its own it has no title: it stands on a page that has one.
    """
    alt = altair()
    rows = _cells([(f"{layer.layer} → {layer.layer + 1}", layer.relative) for layer in trace.weights], "layer")
    # A weight that differs from 1 by rounding alone must not read like a pattern.
    reach = max([math.log2(1.1), *(abs(math.log2(value)) for value in rows["value"] if value > 0)])
    shaded = alt.Chart(rows.with_columns(shade=pl.col("value").clip(1e-9).log(2)))
    if theme is not None and theme.narrow:  # no room for ten numbers beside each other: they go below each other
        x, y = alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0)), alt.Y("decile:O", title=DECILE)
        chart = shaded.properties(width=theme.width - 100, height=300).encode(x=x, y=y.sort("descending"))
    else:
        width = 520 if theme is None else theme.width - 92
        chart = shaded.properties(width=width, height=46 * len(trace.weights))
        chart = chart.encode(x=_deciles(DECILE), y=alt.Y("layer:O", title="layer"))
    if theme is None:
        title = alt.Title("Message weight relative to LightGCN's", subtitle=f"{trace.method}; 1 = 1/√(dᵤ dᵢ)")
        chart = chart.properties(title=title)
    scale = alt.Scale(scheme=MIDDLE, domain=[-reach, reach], domainMid=0)
    heat = chart.mark_rect(stroke="white").encode(color=alt.Color("shade:Q", scale=scale, legend=None))
    dark = alt.condition(f"abs(datum.shade) > {0.6 * reach}", alt.value("white"), alt.value("black"))
    text = chart.mark_text(fontSize=12).encode(text=alt.Text("value:Q", format=".2f"), color=dark)
    return styled(heat + text, theme or PAPER)


def message_mass(trace: Trace) -> Chart:
    """Share of the message mass by decile and layer, with the run's weights and with LightGCN's."""
    alt = altair()
    names = ("with the run's weights", "LightGCN's weights")
    table = pl.concat(
        _cells([(f"layer {layer.layer} → {layer.layer + 1}", shares)], "layer").with_columns(weights=pl.lit(name))
        for layer in trace.weights
        for name, shares in zip(names, (layer.mass_share, layer.plain_mass_share), strict=True)
        if shares
    )
    subtitle = f"{trace.method}; decile 1 = rarest tenth of items"
    chart = (
        alt.Chart(table, width=190, height=200)
        .mark_line(point=alt.OverlayMarkDef(size=35), strokeWidth=2)
        .encode(
            x=_deciles(),
            y=alt.Y("value:Q", title="share of message mass", axis=alt.Axis(format="%")),
            color=by_name("Color", "weights", names, PALETTE[1::-1], strokes(orient="top")),
            strokeDash=by_name("StrokeDash", "weights", names, [[1, 0], [5, 3]]),
            facet=alt.Facet("layer:N", title=None, columns=3),
        )
        .properties(title=alt.Title("Who is heard: messages from items to users", subtitle=subtitle))
    )
    return styled(chart)


def premises(trace: Trace) -> Chart:
    """Inverse interaction weight by decile, one line per layer and for the read-out; the pre-trained model's beside."""
    alt = altair()
    whose = {"own": "this run", "pretrained": "its pre-trained model"}
    table = pl.concat(
        _cells([(premise.place, premise.iiw)], "place").with_columns(vectors=pl.lit(whose[premise.vectors]))
        for premise in trace.premises
    )
    places = list(table["place"].unique(maintain_order=True))
    colours = [PALETTE[place % len(PALETTE)] for place in range(len(places))]
    subtitle = f"{trace.method}; the premise: it falls from rare (1) to popular (10) items"
    chart = (
        alt.Chart(table, width=300, height=260)
        .mark_line(point=alt.OverlayMarkDef(size=30), strokeWidth=2)
        .encode(
            x=_deciles(),
            y=alt.Y("value:Q", title="mean over edges", scale=alt.Scale(zero=True)),
            color=by_name("Color", "place", places, colours, strokes()),
            column=alt.Column("vectors:N", sort=list(whose.values()), title=None),
        )
        .properties(title=alt.Title("Inverse interaction weight, 1 − cos(eᵤ, eᵢ)", subtitle=subtitle))
    )
    return styled(chart)


def share_and_shift(trace: Trace) -> Chart:
    """β_t and Δ_t over the epochs, one above the other."""
    alt = altair()
    lines = [line for line in trace.epochs if line.get("embedding_shift") is not None]
    schema = {"epoch": pl.Int64, "embedding_shift": pl.Float64, "pretrained_share": pl.Float64}
    table = pl.DataFrame({name: [line.get(name) for line in lines] for name in schema}, schema=schema)

    def panel(column: str, title: str, colour: str, **scale: Any) -> Any:
        line = alt.Chart(table, width=480, height=150).mark_line(color=colour, strokeWidth=2)
        return line.encode(x=_epochs(), y=alt.Y(f"{column}:Q", title=title, scale=alt.Scale(**scale)))

    share = panel("pretrained_share", "β, pre-trained share", PALETTE[0], domain=[0, 1])
    shift = panel("embedding_shift", "Δ, shift per epoch", PALETTE[1], zero=True)
    title = alt.Title("How far the pre-trained estimate is trusted", subtitle=f"{trace.method}; β = Δ / (Δ + C)")
    return styled(alt.vconcat(share, shift, title=title))


def weights_over_epochs(trace: Trace) -> Chart:
    """Heat map, decile × epoch: mean inverse interaction weight in force."""
    alt = altair()
    lines = [line for line in trace.epochs if line.get("iiw_by_decile")]
    step = max(1, math.ceil(len(lines) / 200))  # more columns than that cannot be told apart
    rows = [
        {"epoch": line["epoch"], "decile": decile + 1, "value": value}
        for line in lines[::step]
        for decile, value in enumerate(line["iiw_by_decile"])
        if value is not None
    ]
    title = alt.Title("Inverse interaction weight in force, by epoch", subtitle=trace.method)
    shades = alt.Scale(scheme=ORDERED, zero=False)
    chart = (
        alt.Chart(pl.DataFrame(rows), title=title, width=520, height=240)
        .transform_calculate(end=f"min(datum.epoch + {1.5 * step}, {lines[-1]['epoch'] + 1})")
        .mark_rect(height={"band": 1.02})  # each cell reaches under the next: no seams
        .encode(
            x=_epochs(zero=False, axis={"grid": False}),
            x2="end:Q",
            y=alt.Y("decile:O", title="popularity decile", sort="descending"),
            color=alt.Color("value:Q", title=["mean r", "over edges"], scale=shades),
        )
    )
    return styled(chart)


def _cells(rows: Sequence[tuple[str, Sequence[float | None]]], name: str) -> pl.DataFrame:
    """One row per decile that has a value: the name's column, `decile` from 1, `value`."""
    return pl.DataFrame(
        [
            {name: label, "decile": decile + 1, "value": float(value)}
            for label, values in rows
            for decile, value in enumerate(values)
            if value is not None
        ],
        schema={name: pl.String, "decile": pl.Int64, "value": pl.Float64},
    )
