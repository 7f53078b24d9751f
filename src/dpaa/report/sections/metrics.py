"""Metrics of the runs: the table, and accuracy against bias."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from markupsafe import Markup

from dpaa.comparison import TrainingBudget, budget_warnings
from dpaa.evaluation.metrics import BETTER, METRICS, explain
from dpaa.report.charts import Point, scatter
from dpaa.report.inputs import Family, Inputs, Run
from dpaa.report.parts import Cell, Figure, Head, Section, number, suffix, table
from dpaa.report.rendering import render, sentence

ACCURACY, BIAS = "Accuracy", "Popularity bias"
TABLES = {
    ACCURACY: (
        *("recall@{k}", "ndcg@{k}", "hit@{k}", "precision@{k}", "mrr@{k}", "map@{k}"),
        *("recall@{k}/popular", "recall@{k}/niche", "ndcg@{k}/popular", "ndcg@{k}/niche"),
    ),
    BIAS: (
        *("arp@{k}", "aplt@{k}", "coverage@{k}", "gini@{k}", "entropy@{k}", "head_share@{k}"),
        *("popularity_lift@{k}", "upd@{k}", "pop_reo@{k}", "pop_rsp@{k}"),
    ),
    "Users by taste": (
        *("ndcg@{k}/niche-tastes", "ndcg@{k}/diverse-tastes", "ndcg@{k}/blockbuster-tastes"),
        *("upd@{k}/niche-tastes", "upd@{k}/diverse-tastes", "upd@{k}/blockbuster-tastes"),
    ),
    "Users with (warm) and without (cold) training pairs": (
        *("ndcg@{k}/warm-users", "ndcg@{k}/cold-users", "recall@{k}/warm-users", "recall@{k}/cold-users"),
    ),
}
"""Columns of each table, as far as the runs have them."""
FREE = ("overlapping", "popularity_dial", "rerank", "group_by")
"""What may differ between two protocols whose numbers stand in one table."""
FEW_DIGITS = {"arp": 1, "aclt": 2, "entropy": 2}
ARROWS = {"high": "↑", "low": "↓", "zero": "→0"}
OVERLAPS = {
    "drop": "left out: neither ranked nor counted",
    "mask": "counted as liked, though they cannot be recommended",
    "keep": "ranked and counted like any other",
}


def section(inputs: Inputs) -> Section:
    """A table and two scatters for each group of runs that were measured alike."""
    groups: list[dict[str, object]] = []
    figures: list[Figure] = []
    for place, (family, runs) in enumerate(measured_alike(inputs)):
        chosen, scatters = _columns(runs), _scatters(runs, suffix(place))
        on = f"on {family.name}: {runs[0].protocol.in_words}. ★ = best of its column."
        figures += scatters.values()
        groups.append(
            {
                "name": f"{family.name}, {runs[0].protocol.in_words}",
                "tables": [_table(f"{title} {on}", runs, names) for title, names in chosen.items()],
                "meanings": [(name, explain(name)) for names in chosen.values() for name in names if explain(name)],
                "protocol": runs[0].protocol,
                "cautions": cautions(runs),
                "figures": scatters,
            }
        )
    content = render("metrics.html", groups=groups, directions=BETTER, overlaps=OVERLAPS)
    return Section("metrics", "How good, and how biased", "Metrics", content, figures)


def measured_alike(inputs: Inputs) -> list[tuple[Family, list[Run]]]:
    """Evaluated runs by dataset and protocol: only their numbers may stand in one table."""
    groups: dict[str, tuple[Family, list[Run]]] = {}
    for run in inputs.runs:
        if run.evaluation is not None:
            protocol = {name: value for name, value in asdict(run.protocol).items() if name not in FREE}
            key = json.dumps([run.family.fingerprint, protocol])
            groups.setdefault(key, (run.family, []))[1].append(run)
    return list(groups.values())


def cautions(runs: Sequence[Run]) -> list[str]:
    """Unequal training budgets and trainings cut short, where there are any."""
    sides: dict[object, list[Run]] = {}
    for run in runs:
        sides.setdefault((run.method, TrainingBudget.of_model(run.model).given), []).append(run)
    names = [alike[0].name if len(alike) == 1 else alike[0].method for alike in sides.values()]
    budgets = [[TrainingBudget.of_model(run.model) for run in alike] for alike in sides.values()]
    told = budget_warnings(list(zip(names, budgets, strict=True)))
    return [f"{sentence(line)}." for line in told]


def place_of(run: Run, runs: Sequence[Run]) -> int:
    """Place in the palette: one per kind, in the order of the runs."""
    return list(dict.fromkeys(other.kind for other in runs)).index(run.kind)


def best_of(metric: str, values: dict[str, float]) -> set[str]:
    """The names with the best value, as shown with four digits; none where a name has no direction."""
    known = explain(metric)
    if known is None or len(values) < 2:
        return set()
    distance = {"high": lambda value: -value, "low": lambda value: value, "zero": abs}[known.better]
    rounded = {name: distance(round(value, 4)) for name, value in values.items()}
    found = {name for name, value in rounded.items() if value == min(rounded.values())}
    return found if len(found) < len(values) else set()


def _columns(runs: list[Run]) -> dict[str, list[str]]:
    """Metrics that a run has, by table."""
    k = runs[0].protocol.largest_k
    known = {name for run in runs for name in run.metrics}
    found = {title: [name.format(k=k) for name in names] for title, names in TABLES.items()}
    for one in METRICS.values():  # those that the tables do not place come last
        found[ACCURACY if one.kind == "accuracy" else BIAS] += [f"{one.name}@{k}"] * one.on_page
    kept = {title: [name for name in dict.fromkeys(names) if name in known] for title, names in found.items()}
    return {title: names for title, names in kept.items() if names}


def _table(caption: str, runs: list[Run], chosen: list[str]) -> Markup:
    heads, columns = [Head("run", "the folder's name")], []
    for name in chosen:
        words = explain(name)
        heads.append(Head(f"{name} {ARROWS[words.better]}" if words else name, words.words if words else None))
        best = best_of(name, {run.name: run.metrics[name] for run in runs if name in run.metrics})
        digits = FEW_DIGITS.get(name.partition("@")[0], 4)
        columns.append([number(run.metrics.get(name), digits, best=run.name in best) for run in runs])
    first = [Cell(run.name, note=f"method {run.method}, {run.folder.path}") for run in runs]
    return table(caption, heads, list(zip(first, *columns, strict=True)))


def _scatters(runs: list[Run], suffix: str) -> dict[str, Figure]:
    """Accuracy against bias, popular against niche items: where two runs or more have the metrics."""
    k = runs[0].protocol.largest_k
    accuracy = {f"arp@{k}": "mean popularity of recommended items (ARP)", f"ndcg@{k}": f"accuracy (NDCG@{k})"}
    groups = {f"recall@{k}/{group}": f"recall@{k} of {group} items" for group in ("popular", "niche")}
    drawn = {
        "bias": _scatter(f"accuracy-against-bias{suffix}", "Accuracy against popularity bias", runs, accuracy),
        "groups": _scatter(f"popular-against-niche{suffix}", "Who is found: popular and niche items", runs, groups),
    }
    return {name: figure for name, figure in drawn.items() if figure}


def _scatter(name: str, title: str, runs: list[Run], axes: dict[str, str]) -> Figure | None:
    """Runs by two metrics, coloured by kind: those of one method with different seeds share a colour and a name."""
    x, y = axes
    both = [run for run in runs if x in run.metrics and y in run.metrics]
    if len(both) < 2:
        return None
    kinds = [run.kind for run in both]
    points = [
        Point(
            run.kind if kinds.count(run.kind) > 1 else run.name,
            run.metrics[x],
            run.metrics[y],
            place_of(run, both),
            f"{run.name}: {x} {run.metrics[x]:.4g}, {y} {run.metrics[y]:.4g}",
        )
        for run in both
    ]
    told = "; ".join(point.tip for point in points[:20])
    return Figure(name, title, f"Scatter of {told}.", lambda theme: scatter(points, theme, axes[x], axes[y]))
