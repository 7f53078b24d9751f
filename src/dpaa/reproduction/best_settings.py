"""The settings every method runs with: chosen on validation, or its defaults; DPAA's beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpaa.methods import find_method
from dpaa.methods.settings import TrainedSettings, make_settings
from dpaa.reproduction import paper
from dpaa.reproduction.budget import nearest
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.sources import TITLES
from dpaa.reproduction.tables import Cell, Chapter, Table
from dpaa.reproduction.trainings import known_settings

SYMBOLS = {"half_trust_shift": "C", "layer_emphasis": "η", "initial_residual": "δ"}
SHOWN = ("learning_rate", "l2")
"""Of the settings that all methods share."""


def chapter(plan: Plan) -> Chapter:
    """A table per dataset, real or of a tuned severity."""
    tables = [
        _table(plan, name, TITLES[name], plan.runner.prepared(data, name), paper.BEST_SETTINGS[name])
        for name, data in plan.real.items()
    ]
    if plan.sources.kuairec is not None:
        tuned = plan.budget.tuning.severities if plan.budget.tuning else ()
        levels = sorted({nearest(severity, tuned) for severity in plan.severities}) if tuned else []
        for severity in levels or plan.severities[:1]:
            title = f"KuaiRec, severity {severity:g}" if levels else "KuaiRec, every severity"
            folder = plan.severity_folder(severity, 0)
            tables.append(_table(plan, f"s={severity:g}", title, folder, paper.BEST_SETTINGS["kuairec"]))
    how = "Nothing is tuned in this budget: these are the methods' defaults and what the rows set."
    if plan.budget.tuning is not None:
        how = "Chosen by validation recall@20; the test split was not opened. Every trial is kept with them."
    missing = (*plan.sources.missing(plan.real), *plan.left_out.values())
    return Chapter("settings", "Best settings", (plan.in_words(), how), tuple(tables), missing=missing)


def _table(plan: Plan, data: str, title: str, folder: Path, printed: paper.Row) -> Table:
    rows = []
    for label in plan.rows:
        method, settings = plan.settings_of(label, data, folder)
        words = Cell(text=_in_words(method, settings, plan.settings_in_force(data)))
        tuned = plan.study(label, data, folder) if plan.is_tuned(label) else None
        valid = Cell((tuned.valid,)) if tuned else Cell()
        trials = Cell((float(tuned.trials),), form=".0f") if tuned else Cell()
        pairs = zip(SYMBOLS.values(), printed, strict=True) if paper.row_of(label) == "dpaa" else ()
        theirs = ", ".join(f"{symbol} {value:g}" for symbol, value in pairs)
        rows.append((label, (words, Cell(text=theirs), valid, trials)))
    columns = ("settings", "the paper's", "validation recall@20", "trials")
    return Table(f"settings {data}", f"Settings on {title}", "method", columns, tuple(rows))


def _in_words(method: str, settings: dict[str, Any], common: dict[str, Any]) -> str:
    """The method's own settings as they are in force, and the shared ones that matter."""
    set_here = known_settings(common, method) | settings
    values = make_settings(find_method(method).settings_type, set_here, method).model_dump(mode="json")
    shared = set(TrainedSettings.model_fields) | {"seed"}
    names = [name for name in values if name not in shared or name in SHOWN]
    shown = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in values.items()}
    told = [f"{SYMBOLS.get(name, name)} {shown[name]}" for name in names if values[name] is not None]
    return ", ".join(told) or "none"
