"""The DPAA paper's tables and figures: what to train, what was measured, and how it is shown beside the paper."""

from dpaa.reproduction._budget import find_budget
from dpaa.reproduction._chapters import chapters
from dpaa.reproduction._plan import Plan
from dpaa.reproduction._results import pack_results
from dpaa.reproduction._sources import Sources
from dpaa.reproduction._tables import Chapter, Table, check_target, write_chapter, write_page
from dpaa.reproduction._trainings import Runner

__all__ = ["Chapter", "Plan", "Runner", "Sources", "Table", "chapters", "check_target", "find_budget", "pack_results"]
__all__ += ["write_chapter", "write_page"]
