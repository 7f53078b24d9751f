"""Which reading of the paper gives its numbers?  DPAA read in many ways, each held against all rows that are printed.

The design is bounded: from two centres, the equation as printed and with LightGCN's scaling, one factor is changed at a
time, and a few crossings join changes that go together.  A reading keeps the paper's best settings (C, η, δ) for each
dataset; nothing is tuned.  The nearest readings get the ablation's columns as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaa._text import counted
from dpaa.data.dataset import read_dataset
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import OVERLAPS
from dpaa.methods.settings import PAPER_TRAINING
from dpaa.report.parts import Figure
from dpaa.reproduction import paper
from dpaa.reproduction.ablation import VARIANTS, WHOLE
from dpaa.reproduction.energy import energy_figures, energy_tables
from dpaa.reproduction.figures import severity_figure
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.results import RunResult
from dpaa.reproduction.sources import TITLES
from dpaa.reproduction.tables import Cell, Chapter, Quantity, Table, cell_of, severity_cells
from dpaa.reproduction.trainings import RunSpec, failures

KIND, METHOD = "readings", "dpaa-reading"
SEEDS = {"coat": 3}
"""Of training, where not one."""
ABLATED = 2
"""Readings, the nearest first, whose ablation is made."""
ABLATED_AT = (0.0, 3.0, 5.0, 7.0, 9.0)
RECALL = "recall@20"


@dataclass(frozen=True)
class Reading:
    """One way to read the paper."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    """What differs from `dpaa-reading`'s defaults besides the paper's settings."""

    def on(self, data: str, overlapping: bool) -> dict[str, Any]:
        """All settings on a dataset; how early stopping treats overlap matters only where there is some."""
        best = paper.BEST_SETTINGS.get(data, paper.BEST_SETTINGS["kuairec"])
        own = dict(zip(("half_trust_shift", "layer_emphasis", "initial_residual"), best, strict=True)) | self.settings
        return own if overlapping else {name: value for name, value in own.items() if name != "stop_by"}


CENTRES = {
    "as printed": {"neighbour_scaling": "none", "layer_weight_norm": "sum"},
    "with LightGCN's scaling": {"neighbour_scaling": "symmetric", "layer_weight_norm": "mean"},
}
FACTORS: dict[str, dict[str, Any]] = {
    "scaling symmetric": {"neighbour_scaling": "symmetric"},
    "scaling none": {"neighbour_scaling": "none"},
    "divided by the receiver's degree": {"neighbour_scaling": "receiver"},
    "divided by the sender's degree": {"neighbour_scaling": "sender"},
    "divided by the root of the receiver's degree": {"neighbour_scaling": "root-receiver"},
    "λ with mean 1": {"layer_weight_norm": "mean"},
    "λ with sum 1": {"layer_weight_norm": "sum"},
    "λ not normalised": {"layer_weight_norm": "none"},
    "residual before the layer's weight": {"residual_place": "before"},
    "cosines of the read-out": {"interaction_strength_from": "readout"},
    "cosines of the pre-trained layer": {"estimate": "pretrained"},
    "cosines of the pre-trained read-out": {"estimate": "pretrained", "interaction_strength_from": "readout"},
    "initial deviation .01": {"initial_deviation": 0.01},
    "early stopping counts overlap": {"stop_by": "keep"},
    "every interaction once an epoch": {"sampler": "interaction"},
    "η 0, δ 0": {"layer_emphasis": 0.0, "initial_residual": 0.0},
    "trained as the paper says": PAPER_TRAINING,
}
"""One change each; the centre's own level is left out."""
CROSSINGS: dict[str, tuple[str, ...]] = {
    "as printed": (
        "λ not normalised + η 0, δ 0 + every interaction once an epoch",
        "cosines of the pre-trained read-out + η 0, δ 0",
        "trained as the paper says + every interaction once an epoch",
        "divided by the root of the receiver's degree + η 0, δ 0",
    ),
    "with LightGCN's scaling": (
        "cosines of the pre-trained read-out + η 0, δ 0",
        "cosines of the pre-trained read-out + η 0, δ 0 + early stopping counts overlap",
        "cosines of the pre-trained read-out + divided by the root of the receiver's degree",
    ),
}


PLAIN = {"iiw": False, "layer_emphasis": 0.0, "initial_residual": 0.0}
CONTROLS = (
    Reading("control: LightGCN, none of DPAA's weights", PLAIN),
    Reading("control: LightGCN, early stopping counts overlap", PLAIN | {"stop_by": "keep"}),
)
"""What of a reading's numbers has nothing to do with DPAA; they are no readings and are not ranked."""


def readings() -> list[Reading]:
    """All of the design."""
    found: list[Reading] = []
    for centre, beneath in CENTRES.items():
        found.append(Reading(centre, beneath))
        changes = {name: change for name, change in FACTORS.items() if beneath | change != beneath}
        for crossing in CROSSINGS[centre]:
            changes[crossing] = {key: value for name in crossing.split(" + ") for key, value in FACTORS[name].items()}
        known = [one.settings for one in found]  # a change from one centre may be the same as one from the other
        found += [
            Reading(f"{centre}: {name}", beneath | change)
            for name, change in changes.items()
            if beneath | change not in known
        ]
    return found


# ---------------------------------------------------------------------- trainings


def places(plan: Plan) -> dict[str, Path]:
    """What there is to train on: real datasets, and severities."""
    found = {name: plan.runner.prepared(data, name) for name, data in plan.real.items()}
    if plan.sources.kuairec is not None:
        found |= {f"s={severity:g}": plan.severity_folder(severity, 0) for severity in plan.severities}
    if not found:
        raise InputError("there is nothing to run on: " + "; ".join(plan.sources.missing({})))
    return found


def _specs(plan: Plan, row: str, reading: Reading, data: str, folder: Path, overlapping: bool) -> list[RunSpec]:
    settings = plan.settings_in_force(data) | reading.on(data, overlapping)
    return [
        RunSpec(data, folder, row, METHOD, settings | {"seed": seed}, protocol=plan.budget.protocol, traced=True)
        for seed in range(plan.given_seeds or SEEDS.get(data, 1))
    ]


def _overlapping(folder: Path) -> bool:
    """Whether validation pairs are training pairs too."""
    return bool(len(read_dataset(folder).overlap("train", "valid")))


def chapter(plan: Plan) -> Chapter:
    """Distances of every reading, the best one's rows, and where the energy goes."""
    folders = places(plan)
    overlapping = {data: _overlapping(folder) for data, folder in folders.items()}
    every = readings()
    specs = [
        spec
        for data, folder in folders.items()
        for one in (*every, *CONTROLS)
        for spec in _specs(plan, one.name, one, data, folder, overlapping[data])
    ]
    results = plan.runner.run(specs, KIND)
    scores = {one.name: score(results, one.name, folders, plan.severities) for one in (*every, *CONTROLS)}
    order = sorted(every, key=lambda one: _order(scores[one.name]))
    ablated = _ablation(plan, folders, order[:ABLATED])
    for one in order[:ABLATED]:
        scores[one.name].ablation = _ablation_distance(ablated, one.name, plan.severities)
    seeds = _seeds_in_words(folders, plan.given_seeds)
    trained = len({(spec.data, spec.label, spec.settings["seed"]) for spec in specs})
    about = (
        plan.in_words(),
        f"{len(every)} readings: two centres, one factor changed at a time, a few crossings; below them LightGCN, "
        "which is no reading, to tell what has nothing to do with DPAA. Each keeps the paper's "
        f"best C, η and δ; nothing is tuned. {counted(trained, 'training', 'trainings')}, {seeds}.",
        "Distance: mean of |ours − paper| / paper over what the paper prints for DPAA: recall, NDCG and hit ratio "
        "(Coat under each convention, Yahoo! R3), the same of popular and niche items, recall@20 at every severity. "
        "Coat counts with the convention that is nearest.",
    )
    tables = [_distances([*order, *CONTROLS], scores, folders)]
    if plan.sources.kuairec is not None:
        tables.append(_rows_beside(results, order, plan.severities))
        if ablated:
            tables.append(_ablation_table(ablated, order[0].name, plan.severities))
    tables += [_best_on(results, data, order) for data in folders if data in TITLES]
    tables += energy_tables(results, [one.name for one in every], folders)
    figures = _figures(results, order, folders, plan.severities)
    missing = (*plan.sources.missing(plan.real), *failures([*results, *ablated]))
    told = _conclusion(order, scores)
    return Chapter("readings", "Which reading of the paper?", about, tuple(tables), figures, missing, told)


def _seeds_in_words(places: Mapping[str, Path], given: int | None) -> str:
    if given:
        return f"{counted(given, 'seed', 'seeds')} each"
    told = [f"{counted(SEEDS[data], 'seed', 'seeds')} on {TITLES[data]}" for data in places if data in SEEDS]
    return " and ".join([*told, "one elsewhere"] if told else ["one seed each"])


def _ablation(plan: Plan, places: Mapping[str, Path], chosen: Sequence[Reading]) -> list[RunResult]:
    """The paper's columns for some readings."""
    levels = [data for data in places if data not in TITLES and float(data[2:]) in ABLATED_AT]
    chosen = chosen if len(levels) == len(ABLATED_AT) else []
    specs = []
    for reading in chosen:
        for variant, change in VARIANTS.items():
            varied = Reading(reading.name, WHOLE | reading.settings | change)
            for data in levels:
                specs += _specs(plan, f"{reading.name}: {variant}", varied, data, places[data], overlapping=False)[:1]
    return plan.runner.run(specs, KIND) if specs else []


# ---------------------------------------------------------------------- distances


@dataclass
class Score:
    """How far a reading is from what is printed, each a mean relative distance; no number where there is nothing."""

    coat: dict[str, float] = field(default_factory=dict)
    """By convention: overall and groups together."""
    yahoo: float = math.nan
    severity: float = math.nan
    ablation: float = math.nan

    @property
    def parts(self) -> list[float]:
        """Coat under its nearest convention, Yahoo! R3, severities."""
        return [self.coat.get(self.convention, math.nan), self.yahoo, self.severity]

    @property
    def convention(self) -> str:
        """The nearest."""
        known = {name: value for name, value in self.coat.items() if not math.isnan(value)}
        return min(known, key=lambda name: known[name]) if known else ""

    @property
    def total(self) -> float:
        """Mean of the parts there are, each a table of the paper; not of the ablation, which only the nearest have."""
        parts = self.parts
        known = [part for part in parts if not math.isnan(part)]
        return sum(known) / len(known) if known else math.nan


def score(results: Sequence[RunResult], name: str, places: Iterable[str], severities: Sequence[float]) -> Score:
    """The distances of one reading."""
    found = Score()
    for data in places:
        if data == "coat":
            found.coat = {overlap: _printed_distance(results, data, name, overlap) for overlap in OVERLAPS}
        elif data == "yahoo-r3":
            found.yahoo = _printed_distance(results, data, name, "drop")
    cells = severity_cells(results, {name: name}, severities, Quantity(RECALL), {name: paper.SEVERITY["dpaa"]})[name]
    found.severity = distance(cells)
    return found


def distance(cells: Iterable[Cell]) -> float:
    """Mean of |ours − paper| / paper over cells that have both."""
    apart = [
        abs(cell.mean - cell.paper) / cell.paper
        for cell in cells
        if cell.paper is not None and not math.isnan(cell.mean)
    ]
    return sum(apart) / len(apart) if apart else math.nan


def _printed_cells(results: Sequence[RunResult], data: str, name: str, overlap: str) -> dict[str, Cell]:
    """What the paper prints for DPAA on a real dataset, ours beside it."""
    printed = dict(zip(paper.OVERALL_METRICS, paper.OVERALL[data]["dpaa"], strict=True))
    printed |= dict(zip(paper.GROUP_METRICS, paper.GROUPS[data]["dpaa"], strict=True))
    return {one: cell_of(results, data, name, Quantity(one, overlap), theirs) for one, theirs in printed.items()}


def _printed_distance(results: Sequence[RunResult], data: str, name: str, overlap: str) -> float:
    return distance(_printed_cells(results, data, name, overlap).values())


def _ablation_distance(results: Sequence[RunResult], name: str, severities: Sequence[float]) -> float:
    labels = {variant: f"{name}: {variant}" for variant in VARIANTS}
    levels = [one for one in severities if one in ABLATED_AT]
    cells = severity_cells(results, labels, levels, Quantity(RECALL), paper.ABLATION)
    return distance(cell for row in cells.values() for cell in row)


def _order(found: Score) -> tuple[int, float]:
    """Those of which more is known first, then the nearest."""
    return sum(math.isnan(part) for part in found.parts), math.inf if math.isnan(found.total) else found.total


def _conclusion(order: Sequence[Reading], scores: Mapping[str, Score]) -> str:
    best = scores[order[0].name]
    if math.isnan(best.total):
        return ""
    parts = [f"Coat {best.coat[best.convention]:.0%} (under `{best.convention}`)"] if best.coat else []
    parts += [f"severities {best.severity:.0%}"] if not math.isnan(best.severity) else []
    parts += [f"Yahoo! R3 {best.yahoo:.0%}"] if not math.isnan(best.yahoo) else []
    centres = [f"{one}: {scores[one].total:.0%}" for one in CENTRES]
    return (
        f"Nearest to all that the paper prints for DPAA: “{order[0].name}”, {best.total:.0%} apart on average "
        f"({', '.join(parts)}). The two centres: {'; '.join(centres)}."
    )


# ---------------------------------------------------------------------- tables


def _percent(value: float) -> Cell:
    return Cell(() if math.isnan(value) else (100 * value,), form=".0f")


def _distances(order: Sequence[Reading], scores: Mapping[str, Score], places: Iterable[str]) -> Table:
    there = list(places)
    columns = ["all, % apart"]
    columns += [f"Coat {overlap}" for overlap in OVERLAPS] if "coat" in there else []
    columns += ["Yahoo! R3"] if "yahoo-r3" in there else []
    columns += ["severities", "ablation"] if any(data not in TITLES for data in there) else []
    rows = []
    for one in order:
        found = scores[one.name]
        values = [found.total]
        values += [found.coat.get(overlap, math.nan) for overlap in OVERLAPS] if "coat" in there else []
        values += [found.yahoo] if "yahoo-r3" in there else []
        values += [found.severity, found.ablation] if any(data not in TITLES for data in there) else []
        rows.append((one.name, tuple(_percent(value) for value in values)))
    note = (
        "Ordered by the first column: the mean of the tables, Coat under its nearest convention. The ablation is made "
        f"for the nearest {ABLATED} where severity {', '.join(f'{s:g}' for s in ABLATED_AT)} are asked for, and does "
        "not count."
    )
    return Table(
        "distances", "Distance of each reading to the paper", "reading", tuple(columns), tuple(rows), notes=(note,)
    )


def _rows_beside(results: Sequence[RunResult], order: Sequence[Reading], severities: Sequence[float]) -> Table:
    chosen = list(dict.fromkeys([*(one.name for one in order[:3]), *CENTRES]))
    printed = dict.fromkeys(chosen, paper.SEVERITY["dpaa"])
    cells = severity_cells(results, {name: name for name in chosen}, severities, Quantity(RECALL), printed)
    columns = tuple(f"s = {severity:g}" for severity in severities)
    title = "Recall@20 by severity: the nearest readings and the two centres, the paper's DPAA beside them"
    return Table("severity", title, "reading", columns, tuple((name, tuple(row)) for name, row in cells.items()))


def _ablation_table(results: Sequence[RunResult], name: str, severities: Sequence[float]) -> Table:
    levels = [one for one in severities if one in ABLATED_AT]
    labels = {variant: f"{name}: {variant}" for variant in VARIANTS}
    cells = severity_cells(results, labels, levels, Quantity(RECALL), paper.ABLATION)
    rows = [(f"s = {s:g}", tuple(cells[variant][place] for variant in VARIANTS)) for place, s in enumerate(levels)]
    return Table("ablation", f"Ablation of “{name}”: recall@20", "severity", tuple(VARIANTS), tuple(rows))


def _best_on(results: Sequence[RunResult], data: str, order: Sequence[Reading]) -> Table:
    """The best reading's rows on a real dataset, under each convention where there are several."""
    rows = []
    for one in dict.fromkeys([order[0].name, *CENTRES, *(control.name for control in CONTROLS)]):
        for overlap in OVERLAPS if data == "coat" else ("drop",):
            cells = _printed_cells(results, data, one, overlap)
            rows.append((f"{one}, `{overlap}`" if data == "coat" else one, tuple(cells.values())))
    columns = (*paper.OVERALL_METRICS, *paper.GROUP_METRICS)
    return Table(
        data,
        f"{TITLES[data]}: the nearest reading and the centres beside the paper's DPAA",
        "reading",
        columns,
        tuple(rows),
    )


def _figures(
    results: Sequence[RunResult], order: Sequence[Reading], places: Mapping[str, Path], severities: Sequence[float]
) -> tuple[Figure, ...]:
    figures = []
    if any(data not in TITLES for data in places):
        chosen = list(dict.fromkeys([order[0].name, *CENTRES]))
        ours = severity_cells(results, {name: name for name in chosen}, severities, Quantity(RECALL), {})
        figures.append(
            severity_figure(
                "readings",
                "The nearest reading, the two centres, and the paper's DPAA",
                "Recall@20 over severity: three readings of DPAA, then the paper's DPAA and LightGCN.",
                "If a reading were the paper's, its line would lie on the paper's DPAA in the second panel.",
                severities,
                ours,
                {"the paper's DPAA": paper.SEVERITY["dpaa"], "the paper's LightGCN": paper.SEVERITY["lightgcn"]},
                main=chosen,
            )
        )
    figures += energy_figures(results, [one.name for one in order], list(places))
    return tuple(figures)
