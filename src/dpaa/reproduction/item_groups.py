"""Popular and niche items: for whom each method finds what users like."""

from __future__ import annotations

from dpaa.reproduction import paper
from dpaa.reproduction.overall import convention_tables, need_some_data
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.tables import LEGEND, Chapter
from dpaa.reproduction.trainings import failures


def chapter(plan: Plan) -> Chapter:
    """A table per dataset and convention; the trainings are those of the overall table."""
    need_some_data(plan)
    results, tables = plan.real_results, []
    for name, data in plan.real.items():
        metrics = (*paper.GROUP_METRICS, "aplt@20", "arp@20")
        tables += convention_tables(plan, results, name, data, metrics, paper.GROUPS[name], paper.GROUP_METRICS)
    about = (
        plan.in_words(),
        "Popular items are the fewest that have 80 % of the training pairs; the ranking is over all items, and only "
        "what counts as relevant is restricted to the group.",
        LEGEND + ".",
    )
    missing = (*plan.sources.missing(plan.real), *plan.left_out.values(), *failures(results))
    return Chapter("groups", "Popular and niche items", about, tuple(tables), missing=missing)
