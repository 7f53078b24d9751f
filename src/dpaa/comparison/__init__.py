"""Tests of differences between recommenders, over users and seeds."""

from dpaa.comparison._budget import TrainingBudget, budget_warnings, unfinished
from dpaa.comparison._compare import (
    Entry,
    compare,
    compare_entries,
    find_baseline,
    full_name,
    per_user_values,
    read_entries,
)
from dpaa.comparison._result import FORMATS, Comparison, harm_in_words, write_table

__all__ = ["FORMATS", "Comparison", "Entry", "TrainingBudget", "budget_warnings", "compare", "compare_entries"]
__all__ += ["find_baseline", "full_name", "harm_in_words", "per_user_values", "read_entries", "unfinished"]
__all__ += ["write_table"]
