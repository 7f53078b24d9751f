"""Tables and figures of the paper by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpaa.errors import InputError
from dpaa.reproduction import ablation, best_settings, datasets, overall, readings, severity
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.tables import Chapter

CHAPTERS: dict[str, Callable[[Plan], Chapter]] = {
    "datasets": datasets.chapter,
    "overall": overall.overall_chapter,
    "groups": overall.groups_chapter,
    "severity": severity.chapter,
    "ablation": ablation.chapter,
    "settings": best_settings.chapter,
    "draws": severity.draws_chapter,
    "readings": readings.chapter,
}
NOT_OF_THE_PAPER = ("draws", "readings")
"""Asked for by name alone."""
ON_REAL_DATA = ("overall", "groups")
ON_SEVERITY_DATA = ("severity", "ablation")
ALL = "all"


def chapters(name: str, plan: Plan) -> Iterator[Chapter]:
    """One table, or all that can be made from what the user has; each as soon as it is made."""
    if name != ALL and name not in CHAPTERS:
        raise InputError(f"there is no table {name!r}; use one of {', '.join([*CHAPTERS, ALL])}")
    given = plan.sources.coat or plan.sources.yahoo_r3 or plan.sources.kuairec
    if given is None and not (name in ON_REAL_DATA and plan.imported):
        raise InputError("there is no data to run on; name a folder with --coat, --yahoo-r3 or --kuairec")
    plan.check()
    if name != ALL:
        yield CHAPTERS[name](plan)
        return
    for one in CHAPTERS:
        if one in NOT_OF_THE_PAPER:
            continue
        if one in ON_REAL_DATA and not plan.real and not plan.imported:
            plan.runner.say(f"{one} is left out: there is no real dataset (--coat, --yahoo-r3, --kuairec)")
        elif one in ON_SEVERITY_DATA and plan.sources.kuairec is None:
            plan.runner.say(f"{one} is left out: severity data are made from KuaiRec's small matrix (--kuairec)")
        else:
            yield CHAPTERS[one](plan)
