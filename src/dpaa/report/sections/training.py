"""Training: validation accuracy and loss over the epochs, and how far DPAA trusts its pre-trained model."""

from __future__ import annotations

from typing import Any

from dpaa.report.charts import Line, curves
from dpaa.report.figures import POINTS
from dpaa.report.foreign import is_number, object_at, objects_at, text_at
from dpaa.report.inputs import Inputs, Run
from dpaa.report.markup import Markup
from dpaa.report.parts import Figure, Section
from dpaa.report.sections.metrics import place_of

MOST = 24
"""Runs with a line; more cannot be told apart."""


def section(inputs: Inputs) -> Section:
    """One figure for each thing the histories tell."""
    runs = [run for run in inputs.runs if run.history][:MOST]
    parts: list[Figure | Markup] = []
    stopped = "; ".join(_stopped(run) for run in runs)
    recall = _lines(runs, lambda line: _valid(line, "recall@20"))
    if recall:
        parts.append(
            Figure(
                "training-accuracy",
                "Learning: validation recall by epoch",
                f"Validation recall@20 over the epochs of training. {stopped}.",
                "One epoch is one pass over the training data. The line shows how many of the items people liked in "
                "the validation data were found after each epoch. Training stops when it has not improved for a while, "
                f"and the best epoch is kept ({stopped}). What a method tried on its way and gave up is not drawn. "
                "A line that still climbs at its end was stopped too early. The test data plays no part in this.",
                lambda look: curves(recall, look, "epoch", "validation recall@20", whole=True),
            )
        )
    loss = _lines(runs, lambda line: line.get("loss"))
    if loss:
        parts.append(
            Figure(
                "training-loss",
                "Learning: loss by epoch",
                f"Training loss over the epochs. {_ends(loss)}",
                "The loss is what training makes smaller: how often, and how badly, a random item is ranked above "
                "an item the user took. It should fall and flatten. Losses of different methods cannot be compared "
                "with each other.",
                lambda look: curves(loss, look, "epoch", "training loss", whole=True),
            )
        )
    share = _lines(runs, lambda line: line.get("pretrained_share"))
    if share:
        parts.append(
            Figure(
                "pretrained-share",
                "How far the pre-trained model is trusted (β)",
                f"Share β of the pre-trained model in DPAA's message weights, by epoch. {_ends(share)}",
                "DPAA turns down messages between users and items that already agree strongly. Early in training its "
                "own embeddings (the vectors it learns) are still noise, so it judges agreement by a LightGCN trained "
                "before. β is that model's share in the judgement: 1 means it is trusted entirely, 0 not at all. It "
                "falls as DPAA's own embeddings settle down from one epoch to the next; where it stays near 1 they "
                "kept moving, and the pre-trained model judged to the end.",
                lambda look: curves(share, look, "epoch", "β, share of the pre-trained model", whole=True, top=1.0),
            )
        )
    return Section("training", "How training went", "Training", parts)


def _lines(runs: list[Run], value: Any) -> list[Line]:
    """A line per run that has values, with at most as many points as can be seen."""
    found = []
    for run in runs:
        points = [
            (float(line["epoch"]), float(value(line)))
            for line in kept_lines(run)
            if isinstance(line, dict) and is_number(line.get("epoch")) and is_number(value(line))
        ]
        step = max(1, -(-len(points) // POINTS))
        kept = points[::step] + ([points[-1]] if points and (len(points) - 1) % step else [])
        if kept:
            found.append(Line(run.name, [x for x, _ in kept], [y for _, y in kept], _place(run, runs)))
    return found


def kept_lines(run: Run) -> list[dict[str, Any]]:
    """The epochs that led to the model that is kept, counted along the way.

    A method that is made of several trainings says which part went on from which; what was tried and given up is no
    part of the way.  Runs of before do not say it: all their epochs are shown.
    """
    auto = object_at(run.model.manifest, "auto")
    went_on_from = {text_at(part, "part"): part.get("from") for part in objects_at(auto, "parts") if "from" in part}
    part, way = object_at(auto, "chosen").get("part"), []
    while isinstance(part, str) and part in went_on_from and part not in way:
        way.append(part)
        part = went_on_from[part]
    if not way:
        return run.history
    kept = [line for line in run.history if isinstance(line, dict) and line.get("part") in way]
    return [line | {"epoch": place} for place, line in enumerate(kept, 1)]


def _ends(lines: list[Line]) -> str:
    """Where each line begins and ends, for people who cannot see it."""
    return "; ".join(f"{line.name} from {line.y[0]:.4g} to {line.y[-1]:.4g}" for line in lines) + "."


def _place(run: Run, runs: list[Run]) -> int:
    """By method where each has one run, as in the other figures; else one colour per run."""
    family = run.family.runs
    alone = len({other.method for other in runs}) == len(runs)
    return place_of(run, family) if alone and all(other in family for other in runs) else runs.index(run)


def _valid(line: dict[str, Any], metric: str) -> Any:
    found = line.get("valid")
    return found.get(metric) if isinstance(found, dict) else None


def _stopped(run: Run) -> str:
    training = run.model.manifest.get("training")
    shown = len(kept_lines(run))
    if shown != len(run.history):
        return f"{run.name}: {shown} of {len(run.history)} epochs led to the model that is kept"
    if not isinstance(training, dict) or "best_epoch" not in training:
        return f"{run.name}: {len(run.history)} epochs"
    return f"{run.name}: best epoch {training['best_epoch']} of {training.get('epochs', len(run.history))}"
