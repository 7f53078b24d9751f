"""Sections on datasets and runs: the verdict, the long tail, exposure, metrics, groups of items, items that move."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np
from markupsafe import Markup

from dpaa.comparison import TrainingBudget, budget_warnings
from dpaa.evaluation.bias import most_moved
from dpaa.evaluation.dial_curve import BY_DEBIAS, DialCurve
from dpaa.evaluation.metrics import BETTER, METRICS, explain
from dpaa.methods.base import changed_params
from dpaa.ranking import RERANKERS
from dpaa.report._charts import POINTS, Chart, Dot, Line, line, popularity_line, scatter
from dpaa.report._html import Cell, Figure, Heads, Section, minus, number, render, signed, suffix, table
from dpaa.report._inputs import Family, Frontier, Inputs, Metrics, Point, Run
from dpaa.trace import Trace

LOG = "the log (past interactions)"
MOST_GROUPS, MOST_ITEMS, MOST_CAUTIONS = 40, 6, 2
ACCURACY, BIAS = "Accuracy", "Popularity bias"
TABLES = {
    ACCURACY: "recall ndcg hit precision mrr map recall/popular recall/niche ndcg/popular ndcg/niche",
    BIAS: "arp aplt coverage gini entropy head_share popularity_lift upd pop_reo pop_rsp",
    "Groups of users": "ndcg/niche-tastes ndcg/diverse-tastes ndcg/blockbuster-tastes ndcg/warm-users ndcg/cold-users",
}
"""Metrics of each table, as far as the runs have them."""
FORMS = {"arp": ",.1f", "aclt": ",.2f", "entropy": ",.2f"}
ARROWS = {"high": "↑", "low": "↓", "zero": "→0"}
TILES = {
    "recall@{}/niche": ("niche items found (recall)", ".1%"),
    "recall@{}/popular": ("popular items found (recall)", ".1%"),
    "ndcg@{}": ("accuracy (NDCG)", ".4f"),
    "arp@{}": ("mean popularity of recommended items", ",.0f"),
    "coverage@{}": ("items shown to at least one user", ".0%"),
}


def measured_alike(inputs: Inputs) -> list[list[Run]]:
    """Evaluated runs by dataset and protocol: only their numbers may stand in one table."""
    groups: dict[object, list[Run]] = {}
    for run in inputs.runs:
        if run.measured is not None:
            nothing: Any = dict.fromkeys(("overlapping", "cold_users", "popularity_dial", "rerank", "group_by"))
            protocol = replace(run.measured.protocol, **nothing)
            groups.setdefault((run.family.fingerprint, protocol), []).append(run)
    return list(groups.values())


def best_of(metric: str, values: Mapping[str, float]) -> set[str]:
    """The names with the best value, as shown with four digits; none where a metric is not known or all are alike."""
    known = explain(metric)
    if known is None or len(values) < 2:
        return set()
    merits = {name: known.merit(round(value, 4)) for name, value in values.items()}
    best = {name for name, merit in merits.items() if merit == max(merits.values())}
    return best if len(best) < len(values) else set()


# ---------------------------------------------------------------------- verdict


def summary(inputs: Inputs) -> Section:
    """The verdict of `dpaa debias`, else of the last run against its reference, else of the log; notes."""
    verdicts = [_frontier_verdict(frontier, inputs.runs) for frontier in inputs.of(Frontier)]
    pairs = [
        (run, other)
        for runs in measured_alike(inputs)
        for run in runs
        if run.method not in ("most-popular", "lightgcn") and (other := run.family.reference(run)) in runs
    ]
    if not verdicts and pairs:
        run, other = pairs[-1]
        tiles = _tiles(other.metrics, run.metrics, run.k)
        verdicts = [(f"{run.name} in place of {other.name}", "averages on one test split, see Metrics", tiles)]
    elif not verdicts and inputs.families:
        family = inputs.families[0]
        words = f"The top fifth of the items has {family.head_share:.0%} of the interactions of {family.name}"
        verdicts = [(words, "", [])]
    return Section("summary", "In short", "In short", render("summary.html", verdicts=verdicts, notes=inputs.notes))


def _frontier_verdict(frontier: Frontier, runs: Sequence[Run]) -> tuple[str, str, list[tuple[str, str, str, str]]]:
    base, chosen = frontier.base, frontier.chosen
    headline = f"{frontier.headline[:1].upper()}{frontier.headline[1:]}"
    if chosen.name == base.name:
        return headline, "; ".join(frontier.sentences[:1]), []
    held_out = frontier.held_out
    how = f"{_with_meaning(chosen)} in place of {base.name}, on {held_out.users:,} validation users"
    how += ", each excluded from the selection" if held_out.folds else ""
    before, after = ({key: v for key, v in m.items() if v is not None} for m in (held_out.base, held_out.chosen))
    plain = [run.metrics for run in runs if run.name == base.name and run.metrics]
    choices = [run.metrics for run in runs if run.name.endswith(f"({chosen.name})") and run.metrics]
    if plain and choices:  # both evaluated: what the call promised is beside what the test split says
        tested = _tiles(plain[0], choices[0], frontier.k)[:3]
        how += f". On the test split: {', '.join(f'{title} {values}' for title, _, values, _ in tested)}"
    users = f"users with a less accurate list; {held_out.better:.0%} get a more accurate one"
    mark = "worse" if held_out.worse > held_out.better else "better"
    return headline, how, [*_tiles(before, after, frontier.k), (users, "", f"{held_out.worse:.0%}", mark)]


def _with_meaning(point: Point) -> str:
    """`ease + fa-ir 0.4` with what the re-ranker in it does, for readers who know no names."""
    name, _, strength = point.name.removeprefix(f"{point.model} + ").rpartition(" ")
    if name not in RERANKERS.built_in:
        return point.name
    how = f"popularity dial {minus(strength)}" if name == "dial" else f"re-ranker {name}, strength {strength}"
    return f"{point.name} ({how}: {RERANKERS[name].title})"


def _tiles(before: Mapping[str, float], after: Mapping[str, float], k: int) -> list[tuple[str, str, str, str]]:
    """Tiles: what, by how much it changes, from and to which value, and `better`, `worse` or nothing."""
    tiles = []
    for pattern, (title, form) in TILES.items():
        metric = pattern.format(k)
        if metric in before and metric in after:
            old, new, known = before[metric], after[metric], explain(metric)
            gain = (new - old) * (-1 if known and known.better == "low" else 1)
            # No percentage of a base that is shown as nearly 0.
            change = "" if f"{old:{form}}".strip("0.%") == "" else signed(new / old - 1) if new <= 2 * old else ""
            better = "" if abs(gain) < 1e-12 else "better" if gain > 0 else "worse"
            tiles.append((title, change, f"{old:{form}} → {new:{form}}", better))
    return tiles


# ---------------------------------------------------------------------- data


def data(inputs: Inputs) -> Section:
    """How few items have most of the interactions."""
    drawn = [(family, _long_tail(family, suffix(index))) for index, family in enumerate(inputs.families)]
    content = render("data.html", drawn=drawn)
    return Section("data", "The data: a long tail", "Data", content, [figure for _, figure in drawn])


def _long_tail(family: Family, suffix: str) -> Figure:
    counts, n_popular = family.counts, int(family.popular.sum())
    n_niche = len(counts) - n_popular
    lines = [
        popularity_line(f"popular: {n_popular:,} items", counts, 1, last=n_popular),
        popularity_line(f"niche: {n_niche:,} items", counts, 0, first=max(n_popular, 1)),
    ]
    return Figure(
        f"long-tail{suffix}",
        f"The long tail of {family.name}",
        f"Interactions per item, most popular first, on logarithmic axes. {n_popular:,} popular items "
        f"have 80% of the interactions, {n_niche:,} niche items the rest.",
        line(lines, "item, most popular first", "interactions of the item", x_axis="log", y_axis="log"),
    )


# ---------------------------------------------------------------------- exposure


def exposure(inputs: Inputs) -> Section:
    """What share of the lists goes to rare and to popular items, against the log."""
    drawn = []
    for index, family in enumerate(family for family in inputs.families if family.runs):
        parts = [(LOG, family.counts, None), *((run.name, run.exposure, run.colour) for run in family.runs)]
        lines = [Line(name, range(1, 11), family.decile_shares(part), colour) for name, part, colour in parts]
        drawn.append((family, by_decile(f"exposure-by-popularity{suffix(index)}", lines, family.name)))
    content = render("exposure.html", drawn=drawn)
    return Section("exposure", "Exposure by popularity", "Exposure", content, [figure for _, figure in drawn])


def by_decile(name: str, lines: Sequence[Line], of: str) -> Figure:
    """Shares of exposure by popularity decile as lines, with their table."""
    rows = [[line.name, *(number(value, ".1%") for value in line.y)] for line in lines]
    last = "; ".join(f"{line.name} {line.y[-1]:.0%}" for line in lines[:12])
    axes = ("popularity decile (1 = rarest items, 10 = most popular)", "share of exposure")
    return Figure(
        name,
        f"Exposure by popularity on {of}",
        f"Share of exposure by popularity decile of the items. Most popular decile: {last}.",
        line(lines, *axes, x_axis="steps", y_axis="percent"),
        table("Share of exposure by popularity decile (1 = rarest)", ["share in", *map(str, range(1, 11))], rows),
    )


# ---------------------------------------------------------------------- metrics


def metrics(inputs: Inputs) -> Section:
    """Tables and a scatter plot for each group of runs that were measured alike."""
    groups, figures = [], []
    for index, runs in enumerate(measured_alike(inputs)):
        assert runs[0].measured is not None
        protocol, columns, figure = runs[0].measured.protocol, _columns(runs), _scatter(runs, suffix(index))
        on = f"on {runs[0].family.name}: lists of {runs[0].k}, overlap convention “{protocol.overlap}”."
        tables = [_metrics_table(f"{title} {on}", runs, names) for title, names in columns.items()]
        meanings = [(name, known) for names in columns.values() for name in names if (known := explain(name))]
        groups.append((tables, meanings, protocol, cautions(runs), figure))
        figures += [figure] if figure else []
    content = render("metrics.html", groups=groups, directions=BETTER)
    return Section("metrics", "Accuracy and popularity bias", "Metrics", content, figures)


def cautions(runs: Sequence[Run]) -> list[str]:
    """Sentences on unequal training budgets and trainings cut short."""
    return budget_warnings([(run.name, [TrainingBudget.of_model(run.model)]) for run in runs])[:MOST_CAUTIONS]


def _columns(runs: list[Run]) -> dict[str, list[str]]:
    """Metrics that a run has, by table; registered ones that no table names come last."""
    names = {title: columns.split() for title, columns in TABLES.items()}
    for metric in METRICS.values():
        names[ACCURACY if metric.kind == "accuracy" else BIAS] += [metric.name] * metric.on_page
    known = {name.replace(f"@{runs[0].k}", "", 1): name for run in runs for name in run.metrics}
    kept = {title: [known[name] for name in dict.fromkeys(each) if name in known] for title, each in names.items()}
    return {title: each for title, each in kept.items() if each}


def _metrics_table(caption: str, runs: list[Run], names: list[str]) -> Markup:
    heads: list[tuple[str, str]] = [("run", "the folder's name")]
    columns = [[Cell(run.name, note=f"method {run.method}, {run.path}") for run in runs]]
    for name in names:
        known, form = explain(name), FORMS.get(name.partition("@")[0], ",.4f")
        best = best_of(name, {run.name: run.metrics[name] for run in runs if name in run.metrics})
        heads.append((f"{name} {ARROWS[known.better]}", known.words) if known else (name, ""))
        columns.append([number(run.metrics.get(name), form, run.name in best) for run in runs])
    return table(f"{caption} ★ = best of its column.", heads, list(zip(*columns, strict=True)))


def _scatter(runs: list[Run], suffix: str) -> Figure | None:
    """Accuracy against bias, where two runs or more have the metrics."""
    x, y = f"arp@{runs[0].k}", f"ndcg@{runs[0].k}"
    dots = [
        Dot(run.name, run.colour, arp, ndcg, f"{run.name}: {x} {arp:.4g}, {y} {ndcg:.4g}")
        for run in runs
        if (arp := run.metrics.get(x)) is not None and (ndcg := run.metrics.get(y)) is not None
    ]
    if len(dots) < 2:
        return None
    description = f"Scatter plot of {'; '.join(dot.tip for dot in dots[:20])}."
    chart = scatter(dots, f"mean popularity of recommended items ({x})", f"accuracy ({y})")
    return Figure(f"accuracy-against-bias{suffix}", "Accuracy against popularity bias", description, chart)


# ---------------------------------------------------------------------- groups of items, items that move


def groups(inputs: Inputs) -> Section:
    """Share of history and lists by the values of the column that runs were evaluated by (`evaluate --group-by`)."""
    by_column: dict[tuple[str, str], list[tuple[str, dict[str, Metrics]]]] = {}
    for run in inputs.runs:
        if run.measured and run.measured.groups and (column := run.measured.protocol.group_by):
            # The shares of the lists have the length of the lists as their name.
            by_column.setdefault((column, str(run.k)), []).append((run.name, run.measured.groups))
    tables = [_group_table(column, k, runs) for (column, k), runs in by_column.items()]
    return Section("groups", "Groups of items", "Groups", render("groups.html", tables=tables))


def _group_table(column: str, k: str, runs: list[tuple[str, dict[str, Metrics]]]) -> Markup:
    known = runs[0][1]
    rows = [
        [
            value.removeprefix(f"{column}="),
            number(known[value].get("items"), ",.0f"),
            number(known[value].get("history"), ".1%"),
            *(number(groups.get(value, {}).get(k), ".1%") for _, groups in runs),
        ]
        for value in sorted(known, key=lambda value: -(known[value].get("history") or 0.0))[:MOST_GROUPS]
    ]
    heads: Heads = [column, "items", ("history", "share of the training interactions of the same users")]
    caption = f"Share of the history and of the lists of {k} by {column}"
    return table(caption, [*heads, *(name for name, _ in runs)], rows)


def items(inputs: Inputs) -> Section:
    """The items that gain and lose most in the last run that changes lists, against its reference or the log."""
    tables = []
    for family in (family for family in inputs.families if family.runs):
        pairs = [(run, family.reference(run)) for run in reversed(family.runs)]
        changed = (pair for pair in pairs if pair[1] is None or (pair[0].exposure != pair[1].exposure).any())
        run, reference = next(changed, pairs[0])
        log = family.counts * (run.exposure.sum() / max(family.counts.sum(), 1))
        before = log if reference is None else reference.exposure
        change = run.exposure - before
        rows = [
            [
                family.shown(i),
                *map(number, (before[i], run.exposure[i], change[i]), (",.0f", ",.0f", "+,.0f")),
                "popular" if family.popular[i] else "niche",
                number(family.counts[i], ",.0f"),
            ]
            for i in np.concatenate(most_moved(change, MOST_ITEMS)).tolist()
        ]
        against = "by their share of the log" if reference is None else reference.name
        caption = f"Lists of {family.k} that hold an item; before = {against}, after = {run.name}"
        heads: Heads = ["item", "before", "after", "change", "group", ("used", "interactions in training")]
        tables.append(table(caption, heads, rows))
    return Section("items", "Items that gain and lose most", "Items", render("items.html", tables=tables))


MOST_FIGURES = 6
DIAL_LINES = {
    "ndcg": "accuracy (NDCG@{})",
    "niche_recall": "recall of niche items",
    "coverage": "items shown to at least one user",
    "arp": "mean popularity (ARP)",
}
DECILES = "popularity decile (1 = rarest items, 10 = most popular)"


# ---------------------------------------------------------------------- popularity dial


def dial(inputs: Inputs) -> Section:
    """What the popularity dial does, for each run that measured it on validation."""
    curves = [(run.name, curve) for run in inputs.runs if (curve := run.model.dial_curve) is not None][:MOST_FIGURES]
    drawn = [(_dial(name, curve, suffix(index)), curve) for index, (name, curve) in enumerate(curves)]
    figures = [figure for figure, _ in drawn]
    return Section("dial", "The popularity dial", "Dial", render("dial.html", drawn=drawn), figures, folded=True)


def _dial(name: str, curve: DialCurve, suffix: str) -> Figure:
    points = sorted(curve.points, key=lambda point: point.kappa)
    lines = []
    for index, (field, title) in enumerate(DIAL_LINES.items()):
        values = [getattr(point, field) for point in points]
        largest = max((value for value in values if isfinite(value)), default=0.0)
        if largest > 0:
            shares = [value / largest if isfinite(value) else None for value in values]
            lines.append(Line(title.format(curve.k), [point.kappa for point in points], shares, index))
    marks = {curve.suggested: " (suggested)", curve.kappa: " (applied)"}
    rows = [
        [Cell(f"{point.kappa:g}{marks.get(point.kappa, '')}", point.kappa)]
        + [number(getattr(point, field)) for field in ("recall", *DIAL_LINES)]
        for point in points
    ]
    axes = ("popularity dial κ", "share of the highest value")
    return Figure(
        f"dial-curve{suffix}",
        f"{name}: effect of the popularity dial",
        f"Metrics over κ, each as a share of its own highest value; κ = {curve.kappa:g} is applied.",
        line(lines, *axes, x_axis="symlog", y_axis="percent", mark=curve.kappa),
        table(f"The dial of {name}, lists of {curve.k}", ["κ", "recall", *DIAL_LINES], rows),
    )


# ---------------------------------------------------------------------- training


def training(inputs: Inputs) -> Section:
    """Validation accuracy and loss over the epochs."""
    charts: dict[str, tuple[str, Callable[[dict[str, Any]], float | None]]] = {
        "training-accuracy": ("validation recall@20", lambda epoch: epoch["valid"].get("recall@20")),
        "training-loss": ("training loss", lambda epoch: epoch["loss"]),
    }
    runs, figures = [run for run in inputs.runs if run.history], {}
    for name, (y, value) in charts.items():
        lines = []
        for run in runs:
            points = [(epoch["epoch"], value(epoch)) for epoch in run.history if value(epoch) is not None]
            thinned = [*points[: -1 : max(1, -(-len(points) // POINTS))], *points[-1:]]
            if thinned:
                lines.append(Line(run.name, [x for x, _ in thinned], [y for _, y in thinned], run.colour))
        if lines:
            chart = line(lines, "epoch", y, x_axis="steps")
            figures[name] = Figure(name, f"{y} by epoch", f"{y} of each run over the epochs of training.", chart)
    content = render("training.html", figures=figures, runs=runs)
    return Section("training", "Training", "Training", content, list(figures.values()), folded=True)


# ---------------------------------------------------------------------- message weights


def trace_figures(trace: Trace) -> dict[str, Chart]:
    """Draw a trace: message weights, inverse interaction weights, and β where the history has it.

    Parameters
    ----------
    trace : of one run

    Returns
    -------
    name of a figure → chart
    """
    weights = {f"layer {weight.layer} → {weight.layer + 1}": weight.relative for weight in trace.weights}
    premises = {f"{p.where}, {p.vectors}": p.iiw for p in trace.premises}
    charts = {}
    for name, series, y in (
        ("relative-weights", weights, "message weight, relative to LightGCN's"),
        ("inverse-interaction-weights", premises, "mean of 1 − cos(eᵤ, eᵢ) over edges"),
    ):
        lines = [Line(label, range(1, 11), values, index) for index, (label, values) in enumerate(series.items())]
        charts[name] = line(lines, DECILES, y, x_axis="steps")
    share = [(epoch["epoch"], value) for epoch in trace.epochs if (value := epoch.get("pretrained_share")) is not None]
    if share:
        beta = Line("β, pre-trained share", [epoch for epoch, _ in share], [value for _, value in share], 0)
        charts["pretrained-share"] = line([beta], "epoch", beta.name, x_axis="steps")
    return charts


# ---------------------------------------------------------------------- provenance


def provenance(inputs: Inputs) -> Section:
    """The commands, versions and hyperparameters behind each number."""
    rows = [
        [
            run.name,
            run.method,
            number(run.model.method.seed, "d"),
            number(len(run.history) or None, ",d"),
            *(run.model.manifest.get(name, "–") for name in ("seconds", "finished", "versions")),
        ]
        for run in inputs.runs
    ]
    runs = table("Runs", ["run", "method", "random seed", "epochs", "seconds", "trained", "versions"], rows)
    commands = [(run.name, "\n".join(commands_of(run)), run.model.method.get_params()) for run in inputs.runs]
    content = render("provenance.html", families=inputs.families, runs=runs, commands=commands)
    return Section("provenance", "Provenance: commands and versions", "Provenance", content, folded=True)


def commands_of(run: Run) -> list[str]:
    """The `dpaa train` and `dpaa evaluate` that make a run and its metrics."""
    train = ["dpaa", "train", run.model.trained_on.path or "DATASET", "--method", run.method]
    for name, value in changed_params(run.model.method).items():
        if name != "seed":
            train += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    train += ["--seed", str(run.model.method.seed)]
    train += ["--pretrained", run.model.pretrained_run] if run.model.pretrained_run else []
    if kept := run.model.reranker():
        train += ["--rerank", kept.in_words()]
    commands = [[*train, "--out", str(run.path)]]
    if run.measured is not None:
        protocol, curve = run.measured.protocol, run.model.dial_curve
        evaluate = ["dpaa", "evaluate", str(run.path), *(word for k in protocol.k for word in ("--k", str(k)))]
        evaluate += ["--overlap", protocol.overlap]
        if curve is not None and curve.chosen_for not in (None, BY_DEBIAS):  # `dpaa debias` has no objective
            evaluate += ["--popularity-dial", str(curve.chosen_for)]
        commands.append(evaluate + ["--mask-valid"] * protocol.mask_valid)
    return [shlex.join(words) for words in commands]
