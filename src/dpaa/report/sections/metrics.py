"""Metrics of the runs: the table, and accuracy against bias."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dpaa.comparison.chances import Chances, warnings
from dpaa.report.charts import Point, scatter
from dpaa.report.inputs import Family, Inputs, Run
from dpaa.report.markup import Markup, tag
from dpaa.report.metric_words import best_of, explain
from dpaa.report.parts import Cell, Figure, Head, Section, bullets, code, number, table

TABLES = {
    "Accuracy": (
        *("recall@{k}", "ndcg@{k}", "hit@{k}", "precision@{k}", "mrr@{k}", "map@{k}"),
        *("recall@{k}/popular", "recall@{k}/niche", "ndcg@{k}/popular", "ndcg@{k}/niche"),
    ),
    "Popularity bias": (
        *("arp@{k}", "aplt@{k}", "coverage@{k}", "gini@{k}", "entropy@{k}", "head_share@{k}"),
        *("popularity_lift@{k}", "upd@{k}", "pop_reo@{k}", "pop_rsp@{k}"),
    ),
    "Users by taste": (
        *("ndcg@{k}/niche-tastes", "ndcg@{k}/diverse-tastes", "ndcg@{k}/blockbuster-tastes"),
        *("upd@{k}/niche-tastes", "upd@{k}/diverse-tastes", "upd@{k}/blockbuster-tastes"),
    ),
}
"""Columns of each table, as far as the runs have them."""
ALIKE = ("split", "k", "overlap", "mask_valid", "candidates", "users", "relevant")
"""What must be the same of two protocols for numbers to stand in one table."""
FEW_DIGITS = {"arp": 1, "aclt": 2, "entropy": 2}
_TREATED = {
    "drop": "left out: neither ranked nor counted",
    "mask": "counted as liked, though they cannot be recommended",
    "keep": "ranked and counted like any other",
}


def section(inputs: Inputs) -> Section:
    """A table and two scatters for each group of runs that were measured alike."""
    parts: list[Figure | Markup] = []
    groups = measured_alike(inputs)
    for place, (family, runs) in enumerate(groups):
        suffix = f"-{place + 1}" if place else ""
        if len(groups) > 1:
            parts.append(tag("h3", f"{family.name}, {in_words(runs[0])}"))
        parts += [_tables(family, runs), _protocol(runs[0]), *cautions(runs), *_scatters(runs, suffix)]
    return Section("metrics", "How good, and how biased", "Metrics", parts)


def measured_alike(inputs: Inputs) -> list[tuple[Family, list[Run]]]:
    """Evaluated runs by dataset and protocol: only their numbers may stand in one table."""
    groups: dict[str, tuple[Family, list[Run]]] = {}
    for run in inputs.runs:
        if run.evaluation is not None:
            protocol = {name: run.evaluation["protocol"].get(name) for name in ALIKE}
            key = json.dumps([run.family.fingerprint, protocol], sort_keys=True, default=str)
            groups.setdefault(key, (run.family, []))[1].append(run)
    return list(groups.values())


def cautions(runs: Sequence[Run]) -> list[Markup]:
    """Unequal training budgets and trainings cut short, where there are any."""
    sides: dict[object, list[Run]] = {}
    for run in runs:
        sides.setdefault((run.method, Chances.of_model(run.model).given), []).append(run)
    told = warnings(
        [
            (alike[0].name if len(alike) == 1 else alike[0].method, [Chances.of_model(run.model) for run in alike])
            for alike in sides.values()
        ]
    )
    return [tag("div", bullets([f"{line[0].upper()}{line[1:]}." for line in told]), class_="notes")] if told else []


def longest(run: Run) -> int:
    """The largest k of the evaluation."""
    cuts = _protocol_of(run).get("k")
    return max((int(k) for k in cuts if isinstance(k, int)), default=20) if isinstance(cuts, list) else 20


def in_words(run: Run) -> str:
    """The protocol, short."""
    protocol = _protocol_of(run)
    return f"lists of {longest(run)}, overlap convention “{protocol.get('overlap', '?')}”"


def place_of(run: Run, runs: Sequence[Run]) -> int:
    """Place in the palette: one per method, in the order of the runs."""
    return list(dict.fromkeys(other.method for other in runs)).index(run.method)


def _protocol_of(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = (run.evaluation or {}).get("protocol", {})
    return found


def _tables(family: Family, runs: list[Run]) -> Markup:
    """Accuracy, bias and tastes; then how to read them."""
    k = longest(runs[0])
    tables, meanings = [], []
    for title, names in TABLES.items():
        chosen = [name.format(k=k) for name in names if any(name.format(k=k) in run.metrics for run in runs)]
        if chosen:
            tables.append(
                _table(f"{title} on {family.name}: {in_words(runs[0])}. ★ = best of its column.", runs, chosen)
            )
        for name in chosen:
            words = explain(name)
            if words is not None:
                meanings.append((code(name), f" {arrow_words(words.better)}: {words.words}"))
    reading = tag(
        "p",
        tag("strong", "How to read it. "),
        "One row per run. The arrow beside a name says which direction is better: ↑ higher, ↓ lower, →0 close to zero. "
        "Click a column's name (or press Enter on it) to sort. A star marks the best number of a column as shown; "
        "it does not say that the difference is more than chance: ",
        code("dpaa compare"),
        " does.",
        class_="reading",
    )
    return tag("div", tables, reading, tag("details", tag("summary", "What the columns mean"), bullets(meanings)))


def _table(caption: str, runs: list[Run], chosen: list[str]) -> Markup:
    best = {
        name: best_of(name, {run.name: run.metrics[name] for run in runs if name in run.metrics}) for name in chosen
    }
    rows = []
    for run in runs:
        cells = [Cell(run.name, run.name, note=f"method {run.method}, {run.folder.path}")]
        for name in chosen:
            cell = number(run.metrics.get(name), FEW_DIGITS.get(name.partition("@")[0], 4))
            cells.append(Cell(cell.shown, cell.by, run.name in best[name]))
        rows.append(cells)
    heads = [Head("run", "the folder's name", numeric=False)]
    for name in chosen:
        words = explain(name)
        arrow = {"high": "↑", "low": "↓", "zero": "→0"}[words.better] if words else ""
        heads.append(Head(f"{name} {arrow}".strip(), words.words if words else None))
    return table(caption, heads, rows)


def arrow_words(better: str) -> str:
    """Which direction is better."""
    return {"high": "(higher is better)", "low": "(lower is better)", "zero": "(closer to zero is better)"}[better]


def _protocol(run: Run) -> Markup:
    protocol = _protocol_of(run)
    overlap = str(protocol.get("overlap", "?"))
    known = "training or validation" if protocol.get("mask_valid") else "training"
    split = protocol.get("split", "test")
    return tag(
        "p",
        tag("strong", "Protocol. "),
        f"{_count(protocol, 'users')} users of the {split} split with {_count(protocol, 'relevant')} relevant pairs; "
        f"{_count(protocol, 'candidates')} candidate items; what a user had in {known} is not recommended again. "
        f"Overlap convention “{overlap}”: {split} pairs that are also in {known} ({_count(protocol, 'overlapping')} "
        f"here) are {_TREATED.get(overlap, 'treated in an unknown way')}. Numbers under another convention cannot be "
        "compared.",
        class_="protocol",
    )


def _count(protocol: dict[str, Any], name: str) -> str:
    value = protocol.get(name)
    return f"{value:,}" if isinstance(value, int) else "?"


def _scatters(runs: list[Run], suffix: str) -> list[Figure | Markup]:
    k = longest(runs[0])
    found: list[Figure | Markup] = []
    both = [run for run in runs if f"ndcg@{k}" in run.metrics and f"arp@{k}" in run.metrics]
    if len(both) > 1:
        found.append(
            Figure(
                f"accuracy-against-bias{suffix}",
                "Accuracy against popularity bias",
                "Scatter of " + _listed(both, f"ndcg@{k}", "accuracy", f"arp@{k}", "mean popularity"),
                "Every point is a run. Higher is more accurate; further left means that less popular items are "
                "recommended. Up and to the left is better on both; a method that only moves left pays for it "
                "with accuracy.",
                lambda look: scatter(
                    _points(both, f"arp@{k}", f"ndcg@{k}"),
                    look,
                    "mean popularity of recommended items (ARP)",
                    f"accuracy (NDCG@{k})",
                ),
            )
        )
    groups = [run for run in runs if f"recall@{k}/popular" in run.metrics and f"recall@{k}/niche" in run.metrics]
    if len(groups) > 1:
        found.append(
            Figure(
                f"popular-against-niche{suffix}",
                "Who is found: popular and niche items",
                "Scatter of " + _listed(groups, f"recall@{k}/popular", "popular", f"recall@{k}/niche", "niche"),
                "Recall counts how many of the items that people liked in the test were in their lists: of the popular "
                "items to the right, of the niche items upwards. Debiasing should move a point up without moving it "
                "left. Mind the scales: they are usually very different.",
                lambda look: scatter(
                    _points(groups, f"recall@{k}/popular", f"recall@{k}/niche"),
                    look,
                    f"recall@{k} of popular items",
                    f"recall@{k} of niche items",
                ),
            )
        )
    return found


def _points(runs: list[Run], x: str, y: str) -> list[Point]:
    """Coloured by method: runs of one method with different seeds share a colour and a name."""
    many = {run.method for run in runs if sum(other.method == run.method for other in runs) > 1}
    return [
        Point(
            run.method if run.method in many else run.name,
            run.metrics[x],
            run.metrics[y],
            place_of(run, runs),
            f"{run.name}: {x} {run.metrics[x]:.4g}, {y} {run.metrics[y]:.4g}",
        )
        for run in runs
    ]


def _listed(runs: list[Run], one: str, one_name: str, other: str, other_name: str) -> str:
    shown = [
        f"{run.name}: {one_name} {run.metrics[one]:.4g}, {other_name} {run.metrics[other]:.4g}" for run in runs[:20]
    ]
    return "; ".join(shown) + "."
