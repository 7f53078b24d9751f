"""Find, measure and remove popularity bias in graph recommenders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dpaa.auditing.audit import Audit, audit
    from dpaa.data.dataset import Dataset, read_dataset
    from dpaa.errors import InputError
    from dpaa.evaluation.evaluator import Evaluation
    from dpaa.methods import METHODS
    from dpaa.runs.fit import evaluate, fit
    from dpaa.runs.folder import load
    from dpaa.runs.model import Model

_HOME = {
    "Audit": "dpaa.auditing.audit",
    "Dataset": "dpaa.data.dataset",
    "Evaluation": "dpaa.evaluation.evaluator",
    "InputError": "dpaa.errors",
    "METHODS": "dpaa.methods",
    "Model": "dpaa.runs.model",
    "audit": "dpaa.auditing.audit",
    "evaluate": "dpaa.runs.fit",
    "fit": "dpaa.runs.fit",
    "load": "dpaa.runs.folder",
    "read_dataset": "dpaa.data.dataset",
}
"""Public name → module.  They are imported when first used, so that `dpaa --help` need not wait for torch."""

__all__ = [
    "METHODS",
    "Audit",
    "Dataset",
    "Evaluation",
    "InputError",
    "Model",
    "__version__",
    "audit",
    "evaluate",
    "fit",
    "load",
    "read_dataset",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dpaa' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
