"""Where popularity enters: how loud messages of rare and popular items are, layer by layer."""

from __future__ import annotations

from dpaa.report.figures import relative_weights
from dpaa.report.inputs import Inputs, Run
from dpaa.report.markup import Markup
from dpaa.report.parts import Cell, Figure, Head, Section, code, paragraph, table
from dpaa.report.theme import PAPER, Look
from dpaa.trace.run import Trace

MOST = 6
"""Heat maps; further runs have `dpaa trace`."""


def section(inputs: Inputs) -> Section:
    """A heat map per run that weights messages in its own way."""
    found: list[tuple[Run, Trace]] = []
    for run in inputs.runs:
        if len(found) < MOST and run.trace is not None:
            found.append((run, run.trace))
    parts: list[Figure | Markup] = []
    if found:
        parts.append(
            paragraph(
                "Graph recommenders such as LightGCN pass messages between users and the items they used, several "
                "times in a row (each time is a layer). Popular items have many neighbours, so they talk to everybody. "
                "Methods that debias inside the graph turn some of these messages up or down."
            )
        )
    for place, (run, trace) in enumerate(found):
        parts.append(_figure(run, trace, f"-{place + 1}" if place else ""))
        parts.append(
            paragraph(
                "Does the premise hold? DPAA counts on users and popular items agreeing more than users and rare "
                "items, so that turning down agreement turns down popularity. Where the premise is reversed, the "
                f"weights favour popular items instead. Here: {trace.headline}. More: ",
                code(f"dpaa trace {run.folder.path}"),
                ".",
            )
        )
    return Section("trace", "Where popularity enters", "Messages", parts)


def _figure(run: Run, trace: Trace, suffix: str) -> Figure:
    rows = [
        [
            Cell(f"{layer.layer} → {layer.layer + 1}", layer.layer),
            *(Cell("–" if value is None else f"{value:.3f}", value) for value in layer.relative),
        ]
        for layer in trace.weights
    ]
    heads = [Head("layer", numeric=False), *(Head(str(tenth)) for tenth in range(1, 11))]
    first = [value for value in trace.weights[0].relative if value is not None]
    ends = f" In the first layer from {first[0]:.2f} (rarest) to {first[-1]:.2f} (most popular)." if first else ""

    def draw(look: Look) -> object:
        return relative_weights(trace, None if look == PAPER else look)

    return Figure(
        f"message-weights{suffix}",
        f"{run.name}: how loud messages are",
        f"Heat map of message weights relative to LightGCN's, by layer and popularity tenth of the item.{ends}",
        "Each cell stands for a layer and a tenth of the items, from rare (1) to popular (10). The number says how "
        "loud messages over these items are compared with LightGCN: 1.00 is just as loud (pale), above 1 louder "
        "(orange), below 1 quieter (blue). A method that holds popularity back has numbers that fall from rare to "
        "popular. Layers that show 1.00 throughout are left as LightGCN has them.",
        draw,
        table("Message weight relative to LightGCN's, by layer and popularity tenth (1 = rarest)", heads, rows),
    )
