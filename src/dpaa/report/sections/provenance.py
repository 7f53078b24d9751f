"""How each number was made: commands, versions, settings."""

from __future__ import annotations

import shlex

from dpaa.report.foreign import object_at
from dpaa.report.inputs import Family, Inputs, Run
from dpaa.report.markup import Markup, tag
from dpaa.report.parts import Cell, Figure, Head, Section, code, paragraph, table


def section(inputs: Inputs) -> Section:
    """Datasets, then runs."""
    parts: list[Figure | Markup] = []
    if inputs.families:
        parts.append(
            paragraph(
                "Numbers are worth what it takes to make them again. These commands do, with the same versions on the "
                "same kind of machine to the last digit."
            )
        )
        parts += [_dataset(family) for family in inputs.families]
    if inputs.runs:
        parts.append(_runs(inputs.runs))
        parts += [_commands(run) for run in inputs.runs]
    return Section("provenance", "How each number was made", "Made how", parts)


def _dataset(family: Family) -> Markup:
    rows = [("dataset", family.name), ("fingerprint", family.fingerprint)]
    if family.dataset is not None:
        about = family.dataset.about
        rows.insert(1, ("folder", str(family.dataset.path or "")))
        rows += [
            (name, str(about[name]))
            for name in ("source", "positive", "split", "seed")
            if isinstance(about.get(name), str | int | float)
        ]
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in rows]
    return tag("dl", pairs, class_="facts")


def _runs(runs: list[Run]) -> Markup:
    heads = [
        Head("run", numeric=False),
        Head("method", numeric=False),
        Head("seed"),
        Head("epochs"),
        Head("seconds"),
        Head("trained", numeric=False),
        Head("versions", numeric=False),
    ]
    rows = []
    for run in runs:
        manifest = run.model.manifest
        training, versions = object_at(manifest, "training"), object_at(manifest, "versions")
        seconds, epochs = manifest.get("seconds"), training.get("epochs")
        rows.append(
            [
                Cell(run.name, run.name),
                Cell(run.method, run.method),
                Cell(manifest.get("seed", "–"), _by(manifest.get("seed"))),
                Cell("–" if epochs is None else epochs, _by(epochs)),
                Cell(f"{seconds:.1f}" if isinstance(seconds, int | float) else "–", _by(seconds)),
                Cell(str(manifest.get("finished", "–")), str(manifest.get("finished", ""))),
                Cell(", ".join(f"{name} {version}" for name, version in versions.items())),
            ]
        )
    return table("Runs", heads, rows)


def _commands(run: Run) -> Markup:
    lines = [train_command(run)]
    if run.evaluation is not None:
        lines.append(evaluate_command(run))
    settings = run.model.method.settings.model_dump(mode="json")
    every = ", ".join(f"{name} = {value}" for name, value in settings.items())
    return tag(
        "details",
        tag("summary", f"Commands and settings of {run.name}"),
        tag("pre", code("\n".join(lines)), tabindex="0"),
        paragraph(f"All settings: {every}"),
    )


def train_command(run: Run) -> str:
    """The `dpaa train` that makes this run: settings that differ from their defaults are named."""
    settings = run.model.method.settings
    usual = type(settings)().model_dump(mode="json")
    place = object_at(run.model.manifest, "dataset").get("path")
    words = ["dpaa", "train", str(place or "DATASET"), "--method", run.method]
    for name, value in settings.model_dump(mode="json").items():
        if value != usual[name] and name != "seed":
            words += ["--set", f"{name}={_written(value)}"]
    words += ["--seed", str(getattr(settings, "seed", 0))]
    pretrained = object_at(run.model.manifest, "pretrained").get("run")
    if isinstance(pretrained, str):
        words += ["--pretrained", pretrained]
    return shlex.join([*words, "--out", str(run.folder.path)])


def evaluate_command(run: Run) -> str:
    """The `dpaa evaluate` that makes its metrics."""
    protocol = object_at(run.evaluation or {}, "protocol")
    words = ["dpaa", "evaluate", str(run.folder.path)]
    cuts = protocol.get("k")
    for k in cuts if isinstance(cuts, list) else []:
        words += ["--k", str(k)]
    words += ["--overlap", str(protocol.get("overlap", "drop"))]
    chosen_for = object_at(run.model.manifest, "dial").get("chosen_for")
    if isinstance(chosen_for, str):
        words += ["--dial-objective", chosen_for]
    if run.dial is not None:
        words += ["--popularity-dial", f"{run.dial:g}"]
    return shlex.join([*words, "--mask-valid"] if protocol.get("mask_valid") else words)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _by(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
