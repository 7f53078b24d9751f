"""Sections for specialists, closed at first: popularity dial, training, message weights, provenance."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

from dpaa.evaluation.dial_curve import BY_DEBIAS, DialCurve
from dpaa.methods.base import changed_params
from dpaa.report._charts import POINTS, Chart, Line, line
from dpaa.report._html import Cell, Figure, Section, number, render, suffix, table
from dpaa.report._inputs import Inputs, Run
from dpaa.trace import Trace

MOST_FIGURES = 6
DIAL_LINES = {
    "ndcg": "accuracy (NDCG@{})",
    "niche_recall": "recall of niche items",
    "coverage": "items shown to anybody",
    "arp": "mean popularity (ARP)",
}
DECILES = "popularity decile (1 = rarest items, 10 = most popular)"


# ---------------------------------------------------------------------- popularity dial


def dial(inputs: Inputs) -> Section:
    """What the popularity dial does, for each run that measured it on validation."""
    curves = [(run.name, curve) for run in inputs.runs if (curve := run.model.dial_curve) is not None][:MOST_FIGURES]
    drawn = [(_dial(name, curve, suffix(index)), curve) for index, (name, curve) in enumerate(curves)]
    figures = [figure for figure, _ in drawn]
    return Section("dial", "The popularity dial", "Dial", render("dial.html", drawn=drawn), figures, folded=True)


def _dial(name: str, curve: DialCurve, suffix: str) -> Figure:
    points = sorted(curve.points, key=lambda point: point.kappa)
    lines = []
    for index, (field, title) in enumerate(DIAL_LINES.items()):
        values = [getattr(point, field) for point in points]
        largest = max((value for value in values if isfinite(value)), default=0.0)
        if largest > 0:
            shares = [value / largest if isfinite(value) else None for value in values]
            lines.append(Line(title.format(curve.k), [point.kappa for point in points], shares, index))
    marks = {curve.suggested: " (suggested)", curve.kappa: " (applied)"}
    rows = [
        [Cell(f"{point.kappa:g}{marks.get(point.kappa, '')}", point.kappa)]
        + [number(getattr(point, field)) for field in ("recall", *DIAL_LINES)]
        for point in points
    ]
    axes = ("popularity dial κ", "share of the highest value")
    return Figure(
        f"dial-curve{suffix}",
        f"{name}: turning the popularity dial",
        f"Metrics over κ, each as a share of its own highest value; κ = {curve.kappa:g} is applied.",
        line(lines, *axes, x_axis="symlog", y_axis="percent", mark=curve.kappa),
        table(f"The dial of {name}, lists of {curve.k}", ["κ", "recall", *DIAL_LINES], rows),
    )


# ---------------------------------------------------------------------- training


def training(inputs: Inputs) -> Section:
    """Validation accuracy and loss over the epochs, and how far DPAA trusts its pre-trained model."""
    charts: dict[str, tuple[str, Callable[[dict[str, Any]], float | None]]] = {
        "training-accuracy": ("validation recall@20", lambda one: one["valid"].get("recall@20")),
        "training-loss": ("training loss", lambda one: one["loss"]),
        "pretrained-share": ("β, share of the pre-trained model", lambda one: one.get("pretrained_share")),
    }
    runs, figures = [run for run in inputs.runs if run.history], {}
    for name, (y, value) in charts.items():
        lines = []
        for run in runs:
            points = [(one["epoch"], value(one)) for one in run.history if value(one) is not None]
            thinned = [*points[: -1 : max(1, -(-len(points) // POINTS))], *points[-1:]]
            if thinned:
                lines.append(Line(run.name, [x for x, _ in thinned], [y for _, y in thinned], run.colour))
        if lines:
            chart = line(lines, "epoch", y, x_axis="steps")
            figures[name] = Figure(name, f"{y} by epoch", f"{y} of each run over the epochs of training.", chart)
    content = render("training.html", figures=figures, runs=runs)
    return Section("training", "How training went", "Training", content, list(figures.values()), folded=True)


# ---------------------------------------------------------------------- message weights


def trace(inputs: Inputs) -> Section:
    """How loud messages over rare and popular items are, for runs that weight them in their own way."""
    drawn: list[tuple[Path, Trace, Figure]] = []
    for run, each in islice(((run, run.trace) for run in inputs.runs if run.trace is not None), MOST_FIGURES):
        name, title = f"message-weights{suffix(len(drawn))}", f"{run.name}: how loud messages are"
        description = "Message weights relative to LightGCN's, by layer and popularity decile of the item."
        drawn.append((run.path, each, Figure(name, title, description, trace_figures(each)["relative-weights"])))
    content = render("trace.html", drawn=drawn)
    return Section("trace", "Where popularity enters", "Messages", content, [one for *_, one in drawn], folded=True)


def trace_figures(trace: Trace) -> dict[str, Chart]:
    """Draw a trace: message weights, inverse interaction weights, and β where the history has it.

    Parameters
    ----------
    trace : of one run

    Returns
    -------
    name of a figure → chart
    """
    weights = {f"layer {one.layer} → {one.layer + 1}": one.relative for one in trace.weights}
    premises = {f"{one.where}, {one.vectors}": one.iiw for one in trace.premises}
    charts = {}
    for name, series, y in (
        ("relative-weights", weights, "message weight, relative to LightGCN's"),
        ("inverse-interaction-weights", premises, "mean of 1 − cos(eᵤ, eᵢ) over edges"),
    ):
        lines = [Line(label, range(1, 11), values, index) for index, (label, values) in enumerate(series.items())]
        charts[name] = line(lines, DECILES, y, x_axis="steps")
    share = [(one["epoch"], value) for one in trace.epochs if (value := one.get("pretrained_share")) is not None]
    if share:
        beta = Line("β, pre-trained share", [epoch for epoch, _ in share], [value for _, value in share], 0)
        charts["pretrained-share"] = line([beta], "epoch", beta.name, x_axis="steps")
    return charts


# ---------------------------------------------------------------------- provenance


def provenance(inputs: Inputs) -> Section:
    """The commands, versions and hyperparameters behind each number."""
    rows = [
        [
            run.name,
            run.method,
            number(run.model.method.seed, "d"),
            number(len(run.history) or None, ",d"),
            *(run.model.manifest.get(name, "–") for name in ("seconds", "finished", "versions")),
        ]
        for run in inputs.runs
    ]
    runs = table("Runs", ["run", "method", "random seed", "epochs", "seconds", "trained", "versions"], rows)
    commands = [(run.name, "\n".join(commands_of(run)), run.model.method.get_params()) for run in inputs.runs]
    content = render("provenance.html", families=inputs.families, runs=runs, commands=commands)
    return Section("provenance", "Provenance: how each number was made", "Provenance", content, folded=True)


def commands_of(run: Run) -> list[str]:
    """The `dpaa train` and `dpaa evaluate` that make a run and its metrics."""
    train = ["dpaa", "train", run.model.trained_on.path or "DATASET", "--method", run.method]
    for name, value in changed_params(run.model.method).items():
        if name != "seed":
            train += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    train += ["--seed", str(run.model.method.seed)]
    train += ["--pretrained", run.origin] if run.origin else []
    if kept := run.model.reranker():
        train += ["--rerank", kept.in_words()]
    commands = [[*train, "--out", str(run.path)]]
    if run.measured is not None:
        protocol, curve = run.measured.protocol, run.model.dial_curve
        evaluate = ["dpaa", "evaluate", str(run.path), *(word for k in protocol.k for word in ("--k", str(k)))]
        evaluate += ["--overlap", protocol.overlap]
        if curve is not None and curve.chosen_for not in (None, BY_DEBIAS):  # `dpaa debias` has no objective
            evaluate += ["--dial-objective", str(curve.chosen_for)]
        commands.append(evaluate + ["--mask-valid"] * protocol.mask_valid)
    return [shlex.join(words) for words in commands]
