"""Training: validation accuracy and loss over the epochs, and how far DPAA trusts its pre-trained model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpaa.report.charts import Line, curves
from dpaa.report.figures import POINTS
from dpaa.report.inputs import Inputs, Run
from dpaa.report.lenient import is_number
from dpaa.report.parts import Figure, Section
from dpaa.report.rendering import render
from dpaa.report.sections.metrics import place_of

MOST = 24
"""Runs with a line; more cannot be told apart."""


def section(inputs: Inputs) -> Section:
    """One figure for each thing the histories tell."""
    runs = [run for run in inputs.runs if run.history][:MOST]
    stopped = "; ".join(_stopped(run) for run in runs)
    recall = _lines(runs, _valid_recall)
    loss = _lines(runs, lambda line: line.get("loss"))
    trust = _lines(runs, lambda line: line.get("pretrained_share"))
    drawn = {
        "accuracy": Figure(
            "training-accuracy",
            "Learning: validation recall by epoch",
            f"Validation recall@20 over the epochs of training. {stopped}.",
            lambda theme: curves(recall, theme, "epoch", "validation recall@20", whole=True),
        ),
        "loss": Figure(
            "training-loss",
            "Learning: loss by epoch",
            f"Training loss over the epochs. {_ends(loss)}",
            lambda theme: curves(loss, theme, "epoch", "training loss", whole=True),
        ),
        "trust": Figure(
            "pretrained-share",
            "How far the pre-trained model is trusted (β)",
            f"Share β of the pre-trained model in DPAA's message weights, by epoch. {_ends(trust)}",
            lambda theme: curves(trust, theme, "epoch", "β, share of the pre-trained model", whole=True, top=1.0),
        ),
    }
    shown = {name: drawn[name] for name, lines in (("accuracy", recall), ("loss", loss), ("trust", trust)) if lines}
    content = render("training.html", figures=shown, stopped=stopped)
    return Section("training", "How training went", "Training", content, list(shown.values()))


def _lines(runs: list[Run], value: Callable[[dict[str, Any]], Any]) -> list[Line]:
    """A line per run that has values, with at most as many points as can be seen."""
    found = []
    for run in runs:
        points = [
            (float(line["epoch"]), float(value(line)))
            for line in run.history
            if isinstance(line, dict) and is_number(line.get("epoch")) and is_number(value(line))
        ]
        step = max(1, -(-len(points) // POINTS))
        kept = points[::step] + ([points[-1]] if points and (len(points) - 1) % step else [])
        if kept:
            found.append(Line(run.name, [x for x, _ in kept], [y for _, y in kept], _place(run, runs)))
    return found


def _ends(lines: list[Line]) -> str:
    """Where each line begins and ends, for people who cannot see it."""
    return "; ".join(f"{line.name} from {line.y[0]:.4g} to {line.y[-1]:.4g}" for line in lines) + "."


def _place(run: Run, runs: list[Run]) -> int:
    """By method where each has one run, as in the other figures; else one colour per run."""
    family = run.family.runs
    alone = len({other.kind for other in runs}) == len(runs)
    return place_of(run, family) if alone and all(other in family for other in runs) else runs.index(run)


def _valid_recall(line: dict[str, Any]) -> Any:
    found = line.get("valid")
    return found.get("recall@20") if isinstance(found, dict) else None


def _stopped(run: Run) -> str:
    training, total = run.manifest.training, len(run.history)
    if training.best_epoch is None:
        return f"{run.name}: {total} epochs"
    return f"{run.name}: best epoch {training.best_epoch} of {training.epochs or total}"
