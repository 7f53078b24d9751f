"""The datasets: how large they are, ours beside the paper's, and how severity bends the training data."""

from __future__ import annotations

from collections.abc import Sized

import numpy as np

from dpaa.data.dataset import Dataset, read_dataset
from dpaa.data.popularity import popular_items
from dpaa.report.figures import popularity_curves
from dpaa.report.parts import Figure
from dpaa.reproduction import paper
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.sources import TITLES
from dpaa.reproduction.tables import Cell, Chapter, Table

COUNT = ",.0f"


def chapter(plan: Plan) -> Chapter:
    """Sizes of what the user has; with KuaiRec also the training data at each severity."""
    tables, figures = [], []
    missing = plan.sources.missing(plan.real)
    if plan.real:
        tables.append(_sizes(plan.real))
    if plan.sources.kuairec is not None:
        data = {severity: read_dataset(plan.severity_folder(severity, 0)) for severity in plan.severities}
        counts = {f"{severity:g}": _counts(one) for severity, one in data.items()}
        tables.append(_severities(data))
        figures.append(
            Figure(
                "training-data",
                "Training pairs per item, by severity",
                "For each severity a curve of training pairs per item, the most popular item first, on log axes.",
                lambda theme: popularity_curves(counts, title="", by="severity", theme=theme),
                reading="Each line is one training set, its items in order of popularity. The steeper a line falls, "
                "the more of the log belongs to few items; validation and test are the same for all of them.",
            )
        )
    about = (
        "Interactions are positives of training, validation and test together; "
        "density = interactions / (users × items).",
    )
    return Chapter("datasets", "Datasets", about, tuple(tables), tuple(figures), tuple(missing))


def _sizes(real: dict[str, Dataset]) -> Table:
    rows = []
    for name, data in real.items():
        total = sum(len(data.split(split)) for split in ("train", "valid", "test"))
        ours = (data.n_users, data.n_items, total, total / (data.n_users * data.n_items))
        forms = (COUNT, COUNT, COUNT, ".5f")
        cells = [
            Cell((float(value),), theirs, form)
            for value, theirs, form in zip(ours, paper.DATASETS[name], forms, strict=True)
        ]
        overlap = data.overlap("train", "test")
        rows.append((TITLES[name], (*cells, *_lengths(data.train, data.valid, data.test, overlap))))
    columns = ("users", "items", "interactions", "density", "train", "valid", "test", "in train and test")
    return Table("sizes", "Datasets, ours and the paper's", "dataset", columns, tuple(rows))


def _severities(data: dict[float, Dataset]) -> Table:
    rows = []
    for severity, one in data.items():
        counts = np.sort(_counts(one))[::-1]
        popular = np.flatnonzero(popular_items(_counts(one)))
        top = int(np.ceil(0.01 * len(counts)))
        share = Cell((100 * counts[:top].sum() / counts.sum(),), form=".1f")
        rows.append((f"{severity:g}", (*_lengths(one.train, one.valid, one.test, popular), share)))
    columns = ("training pairs", "valid", "test", "popular items (80 % of pairs)", "% of pairs of the top 1 % of items")
    return Table("severity-data", "KuaiRec with growing severity (seed 0)", "severity", columns, tuple(rows))


def _lengths(*parts: Sized) -> list[Cell]:
    return [Cell((float(len(part)),), form=COUNT) for part in parts]


def _counts(data: Dataset) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.bincount(data.train.item, minlength=data.n_items)
