"""Overall performance on data with unbiased test sets, under every overlap convention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpaa.data.sources import coat as official_coat
from dpaa.data.sources.splits import from_files
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import OVERLAPS
from dpaa.experiments.run import specs_for
from dpaa.experiments.tables import markdown, mean_and_deviation, values_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dpaa.data.dataset import Dataset
    from dpaa.experiments.run import RunResult, RunSpec

COAT_SETTINGS = {"embedding_size": 256, "layers": 2, "learning_rate": 1e-3}
"""The paper's for Coat."""
METRICS = ("recall@20", "ndcg@20", "hit@20", "recall@20/popular", "recall@20/niche", "arp@20")


def coat(folder: Path) -> Dataset:
    """Coat: the official matrices, or ready-made split files in list form (train.txt, val.txt, test.txt)."""
    if (folder / "train.ascii").exists():
        return official_coat.coat(folder)
    files = {"train": folder / "train.txt", "valid": folder / "val.txt", "test": folder / "test.txt"}
    if not all(file.exists() for file in files.values()):
        raise InputError(f"{folder} has neither train.ascii and test.ascii nor train.txt, val.txt and test.txt")
    return from_files(files["train"], files["valid"], files["test"], name="coat")


def runs(folder: Path, labels: Sequence[str], seeds: int) -> list[RunSpec]:
    """Each method over the seeds on a prepared Coat."""
    return specs_for("coat", folder, labels, range(seeds), COAT_SETTINGS)


def table(results: Sequence[RunResult], labels: Sequence[str]) -> str:
    """A Markdown table per overlap convention; no table mixes two."""
    parts = []
    for overlap in OVERLAPS:
        rows = [
            [label, *(mean_and_deviation(values_of(results, "coat", label, overlap, metric)) for metric in METRICS)]
            for label in labels
        ]
        parts.append(f"Overlap convention `{overlap}`:\n\n{markdown(['method', *METRICS], rows)}")
    return "\n".join(parts)
