"""Log files become a dataset: positives, contiguous indices, splits.

Public names are imported when they are first used, so that `import dpaa` stays quick.
"""

from dpaa.plugins import on_first_use

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
_HOME = {name: f"dpaa.data.{module}" for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)
__getattr__ = on_first_use(__name__, _HOME)
