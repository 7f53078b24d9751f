"""Whether a difference between recommenders is more than chance."""

from dpaa.comparison._compare import Entry, compare, compare_entries, find_baseline, full_name, read_entries
from dpaa.comparison._result import FORMATS, Comparison, harm_in_words, relative_change, write_table
from dpaa.comparison.training_budget import TrainingBudget, budget_warnings, unfinished

__all__ = [
    "FORMATS",
    "Comparison",
    "Entry",
    "TrainingBudget",
    "budget_warnings",
    "compare",
    "compare_entries",
    "find_baseline",
    "full_name",
    "harm_in_words",
    "read_entries",
    "relative_change",
    "unfinished",
    "write_table",
]
