"""Sections on the runs: exposure, metrics, groups of items, winners and losers, example users."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dpaa._text import printable
from dpaa.comparison import TrainingBudget, budget_warnings
from dpaa.evaluation.concentration import most_moved
from dpaa.evaluation.metrics import BETTER, METRICS, OF_COLUMNS, explain
from dpaa.report._charts import Dot, Line, curves, scatter
from dpaa.report._html import Cell, Figure, Head, Section, moved_items, number, render, sentence, suffix, table
from dpaa.report._inputs import Family, Inputs, Ints, Run

LOG = "the log (what people did before)"
MOST_RUNS, MOST_GROUPS, MOST_ITEMS = 6, 40, 8
SHOWN_ITEMS, SHOWN_HISTORY, SHOWN_RUNS = 10, 8, 4
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
SAME = ("split", "overlap", "mask_valid", "k", "users", "relevant", "candidates")
"""What two protocols must share for their numbers to stand in one table."""
FORMS = {"arp": ",.1f", "aclt": ",.2f", "entropy": ",.2f"}
ARROWS = {"high": "↑", "low": "↓", "zero": "→0"}
OVERLAPS = {
    "drop": "left out: neither ranked nor counted",
    "mask": "counted as liked, though they cannot be recommended",
    "keep": "ranked and counted like any other",
}


def measured_alike(inputs: Inputs) -> list[list[Run]]:
    """Evaluated runs by dataset and protocol: only their numbers may stand in one table."""
    groups: dict[str, list[Run]] = {}
    for run in inputs.runs:
        if run.evaluation is not None:
            key = [run.family.fingerprint, *(run.protocol.get(name) for name in SAME)]
            groups.setdefault(json.dumps(key), []).append(run)
    return list(groups.values())


def cautions(runs: Sequence[Run]) -> list[str]:
    """Sentences on unequal training budgets and trainings cut short."""
    sides: dict[object, list[Run]] = {}
    for run in runs:
        sides.setdefault((run.method, TrainingBudget.of_model(run.model).given), []).append(run)
    named = [(alike[0].name if len(alike) == 1 else alike[0].method, alike) for alike in sides.values()]
    lines = budget_warnings([(name, [TrainingBudget.of_model(run.model) for run in alike]) for name, alike in named])
    return [f"{sentence(line)}." for line in lines]


def colour_index(run: Run, runs: Sequence[Run]) -> int:
    """Index of a run's colour: one per kind, in the order of the runs."""
    return list(dict.fromkeys(other.kind for other in runs)).index(run.kind)


def best_of(metric: str, values: Mapping[str, float]) -> set[str]:
    """The names with the best value, as shown with four digits; none where a metric is not known or all are alike."""
    known = explain(metric)
    if known is None or len(values) < 2:
        return set()
    distance = {"high": lambda value: -value, "low": lambda value: value, "zero": abs}[known.better]
    rounded = {name: distance(round(value, 4)) for name, value in values.items()}
    best = {name for name, value in rounded.items() if value == min(rounded.values())}
    return best if len(best) < len(values) else set()


# ---------------------------------------------------------------------- exposure


def by_decile(
    name: str, title: str, description: str, y: str, shares: Mapping[str, list[float]], colours: Any
) -> Figure:
    """Shares by popularity decile as lines, with their table; `colours` has an index or None per line."""
    pairs = zip(shares.items(), colours, strict=True)
    lines = [Line(label, range(1, 11), values, index) for (label, values), index in pairs]
    x = "popularity decile (1 = rarest items, 10 = most popular)"
    rows = [[label, *(number(value, ".1%") for value in values)] for label, values in shares.items()]
    return Figure(
        name,
        title,
        description,
        lambda theme: curves(lines, theme, x, y, across="steps", upwards="percent"),
        table(f"{sentence(y)} by popularity decile (1 = rarest)", ["share in", *map(str, range(1, 11))], rows),
    )


def decile_shares(family: Family, weights: NDArray[Any]) -> list[float]:
    """Share of the total in each popularity decile, rare → popular; items without training pair are in none."""
    known = family.deciles >= 0
    sums = np.bincount(family.deciles[known], weights[known], minlength=10)
    return list(map(float, sums / max(weights.sum(), 1)))


def exposure(inputs: Inputs) -> Section:
    """What share of the lists goes to rare and to popular items, against the log."""
    drawn = []
    families = [family for family in inputs.families if family.runs]
    for index, family in enumerate(families):
        shares = {LOG: decile_shares(family, family.counts)}
        shares |= {run.name: decile_shares(family, run.exposure) for run in family.runs}
        last = "; ".join(f"{name} {values[-1]:.0%}" for name, values in list(shares.items())[:12])
        figure = by_decile(
            f"exposure-by-popularity{suffix(index)}",
            f"Exposure by popularity{f' on {family.name}' if len(families) > 1 else ''}",
            f"Share of exposure by popularity decile of the items, before and after. Most popular decile: {last}.",
            "share of exposure",
            shares,
            [None, *(colour_index(run, family.runs) for run in family.runs)],
        )
        drawn.append((family, figure))
    content = render("exposure.html", drawn=drawn)
    return Section("exposure", "Who gets shown", "Exposure", content, [figure for _, figure in drawn])


# ---------------------------------------------------------------------- metrics


def metrics(inputs: Inputs) -> Section:
    """Tables and two scatter plots for each group of runs that were measured alike."""
    groups: list[dict[str, object]] = []
    figures: list[Figure] = []
    for index, runs in enumerate(measured_alike(inputs)):
        first = runs[0]
        protocol = f"lists of {first.k}, overlap convention “{first.protocol.text('overlap') or '?'}”"
        columns, plots = _columns(runs), _scatters(runs, suffix(index))
        figures += plots.values()
        on = f"on {first.family.name}: {protocol}. ★ = best of its column."
        groups.append(
            {
                "name": f"{first.family.name}, {protocol}",
                "tables": [_metrics_table(f"{title} {on}", runs, names) for title, names in columns.items()],
                "meanings": [(name, explain(name)) for names in columns.values() for name in names if explain(name)],
                "protocol": first.protocol,
                "cautions": cautions(runs),
                "figures": plots,
            }
        )
    content = render("metrics.html", groups=groups, directions=BETTER, overlaps=OVERLAPS)
    return Section("metrics", "How good, and how biased", "Metrics", content, figures)


def _columns(runs: list[Run]) -> dict[str, list[str]]:
    """Metrics that a run has, by table; registered ones that no table names come last."""
    names = {title: [name.format(k=runs[0].k) for name in columns] for title, columns in TABLES.items()}
    for metric in METRICS.values():
        names[ACCURACY if metric.kind == "accuracy" else BIAS] += [f"{metric.name}@{runs[0].k}"] * metric.on_page
    known = {name for run in runs for name in run.metrics}
    kept = {title: [name for name in dict.fromkeys(each) if name in known] for title, each in names.items()}
    return {title: each for title, each in kept.items() if each}


def _metrics_table(caption: str, runs: list[Run], names: list[str]) -> Markup:
    heads = [Head("run", "the folder's name")]
    columns = [[Cell(run.name, note=f"method {run.method}, {run.folder.path}") for run in runs]]
    for name in names:
        words = explain(name)
        heads.append(Head(f"{name} {ARROWS[words.better]}" if words else name, words.words if words else None))
        columns.append(_values(name, runs, FORMS.get(name.partition("@")[0], ",.4f")))
    return table(caption, heads, list(zip(*columns, strict=True)))


def _values(metric: str, runs: Sequence[Run], form: str = ",.4f") -> list[Cell]:
    """A cell per run, the best marked."""
    best = best_of(metric, {run.name: run.metrics[metric] for run in runs if metric in run.metrics})
    return [number(run.metrics.get(metric), form, run.name in best) for run in runs]


def _scatters(runs: list[Run], suffix: str) -> dict[str, Figure]:
    """Accuracy against bias, popular against niche items: where two runs or more have the metrics."""
    k = runs[0].k
    axes = {
        "bias": (
            {f"arp@{k}": "mean popularity of recommended items (ARP)", f"ndcg@{k}": f"accuracy (NDCG@{k})"},
            ("accuracy-against-bias", "Accuracy against popularity bias"),
        ),
        "groups": (
            {f"recall@{k}/{group}": f"recall@{k} of {group} items" for group in ("popular", "niche")},
            ("popular-against-niche", "Recall of popular and niche items"),
        ),
    }
    figures = {}
    for key, (titles, (name, title)) in axes.items():
        (x, y), both = titles, [run for run in runs if set(titles) <= set(run.metrics)]
        kinds = [run.kind for run in both]
        dots = [
            Dot(
                # Runs of one method with different seeds share a colour and a name.
                run.kind if kinds.count(run.kind) > 1 else run.name,
                colour_index(run, both),
                run.metrics[x],
                run.metrics[y],
                f"{run.name}: {x} {run.metrics[x]:.4g}, {y} {run.metrics[y]:.4g}",
            )
            for run in both
        ]
        if len(dots) > 1:
            description = f"Scatter plot of {'; '.join(dot.tip for dot in dots[:20])}."
            figures[key] = Figure(name + suffix, title, description, _drawing(dots, *titles.values()))
    return figures


def _drawing(dots: list[Dot], x: str, y: str) -> Any:
    return lambda theme: scatter(dots, theme, x, y)


# ---------------------------------------------------------------------- groups of items


def groups(inputs: Inputs) -> Section:
    """Tables for each column by which runs that were measured alike were evaluated (`evaluate --group-by`)."""
    parts = [
        _group(column, [run for run in alike if run.groups and run.protocol.text("group_by") == column])
        for alike in measured_alike(inputs)
        for column in dict.fromkeys(run.protocol.text("group_by") for run in alike if run.groups)
    ]
    names = ", ".join(dict.fromkeys(part["column"] for part in parts))
    return Section("groups", f"Items by {names}", "Groups", render("groups.html", parts=parts))


def _group(column: str, runs: list[Run]) -> dict[str, Any]:
    k, name = runs[0].k, runs[0].family.name
    known = {value: group for run in runs for value, group in run.groups.items()}
    largest = sorted(known, key=lambda value: -np.nan_to_num(known[value].number("history")))[:MOST_GROUPS]
    shown = {value: printable(value).removeprefix(f"{column}=") for value in known if value in largest}
    rows = [
        [label, number(known[value].number("items"), ",.0f"), number(known[value].number("history"), ".1%")]
        + [number(run.groups[value].number(str(k)) if value in run.groups else None, ".1%") for run in runs]
        for value, label in shown.items()
    ]
    heads = [
        *(column, Head("items", "how many items have this value")),
        Head("history", "share of the training interactions of the same users"),
        *(Head(run.name, f"share of lists of {k}") for run in runs),
    ]
    tables = {
        metric: table(
            f"{metric}@{k} ↑ counted on the items with each value of {column} on {name}. ★ = best of its row.",
            [column, *(run.name for run in runs)],
            [[label, *_values(f"{metric}@{k}/{value}", runs)] for value, label in shown.items()],
        )
        for metric in OF_COLUMNS
        if any(f"{metric}@{k}/{value}" in run.metrics for run in runs for value in shown)
    }
    return {
        "column": column,
        "k": k,
        "shares": table(f"Share of the history and of the lists of {k} by {column} on {name}", heads, rows),
        "open": tables.pop("ndcg", None),
        "folded": list(tables.values()),
        "left_out": len(known) - len(shown),
    }


# ---------------------------------------------------------------------- winners and losers


def items(inputs: Inputs) -> Section:
    """Two tables per run: the items whose exposure changes most against another run, or against the log."""
    runs = [run for run in inputs.runs if run.method != "most-popular" or len(run.family.runs) == 1]
    tables = []
    for run in runs[:MOST_RUNS]:
        family, reference = run.family, run.family.reference(run)
        if reference is not None and reference.method != "most-popular" and run.method != "lightgcn":
            against, before_is, before = reference.name, reference.name, reference.exposure.astype(np.float64)
        else:
            against, before_is = "the log", "by their share of the log"
            before = family.counts * (run.exposure.sum() / max(family.counts.sum(), 1))
        group = np.where(family.popular, "popular", "niche")
        where = f"lists of {family.k} of {family.users_in_words}; before = {before_is}, after = {run.name}"
        sides = [
            moved_items(
                f"{side}: {where}",
                [(family.shown(i), family.counts[i], group[i], before[i], run.exposure[i]) for i in moved.tolist()],
            )
            for side, moved in zip(("Winners", "Losers"), most_moved(run.exposure - before, MOST_ITEMS), strict=True)
        ]
        tables.append((f"{run.name} against {against}", sides))
    return Section("items", "Winners and losers among items", "Items", render("items.html", tables=tables))


# ---------------------------------------------------------------------- users


def users(inputs: Inputs) -> Section:
    """Example users: their history and the lists they get, side by side."""
    shown = [
        (family.source.user_ids[int(family.users[row])], reason, _user_lists(family, row))
        for family in inputs.families
        if family.runs
        for row, reason in _examples(family)
    ]
    return Section("users", "Example users side by side", "Users", render("users.html", users=shown, most=SHOWN_ITEMS))


def _examples(family: Family) -> list[tuple[int, str]]:
    """Rows of users, and why: most gained, most lost, most changed, the middle one."""
    last, n_users = family.runs[-1], len(family.users)
    reference = family.reference(last)
    if reference is None:
        return [(row, "taken from the middle") for row in (n_users // 3, 2 * n_users // 3)]
    gain = last.hits.sum(axis=1) - reference.hits.sum(axis=1)
    kept = np.array([len(np.intersect1d(a, b)) for a, b in zip(last.lists, reference.lists, strict=True)])
    between = f"from {reference.name} to {last.name}"
    reasons = [
        (int(np.argmax(gain)), f"gains most test items {between}"),
        (int(np.argmin(gain)), f"loses most test items {between}"),
        (int(np.argmin(kept)), f"the list changes most {between}"),
        (n_users // 2, "taken from the middle, whatever happens there"),
    ]
    chosen: dict[int, str] = {}
    for row, reason in reasons if gain.any() else reasons[2:]:
        chosen.setdefault(row, reason)
    return list(chosen.items())


def _user_lists(family: Family, row: int) -> list[tuple[str, list[dict[str, Any]], bool]]:
    """The user's history, from most to least popular, then the list of each run."""
    train, user = family.runs[0].model.train, family.users[row]
    history = train.item[slice(*np.searchsorted(train.user, [user, user + 1]))]
    history = history[np.argsort(-family.counts[history], kind="stable")]
    spread = np.unique(np.linspace(0, len(history) - 1, min(SHOWN_HISTORY, len(history))).round().astype(int))
    title = f"history: {len(spread)} of {len(history)} items"
    lists = [(title, _listed(family, history[spread], [False] * len(spread)), False)]
    for run in family.runs[-SHOWN_RUNS:]:
        marks = run.hits[row].tolist()
        lists.append((f"{run.name}: {sum(marks)} ✓ in {family.k}", _listed(family, run.lists[row], marks), True))
    return lists


def _listed(family: Family, items: Ints, marks: Sequence[bool]) -> list[dict[str, Any]]:
    """The top of a list, and the test items further down."""
    return [
        {
            "shown": family.shown(int(item)),
            "hit": hit,
            "group": "popular" if family.popular[item] else "niche",
            "count": family.counts[item],
            "rank": rank,
        }
        for rank, (item, hit) in enumerate(zip(items, marks, strict=True), 1)
        if item >= 0 and (rank <= SHOWN_ITEMS or hit)
    ]
