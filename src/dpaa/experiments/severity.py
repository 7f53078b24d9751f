"""How methods bear growing bias: KuaiRec's full exposure, biased with a severity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpaa.data.sources.severity import read_pairs, with_severity
from dpaa.errors import InputError
from dpaa.experiments.run import specs_for
from dpaa.experiments.tables import markdown, mean_and_deviation, values_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dpaa.data.dataset import Dataset
    from dpaa.experiments.run import RunResult, RunSpec

SETTINGS = {"embedding_size": 256, "layers": 4, "learning_rate": 1e-3}
"""The paper's for KuaiRec."""
TUNED = ("half_trust_shift", "layer_emphasis", "initial_residual", "interaction_strength_from", "learning_rate")
"""Settings under which a row still stands beside the paper's tuned one."""
PAPER_RECALL = {
    "dpaa": (0.2047, 0.2043, 0.1859, 0.1703, 0.1500, 0.1210, 0.1008, 0.0958, 0.0879, 0.0780),
    "apda": (0.1740, 0.2001, 0.1763, 0.1453, 0.1146, 0.1148, 0.0853, 0.0951, 0.0785, 0.0633),
    "navip": (0.1557, 0.1941, 0.1613, 0.0920, 0.0574, 0.0367, 0.0317, 0.0274, 0.0233, 0.0186),
    "dap": (0.1738, 0.2049, 0.1769, 0.1325, 0.0798, 0.0497, 0.0389, 0.0298, 0.0286, 0.0216),
    "ppac": (0.2025, 0.1949, 0.1810, 0.1550, 0.1017, 0.0759, 0.0567, 0.0510, 0.0428, 0.0373),
    "macr": (0.1213, 0.0989, 0.1186, 0.0944, 0.0037, 0.0083, 0.0083, 0.0080, 0.0080, 0.0073),
    "cvib": (0.1127, 0.1762, 0.1663, 0.1373, 0.0558, 0.0324, 0.0226, 0.0179, 0.0121, 0.0098),
    "ips": (0.0987, 0.1691, 0.1210, 0.0509, 0.0314, 0.0226, 0.0234, 0.0190, 0.0136, 0.0111),
    "sam-reg": (0.0956, 0.1597, 0.1722, 0.1600, 0.0461, 0.0211, 0.0179, 0.0114, 0.0076, 0.0078),
    "lightgcn": (0.2024, 0.2001, 0.1824, 0.1656, 0.1215, 0.0804, 0.0477, 0.0400, 0.0349, 0.0278),
}
"""Recall@20 at severity 0..9 as the DPAA paper prints it."""


def datasets(folder: Path, severities: Sequence[float], seed: int) -> Iterator[tuple[str, Dataset]]:
    """Label and dataset of each severity, from the positives of KuaiRec's small matrix (valid.txt, test.txt)."""
    files = [folder / "valid.txt", folder / "test.txt"]
    if not all(file.exists() for file in files):
        raise InputError(f"{folder} lacks valid.txt or test.txt, the small matrix's positives in list form")
    pairs = read_pairs([str(file) for file in files])
    for severity in severities:
        yield f"s={severity:g}", with_severity(pairs, severity, seed, name=f"kuairec-s{severity:g}-seed{seed}")


def runs(label: str, folder: Path, labels: Sequence[str], seed: int) -> list[RunSpec]:
    """Each method on one severity; the seed is that of the data."""
    return specs_for(label, folder, labels, [seed], SETTINGS)


def table(
    results: Sequence[RunResult], severities: Sequence[float], labels: Sequence[str], metric: str = "recall@20"
) -> str:
    """Ours, mean ± deviation over seeds, with the paper's number in brackets where there is one."""
    rows = []
    for label in labels:
        cells = []
        name, *settings = label.split()
        tuned = all(setting.partition("=")[0] in TUNED for setting in settings)  # an ablation is not the paper's row
        paper = PAPER_RECALL.get(name.removesuffix("-as-printed")) if metric == "recall@20" and tuned else None
        for severity in severities:
            values = values_of(results, f"s={severity:g}", label, "drop", metric)
            known = paper is not None and float(severity).is_integer() and severity <= 9
            cells.append(mean_and_deviation(values) + (f" ({paper[int(severity)]:.4f})" if known and paper else ""))
        rows.append([label, *cells])
    header = [f"{metric} (paper)", *(f"s = {severity:g}" for severity in severities)]
    return f"Overlap convention `drop`:\n\n{markdown(header, rows)}"
