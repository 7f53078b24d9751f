"""Figures of `dpaa trace`: message weights and inverse interaction weights by layer, popularity decile and epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from dpaa.report._drawing import PALETTE, PAPER, Chart, Theme, altair, by_name, styled
from dpaa.trace import Trace

RARE_FIRST = "popularity decile (1 = rarest decile of items)"
MOST_COLUMNS = 200
"""Columns of a heat map over epochs: more cannot be told apart."""


def trace_figures(trace: Trace) -> dict[str, Chart]:
    """All figures of a trace, those over epochs only where the history has them.

    Parameters
    ----------
    trace : of one run

    Returns
    -------
    name of a figure → chart
    """
    charts = {"relative-weights": relative_weights(trace)}
    if any(layer.mass_share for layer in trace.weights):
        charts["message-mass"] = _message_mass(trace)
    charts["inverse-interaction-weights"] = _premises(trace)
    if any(line.get("embedding_shift") is not None for line in trace.epochs):
        charts["share-and-shift"] = _share_and_shift(trace)
    if any(line.get("iiw_by_decile") for line in trace.epochs):
        charts["weights-over-epochs"] = _weights_over_epochs(trace)
    return {name: styled(chart) if name != "relative-weights" else chart for name, chart in charts.items()}


def relative_weights(trace: Trace, theme: Theme = PAPER) -> Chart:
    """Heat map, layer × decile: mean message weight relative to LightGCN's, on a log colour scale around 1.

    Parameters
    ----------
    trace : of one run
    theme : size and colours; only paper has a title, the page has its own

    Returns
    -------
    the chart
    """
    alt = altair()
    cells = _cells([(f"{layer.layer} → {layer.layer + 1}", layer.relative) for layer in trace.weights], "layer")
    # A weight that differs from 1 by rounding alone must not look like a pattern.
    reach = max([math.log2(1.1), *(abs(math.log2(value)) for value in cells["value"] if value > 0)])
    chart = alt.Chart(cells.with_columns(shade=pl.col("value").clip(1e-9).log(2)))
    layer, decile = alt.Y("layer:O", title="layer"), alt.X("decile:O", title=RARE_FIRST, axis=alt.Axis(labelAngle=0))
    if theme.narrow:  # ten numbers do not fit beside each other: they go below each other
        layer = alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0))
        decile = alt.Y("decile:O", title=RARE_FIRST, sort="descending")
        chart = chart.properties(width=theme.width - 100, height=300).encode(x=layer, y=decile)
    else:
        width = 520 if theme == PAPER else theme.width - 92
        chart = chart.properties(width=width, height=46 * len(trace.weights)).encode(x=decile, y=layer)
    if theme == PAPER:
        title = alt.Title("Message weight relative to LightGCN's", subtitle=f"{trace.method}; 1 = 1/√(dᵤ dᵢ)")
        chart = chart.properties(title=title)
    scale = alt.Scale(scheme="blueorange", domain=[-reach, reach], domainMid=0)
    heat = chart.mark_rect(stroke="white").encode(color=alt.Color("shade:Q", scale=scale, legend=None))
    dark = alt.condition(f"abs(datum.shade) > {0.6 * reach}", alt.value("white"), alt.value("black"))
    text = chart.mark_text(fontSize=12).encode(text=alt.Text("value:Q", format=".2f"), color=dark)
    return styled(heat + text, theme)


def _message_mass(trace: Trace) -> Chart:
    """Share of the message mass by decile and layer, with the run's weights and with LightGCN's."""
    alt = altair()
    names = ("with the run's weights", "LightGCN's weights")
    table = pl.concat(
        _cells([(f"layer {layer.layer} → {layer.layer + 1}", shares)], "layer").with_columns(weights=pl.lit(name))
        for layer in trace.weights
        for name, shares in zip(names, (layer.mass_share, layer.plain_mass_share), strict=True)
        if shares
    )
    legend = alt.Legend(symbolType="stroke", symbolSize=300, orient="top")
    title = alt.Title("Messages from items to users", subtitle=f"{trace.method}; decile 1 = rarest items")
    return _by_decile(table, title, 190, "share of message mass", "%").encode(
        color=by_name("Color", "weights", names, PALETTE[1::-1], legend),
        strokeDash=by_name("StrokeDash", "weights", names, [[1, 0], [5, 3]]),
        facet=alt.Facet("layer:N", title=None, columns=3),
    )


def _premises(trace: Trace) -> Chart:
    """Inverse interaction weight by decile: a line per layer, a panel for the run and for its pre-trained model."""
    alt = altair()
    panels = {"own": "this run", "pretrained": "its pre-trained model"}
    table = pl.concat(
        _cells([(premise.place, premise.iiw)], "place").with_columns(vectors=pl.lit(panels[premise.vectors]))
        for premise in trace.premises
    )
    places = list(table["place"].unique(maintain_order=True))
    colours = [PALETTE[index % len(PALETTE)] for index in range(len(places))]
    subtitle = f"{trace.method}; the premise: it falls from rare (1) to popular (10) items"
    title = alt.Title("Inverse interaction weight, 1 − cos(eᵤ, eᵢ)", subtitle=subtitle)
    return _by_decile(table, title, 300, "mean over edges").encode(
        color=by_name("Color", "place", places, colours, alt.Legend(symbolType="stroke", symbolSize=300)),
        column=alt.Column("vectors:N", sort=list(panels.values()), title=None),
    )


def _share_and_shift(trace: Trace) -> Chart:
    """β and Δ over the epochs, one above the other."""
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
    return alt.vconcat(share, shift, title=title)


def _weights_over_epochs(trace: Trace) -> Chart:
    """Heat map, decile × epoch: mean inverse interaction weight that was applied."""
    alt = altair()
    lines = [line for line in trace.epochs if line.get("iiw_by_decile")]
    step = max(1, math.ceil(len(lines) / MOST_COLUMNS))
    cells = pl.concat(
        _cells([("", line["iiw_by_decile"])], "name").with_columns(epoch=pl.lit(line["epoch"]))
        for line in lines[::step]
    )
    title = alt.Title("Inverse interaction weight applied, by epoch", subtitle=trace.method)
    shades = alt.Scale(scheme="viridis", zero=False)
    return (
        alt.Chart(cells, title=title, width=520, height=240)
        .transform_calculate(end=f"min(datum.epoch + {1.5 * step}, {lines[-1]['epoch'] + 1})")
        .mark_rect(height={"band": 1.02})  # each cell reaches under the next: no seams
        .encode(
            x=_epochs(zero=False),
            x2="end:Q",
            y=alt.Y("decile:O", title="popularity decile", sort="descending"),
            color=alt.Color("value:Q", title=["mean r", "over edges"], scale=shades),
        )
    )


def _by_decile(table: pl.DataFrame, title: Any, width: int, y: str, form: str = "") -> Chart:
    alt = altair()
    return (
        alt.Chart(table, title=title, width=width, height=220)
        .mark_line(point=alt.OverlayMarkDef(size=30), strokeWidth=2)
        .encode(
            x=alt.X("decile:O", title="popularity decile", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("value:Q", title=y, axis=alt.Axis(format=form), scale=alt.Scale(zero=True)),
        )
    )


def _epochs(**scale: Any) -> Any:
    alt = altair()
    axis = alt.Axis(tickMinStep=1, format="d", grid="zero" not in scale)
    return alt.X("epoch:Q", title="epoch", axis=axis, scale=alt.Scale(nice=False, **scale))


def _cells(rows: Sequence[tuple[str, Sequence[float | None]]], name: str) -> pl.DataFrame:
    """One row per decile that has a value: the name's column, `decile` from 1, `value`."""
    return pl.DataFrame(
        [
            {name: label, "decile": decile, "value": value}
            for label, values in rows
            for decile, value in enumerate(values, start=1)
            if value is not None
        ],
        schema={name: pl.String, "decile": pl.Int64, "value": pl.Float64},
    )
