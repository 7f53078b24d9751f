"""The numbers of the DPAA paper (`paper.toml`), and which row of ours stands beside which of the paper's."""

from __future__ import annotations

import tomllib
from importlib.resources import files

METHODS = ("dpaa", "apda", "navip", "dap", "ppac", "macr", "cvib", "ips", "sam-reg", "lightgcn")
PRESETS = ("dpaa", "dpaa-as-printed", "dpaa-normalised")
"""Interpretations of the paper's equations."""
BASELINES = METHODS[1:]
"""The methods that its "Improvement" is measured against."""
OVERALL_METRICS = ("recall@20", "ndcg@20", "hit@20")
GROUP_METRICS = ("recall@20/popular", "ndcg@20/popular", "recall@20/niche", "ndcg@20/niche")

_NUMBERS = tomllib.loads(files(__package__).joinpath("paper.toml").read_text(encoding="utf-8"))
DATASETS: dict[str, list[float]] = _NUMBERS["datasets"]
BEST_HYPERPARAMETERS: dict[str, list[float]] = _NUMBERS["best_settings"]
OVERALL: dict[str, dict[str, list[float]]] = _NUMBERS["overall"]
GROUPS: dict[str, dict[str, list[float]]] = _NUMBERS["groups"]
SEVERITY: dict[str, list[float]] = _NUMBERS["severity"]
ABLATION: dict[str, list[float]] = _NUMBERS["ablation"]


def row_of(method: str) -> str:
    """The paper's row beside a method of ours, DPAA's for every interpretation of it."""
    return "dpaa" if method in PRESETS else method


def reported(data: str) -> dict[str, float]:
    """C, η and δ that the paper reports for its DPAA on a dataset; those of KuaiRec for severities."""
    names = ("half_trust_shift", "layer_emphasis", "initial_residual")
    values = BEST_HYPERPARAMETERS.get(data, BEST_HYPERPARAMETERS["kuairec"])
    return dict(zip(names, values, strict=True))


def at_severity(rows: dict[str, list[float]], severity: float) -> dict[str, float]:
    """The paper's values at a severity by row; none between its ten."""
    known = float(severity).is_integer() and 0 <= severity < 10
    return {name: values[int(severity)] for name, values in rows.items()} if known else {}
