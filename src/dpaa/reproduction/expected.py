"""How long a reproduction will take, told before it begins: trainings that are missing, times what one takes here."""

from __future__ import annotations

from dataclasses import replace

from dpaa._text import counted
from dpaa.methods import find_method
from dpaa.reproduction import readings
from dpaa.reproduction.budget import TuningPerSetting
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.trainings import RunSpec, known_settings, parse_label
from dpaa.tuning.space import search_space, size

YARDSTICK = "lightgcn"
COSTS = {"ppac": 6.0, "dpaa-auto": 6.0, "apda": 3.0, "dap": 2.0, "cvib": 1.2, "als": 0.3}
COSTS |= dict.fromkeys(("ease", "item-knn", "most-popular"), 0.1)
"""What a training takes, as a multiple of LightGCN's: medians of the committed results on Coat or severity data, the
larger, rounded; 1 where not named."""
AROUND = 1.5
"""Besides training: evaluation under three conventions, the dial's curve."""


def expected(name: str, plan: Plan) -> str:
    """One sentence; a training of LightGCN is made and kept, by which the others are measured."""
    told, minutes = 0, 0.0
    for data, folder in readings.places(plan).items():
        method, shared = YARDSTICK, known_settings(plan.settings_in_force(data), YARDSTICK)
        spec = RunSpec(data, folder, method, method, shared | {"seed": 0}, protocol=plan.budget.protocol)
        here = replace(plan.runner, storage=None)  # the pace of this machine, not of another one
        (result,) = here.run([spec], "overall" if data in plan.real else "severity")
        seconds = float(result.details.get("seconds") or 0.0) * AROUND
        counts = (
            _readings(plan, data) if name == readings.KIND else {row: _trainings(plan, row, data) for row in plan.rows}
        )
        told += sum(counts.values())
        minutes += sum(n * COSTS.get(row.split()[0], 1.0) for row, n in counts.items()) * seconds / 60
    pace = f"{minutes / 60:.1f} hours" if minutes >= 90 else f"{minutes:.0f} minutes"
    return (
        f"{name}: {counted(told, 'training', 'trainings')} at most, about {pace} on one core like this "
        f"(divided by --jobs, as far as there are cores); what is in {plan.runner.results} is not trained again"
    )


def _readings(plan: Plan, data: str) -> dict[str, int]:
    """The ablation of the nearest at some severities comes on top."""
    return {
        "dpaa": (len(readings.readings()) + len(readings.CONTROLS)) * (plan.given_seeds or readings.SEEDS.get(data, 1))
    }


def _trainings(plan: Plan, row: str, data: str) -> int:
    """Trials and seeds of a row."""
    method = parse_label(row)[0]
    kind = find_method(method)
    seeds = len(plan.seeds_on(data) if data in plan.real else plan.seeds) if kind.seeded else 1
    tuning = plan.budget.tuning
    if not plan.is_tuned(row) or tuning is None:
        return seeds
    rates = known_settings({"learning_rate": tuning.learning_rates}, method) if tuning.learning_rates else {}
    space = search_space(kind, tuning.space, known_settings(plan.common(data), method), rates)
    every = size(space)
    wanted = tuning.trials_of(len(space)) if isinstance(tuning, TuningPerSetting) else tuning.trials or every or 0
    return min(wanted, every or wanted) + seeds
