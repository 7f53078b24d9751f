"""Sections for specialists, closed at first: popularity dial, training, message weights, provenance."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from itertools import islice
from math import isfinite
from typing import Any

from dpaa.evaluation.dial_curve import BY_DEBIAS, DialCurve
from dpaa.methods.base import changed_params
from dpaa.report._charts import POINTS, Line, curves
from dpaa.report._drawing import PAPER, Chart
from dpaa.report._html import Cell, Figure, Section, number, render, suffix, table
from dpaa.report._inputs import Inputs, Run
from dpaa.report._partial import Partial
from dpaa.report._runs import colour_index
from dpaa.report._trace_charts import relative_weights
from dpaa.trace import Trace

MOST_FIGURES = 6
MOST_LINES = 24
"""Runs with a line in the figures of training; more cannot be told apart."""
DIAL_LINES = {
    "ndcg@{}": "accuracy (NDCG@{})",
    "recall@{}/niche": "recall of niche items",
    "coverage@{}": "items shown to anybody",
    "arp@{}": "mean popularity (ARP)",
}


# ---------------------------------------------------------------------- popularity dial


def dial(inputs: Inputs) -> Section:
    """What the popularity dial does, for each run that measured it on validation."""
    drawn: list[tuple[Figure, float, str]] = []
    for run in inputs.runs:
        content = run.manifest.part("dial")
        figure = _dial(run.name, content, run.model.kappa(), suffix(len(drawn)))
        if figure is not None and len(drawn) < MOST_FIGURES:
            drawn.append((figure, run.model.kappa(), content.text("in_words")))
    figures = [figure for figure, *_ in drawn]
    return Section("dial", "The popularity dial", "Dial", render("dial.html", drawn=drawn), figures, folded=True)


def dial_figure(curve: DialCurve, name: str) -> Chart:
    """Draw the curve of the popularity dial for paper.

    Parameters
    ----------
    curve : metrics by κ
    name : of the method

    Returns
    -------
    the chart
    """
    figure = _dial(name, Partial(curve.as_json()), curve.kappa, "")
    assert figure is not None  # a curve has points
    return figure.draw(PAPER).properties(title=figure.title)


def _dial(name: str, content: Partial, kappa: float, suffix: str) -> Figure | None:
    points = sorted((p for p in content.parts("curve") if isfinite(p.number("kappa"))), key=lambda p: p.number("kappa"))
    if not points:
        return None
    k, kappas = content.whole("k") or 20, [point.number("kappa") for point in points]
    lines = []
    for index, (metric, title) in enumerate(DIAL_LINES.items()):
        values = [point.number(metric.format(k)) for point in points]
        largest = max((value for value in values if isfinite(value)), default=0.0)
        if largest > 0:
            shares = [value / largest if isfinite(value) else None for value in values]
            lines.append(Line(title.format(k), kappas, shares, index))
    metrics = [metric.format(k) for metric in (*DIAL_LINES, "recall@{}")]
    metrics = [metric for metric in metrics if any(isfinite(point.number(metric)) for point in points)]
    marks = {content.number("suggested"): " (suggested)", kappa: " (applied)"}
    rows = [
        [Cell(f"{value:g}{marks.get(value, '')}", value), *(number(point.number(metric)) for metric in metrics)]
        for value, point in zip(kappas, points, strict=True)
    ]
    axes = ("popularity dial κ", "share of the highest value")
    return Figure(
        f"dial-curve{suffix}",
        f"{name}: turning the popularity dial",
        "Metrics over κ of the dial, each as a share of its own highest value. "
        f"The dotted line marks the κ that is applied, {kappa:g}.",
        lambda theme: curves(lines, theme, *axes, across="symlog", upwards="percent", mark=kappa),
        table(f"The dial of {name}", ["κ", *metrics], rows),
    )


# ---------------------------------------------------------------------- training


def training(inputs: Inputs) -> Section:
    """Validation accuracy and loss over the epochs, and how far DPAA trusts its pre-trained model."""
    runs = [run for run in inputs.runs if run.history][:MOST_LINES]
    stopped = "; ".join(map(_stopped, runs))
    figures: dict[str, Figure] = {}

    def draw(key: str, name: str, title: str, y: str, value: Callable[[Partial], float], **axes: Any) -> None:
        lines = _lines(runs, value)
        ends = "; ".join(f"{line.name} from {line.y[0]:.4g} to {line.y[-1]:.4g}" for line in lines)
        words = f"{y[:1].upper()}{y[1:]} over the epochs of training. {stopped if key == 'accuracy' else ends}."
        chart: Callable[..., Chart] = lambda theme: curves(lines, theme, "epoch", y, across="steps", **axes)  # noqa: E731
        if lines:
            figures[key] = Figure(name, title, words, chart)

    title = "Learning: validation recall by epoch"
    recall = "validation recall@20"
    draw("accuracy", "training-accuracy", title, recall, lambda line: line.part("valid").number("recall@20"))
    draw("loss", "training-loss", "Learning: loss by epoch", "training loss", lambda line: line.number("loss"))
    title, share = "How far the pre-trained model is trusted (β)", "β, share of the pre-trained model"
    draw("trust", "pretrained-share", title, share, lambda line: line.number("pretrained_share"), top=1.0)
    content = render("training.html", figures=figures, stopped=stopped)
    return Section("training", "How training went", "Training", content, list(figures.values()), folded=True)


def _lines(runs: list[Run], value: Callable[[Partial], float]) -> list[Line]:
    """A line per run that has values, with at most as many points as can be seen."""
    # By method where each has one run, as in the other figures; else one colour per run.
    by_kind = len({run.kind for run in runs}) == len(runs) and len({run.family.fingerprint for run in runs}) == 1
    lines = []
    for index, run in enumerate(runs):
        epochs = [(line.number("epoch"), value(line)) for line in map(Partial, run.history)]
        points = [point for point in epochs if all(map(isfinite, point))]
        step = max(1, -(-len(points) // POINTS))
        kept = points[::step] + ([points[-1]] if points and (len(points) - 1) % step else [])
        colour = colour_index(run, run.family.runs) if by_kind else index
        if kept:
            lines.append(Line(run.name, [x for x, _ in kept], [y for _, y in kept], colour))
    return lines


def _stopped(run: Run) -> str:
    about, total = run.manifest.part("training"), len(run.history)
    best, epochs = about.whole("best_epoch"), about.whole("epochs") or total
    return f"{run.name}: {total} epochs" if best is None else f"{run.name}: best epoch {best} of {epochs}"


# ---------------------------------------------------------------------- message weights


def trace(inputs: Inputs) -> Section:
    """How loud messages over rare and popular items are: a heat map per run that weights them in its own way."""
    traced = islice(((run, run.trace) for run in inputs.runs if run.trace is not None), MOST_FIGURES)
    drawn = [(run.folder.path, each, _heat_map(run.name, each, suffix(i))) for i, (run, each) in enumerate(traced)]
    figures = [figure for *_, figure in drawn]
    content = render("trace.html", drawn=drawn)
    return Section("trace", "Where popularity enters", "Messages", content, figures, folded=True)


def _heat_map(name: str, trace: Trace, suffix: str) -> Figure:
    rows = [
        [Cell(f"{layer.layer} → {layer.layer + 1}", layer.layer), *(number(value, ".3f") for value in layer.relative)]
        for layer in trace.weights
    ]
    first = [value for value in trace.weights[0].relative if value is not None]
    ends = f" In the first layer from {first[0]:.2f} (rarest) to {first[-1]:.2f} (most popular)." if first else ""
    caption = "Message weight relative to LightGCN's, by layer and popularity decile (1 = rarest)"
    return Figure(
        f"message-weights{suffix}",
        f"{name}: how loud messages are",
        f"Heat map of message weights relative to LightGCN's, by layer and popularity decile of the item.{ends}",
        lambda theme: relative_weights(trace, theme),
        table(caption, ["layer", *map(str, range(1, 11))], rows),
    )


# ---------------------------------------------------------------------- provenance


def provenance(inputs: Inputs) -> Section:
    """The commands, versions and hyperparameters behind each number."""
    rows = [
        [
            run.name,
            run.method,
            number(run.manifest.whole("seed"), "d"),
            number(run.manifest.part("training").number("epochs"), ",.0f"),
            number(run.manifest.number("seconds"), ",.1f"),
            run.manifest.text("finished") or "–",
            ", ".join(f"{name} {version}" for name, version in run.manifest.part("versions").content.items()),
        ]
        for run in inputs.runs
    ]
    runs = table("Runs", ["run", "method", "random seed", "epochs", "seconds", "trained", "versions"], rows)
    commands = [(run.name, "\n".join(commands_of(run)), run.model.method.get_params()) for run in inputs.runs]
    content = render("provenance.html", families=inputs.families, runs=runs, commands=commands)
    return Section("provenance", "Provenance: how each number was made", "Provenance", content, folded=True)


def commands_of(run: Run) -> list[str]:
    """The `dpaa train` and `dpaa evaluate` that make a run and its metrics."""
    train = ["dpaa", "train", run.manifest.part("dataset").text("path") or "DATASET", "--method", run.method]
    for name, value in changed_params(run.model.method).items():
        if name != "seed":
            train += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    train += ["--seed", str(run.model.method.seed)]
    if origin := run.manifest.part("pretrained").text("run"):
        train += ["--pretrained", origin]
    if kept := run.model.reranker():
        train += ["--rerank", kept.in_words()]
    train += ["--out", str(run.folder.path)]
    evaluate = ["dpaa", "evaluate", str(run.folder.path)]
    for k in run.protocol.texts("k"):
        evaluate += ["--k", k]
    evaluate += ["--overlap", run.protocol.text("overlap") or "drop"]
    objective = run.manifest.part("dial").text("chosen_for")
    if objective not in ("", BY_DEBIAS):  # `dpaa debias` put its κ into the run without an objective
        evaluate += ["--dial-objective", objective]
    evaluate += ["--mask-valid"] if run.protocol.get("mask_valid") is True else []
    return [shlex.join(words) for words in ([train, evaluate] if run.evaluation else [train])]
