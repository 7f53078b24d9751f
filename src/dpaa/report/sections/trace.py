"""Where popularity enters: how loudly messages over rare and popular items speak, layer by layer."""

from __future__ import annotations

from itertools import islice

from dpaa.report.figures import relative_weights
from dpaa.report.inputs import Inputs
from dpaa.report.parts import Cell, Figure, Section, number, suffix, table
from dpaa.report.rendering import render
from dpaa.report.theme import PAPER
from dpaa.trace.run import Trace

MOST = 6
"""Heat maps; further runs have `dpaa trace`."""


def section(inputs: Inputs) -> Section:
    """A heat map per run that weights messages in its own way."""
    traced = list(islice(((run, run.trace) for run in inputs.runs if run.trace is not None), MOST))
    figures = [_figure(run.name, trace, suffix(place)) for place, (run, trace) in enumerate(traced)]
    drawn = [(run.folder.path, trace, figure) for (run, trace), figure in zip(traced, figures, strict=True)]
    return Section("trace", "Where popularity enters", "Messages", render("trace.html", drawn=drawn), figures)


def _figure(name: str, trace: Trace, suffix: str) -> Figure:
    rows = [
        [Cell(f"{layer.layer} → {layer.layer + 1}", layer.layer), *(number(value, 3) for value in layer.relative)]
        for layer in trace.weights
    ]
    first = [value for value in trace.weights[0].relative if value is not None]
    ends = f" In the first layer from {first[0]:.2f} (rarest) to {first[-1]:.2f} (most popular)." if first else ""
    caption = "Message weight relative to LightGCN's, by layer and popularity tenth (1 = rarest)"
    return Figure(
        f"message-weights{suffix}",
        f"{name}: how loud messages are",
        f"Heat map of message weights relative to LightGCN's, by layer and popularity tenth of the item.{ends}",
        lambda theme: relative_weights(trace, None if theme == PAPER else theme),
        table(caption, ["layer", *map(str, range(1, 11))], rows),
    )
