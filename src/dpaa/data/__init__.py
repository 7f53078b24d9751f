"""Log files become a dataset: positives, contiguous indices, splits.

Public names are imported when they are first used, so that `import dpaa` stays quick.
"""

from importlib import import_module
from typing import Any

_MODULES = {
    "dataset": ("Dataset", "from_files", "read_dataset", "write_log"),
    "inputs": ("TextForm", "open_log", "open_table"),
    "tables": ("Table", "as_table"),
    "log": ("ColumnNames", "Log", "PositiveRule", "Reading", "read_log"),
    "pairs": ("Pairs",),
    "prepare": ("Recipe",),
    "splits": ("SPLIT_KINDS", "SplitRule"),
    "attributes": ("ItemAttributes",),
    "sources.published": ("coat", "kuairec", "yahoo_r3"),
    "sources.severity": ("read_pairs", "with_randomised", "with_severity"),
    "sources.world": ("simulate", "simulate_world"),
}
__all__ = sorted(name for names in _MODULES.values() for name in names)


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"dpaa.data.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
