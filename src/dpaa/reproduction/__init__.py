"""The DPAA paper's tables and figures: what to train, what was measured, and how it is shown beside the paper."""

from dpaa.reproduction._chapters import chapters
from dpaa.reproduction._field import FIELD, field_chapter, preset, read_results, run_field
from dpaa.reproduction._paper import BUDGETS, Budget
from dpaa.reproduction._plan import Plan
from dpaa.reproduction._tables import Chapter, Table, write_chapters

__all__ = ["BUDGETS", "FIELD", "Budget", "Chapter", "Plan", "Table", "chapters", "field_chapter", "preset"]
__all__ += ["read_results", "run_field", "write_chapters"]
