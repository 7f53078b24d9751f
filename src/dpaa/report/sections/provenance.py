"""Provenance: the commands, versions and settings behind each number."""

from __future__ import annotations

import shlex

from markupsafe import Markup

from dpaa.evaluation.dial_curve import BY_DEBIAS
from dpaa.methods.base import changed_params
from dpaa.report.inputs import Inputs, Run
from dpaa.report.parts import Cell, Section, number, table
from dpaa.report.rendering import render


def section(inputs: Inputs) -> Section:
    """Datasets, then runs."""
    commands = [(run.name, _commands(run), run.model.method.get_params()) for run in inputs.runs]
    content = render("provenance.html", families=inputs.families, runs=_runs(inputs.runs), commands=commands)
    return Section("provenance", "Provenance: how each number was made", "Provenance", content)


def _runs(runs: list[Run]) -> Markup:
    rows = [
        [
            run.name,
            run.method,
            Cell("–" if run.manifest.seed is None else run.manifest.seed, run.manifest.seed),
            number(run.manifest.training.epochs, 0),
            number(run.manifest.seconds, 1),
            run.manifest.finished or "–",
            ", ".join(f"{name} {version}" for name, version in run.manifest.versions.items()),
        ]
        for run in runs
    ]
    heads = ["run", "method", "random seed", "epochs", "seconds", "trained", "versions"]
    return table("Runs", heads, rows) if rows else Markup()


def _commands(run: Run) -> str:
    return "\n".join([train_command(run), evaluate_command(run)] if run.evaluation else [train_command(run)])


def train_command(run: Run) -> str:
    """The `dpaa train` that makes this run: settings that differ from their defaults are named."""
    method = run.model.method
    words = ["dpaa", "train", run.manifest.dataset.path or "DATASET", "--method", run.method]
    for name, value in changed_params(method).items():
        if name != "seed":
            words += ["--set", f"{name}={_written(value)}"]
    words += ["--seed", str(method.seed)]
    if run.manifest.pretrained.run:
        words += ["--pretrained", run.manifest.pretrained.run]
    if kept := run.model.reranker():
        words += ["--rerank", kept.in_words()]
    return shlex.join([*words, "--out", str(run.folder.path)])


def evaluate_command(run: Run) -> str:
    """The `dpaa evaluate` that makes its metrics."""
    words = ["dpaa", "evaluate", str(run.folder.path)]
    for k in run.protocol.k:
        words += ["--k", str(k)]
    words += ["--overlap", run.protocol.overlap or "drop"]
    if run.manifest.dial.chosen_for not in (None, "", BY_DEBIAS):  # that one is kept by the run, and no objective
        words += ["--dial-objective", run.manifest.dial.chosen_for]
    if run.dial is not None:
        words += ["--popularity-dial", f"{run.dial:g}"]
    if run.reranker != run.model.reranker():
        words += ["--rerank", run.reranker.in_words() if run.reranker else "none"]
    return shlex.join([*words, "--mask-valid"] if run.protocol.mask_valid else words)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
