"""The paper's experiments, a chapter each: tables and figures from stored or new trainings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from dpaa._text import counted
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import OVERLAPS
from dpaa.methods import find_method
from dpaa.methods.graph_method import GraphMethod
from dpaa.report import Chart, Figure, Theme, altair, by_name, minus, styled
from dpaa.reproduction import _paper as paper
from dpaa.reproduction._plan import Plan
from dpaa.reproduction._results import RunResult
from dpaa.reproduction._sources import TITLES
from dpaa.reproduction._tables import Cell, Chapter, Column, Row, Rows, Table, improvements, measured
from dpaa.reproduction._trainings import failures, known_settings

LEGEND = (
    "Bold: best of a column; underlined: second best (on the screen ★ and ☆); ± deviation over seeds; "
    "below: the paper's number, difference."
)
RECALL = "recall@20"
SEVERITY_METRICS = (RECALL, "ndcg@20", "hit@20", "recall@20/popular", "recall@20/niche", "arp@20")
BASE = "lightgcn"
PRESETS = ("dpaa", "dpaa-as-printed")
"""The two interpretations of the paper's equation."""
SYMBOLS = {"half_trust_shift": "C", "layer_emphasis": "η", "initial_residual": "δ"}
WHOLE: dict[str, Any] = {"iiw": True, "estimate": "blend", "weighted_layers": "first"}
VARIANTS: dict[str, dict[str, Any]] = {
    "DPAA": {},
    "γ0": {"weighted_layers": "all"},
    "w/o c": {"estimate": "pretrained"},
    "γ0 w/o c": {"weighted_layers": "all", "estimate": "pretrained"},
    "w/o m": {"estimate": "current"},
    "γ0 w/o m": {"weighted_layers": "all", "estimate": "current"},
    "w/o IIW": {"iiw": False},
    "w/o LW": {"layer_emphasis": 0.0},
}
"""Variants of the paper's ablation as hyperparameters."""
ALL = "all"


def chapters(name: str, plan: Plan) -> Iterator[Chapter]:
    """Make one chapter, or all that the user's data allow, each as soon as it is trained.

    Parameters
    ----------
    name : one of `CHAPTERS`, or `ALL`
    plan : budget, data and runner

    Returns
    -------
    the chapters, lazily: asking for the next one trains it
    """
    if name != ALL and name not in CHAPTERS:
        raise InputError(f"there is no table {name!r}; use one of {', '.join([*CHAPTERS, ALL])}")
    if not any(plan.sources.folder(data) for data in TITLES):
        raise InputError("there is no data to run on; name a folder with --coat, --yahoo-r3 or --kuairec")
    plan.check()
    for chapter in CHAPTERS if name == ALL else [name]:
        if name == ALL and chapter in ("overall", "groups") and not plan.real:
            plan.runner.say(f"{chapter} is left out: there is no real dataset (--coat, --yahoo-r3, --kuairec)")
        elif name == ALL and chapter in ("severity", "ablation") and plan.sources.kuairec is None:
            plan.runner.say(f"{chapter} is left out: severity data are made from KuaiRec's small matrix (--kuairec)")
        else:
            yield CHAPTERS[chapter](plan)


# ---------------------------------------------------------------------- datasets


def _datasets(plan: Plan) -> Chapter:
    """Sizes of the real datasets beside the paper's."""
    rows = []
    for name, data in plan.real.items():
        counts = _counts(len(data.train), len(data.valid), len(data.test), len(data.overlap("train", "test")))
        total = sum(cell.mean for cell in counts[:3])
        ours = (data.n_users, data.n_items, total, total / (data.n_users * data.n_items))
        compared = zip(ours, paper.DATASETS[name], (",.0f", ",.0f", ",.0f", ".5f"), strict=True)
        sizes = [Cell((float(own),), theirs, form) for own, theirs, form in compared]
        rows.append((TITLES[name], (*sizes, *counts)))
    columns = ("users", "items", "interactions", "density", "train", "valid", "test", "in train and test")
    table = Table("sizes", "Datasets, ours and the paper's", "dataset", columns, tuple(rows))
    about = "Interactions are positives of training, validation and test; density = interactions / (users × items)."
    return Chapter("datasets", "Datasets", (about,), (table,), missing=tuple(plan.sources.missing(plan.real)))


def _counts(*numbers: int) -> list[Cell]:
    return [Cell((float(number),), form=",.0f") for number in numbers]


# ---------------------------------------------------------------------- real data with unbiased tests


def _overall(plan: Plan) -> Chapter:
    """All methods on the real datasets."""
    metrics = (*paper.OVERALL_METRICS, "recall@20/popular", "recall@20/niche", "arp@20", "coverage@20")
    return _real_chapter(plan, "overall", "Overall performance", metrics, paper.OVERALL_METRICS, paper.OVERALL)


def _groups(plan: Plan) -> Chapter:
    """The same trainings by popular and niche items."""
    about = (
        "Popular items are the fewest that have 80% of the training pairs; the ranking is over all items, and only "
        "what counts as relevant is restricted to the group."
    )
    metrics = (*paper.GROUP_METRICS, "aplt@20", "arp@20")
    title = "Popular and niche items"
    return _real_chapter(plan, "groups", title, metrics, paper.GROUP_METRICS, paper.GROUPS, about)


def _real_chapter(
    plan: Plan,
    name: str,
    title: str,
    metrics: Sequence[str],
    compared: Sequence[str],
    printed: Mapping[str, Mapping[str, Sequence[float]]],
    *about: str,
) -> Chapter:
    """A table per dataset and overlap convention, and DPAA against LightGCN.

    `printed`: dataset → method → the paper's values of the metrics `compared`.
    """
    if not plan.real:
        raise InputError("there is nothing to run on: " + "; ".join(plan.sources.missing({})))
    tables = []
    for data, dataset in plan.real.items():
        overlapping = len(dataset.overlap("train", "test")) > 0  # else the conventions are one
        differences = []
        for overlap in OVERLAPS if overlapping else ("drop",):
            theirs: dict[str, dict[str, float]] = {metric: {} for metric in metrics}
            for method, values in printed[data].items():
                for metric, value in zip(compared, values, strict=True):
                    theirs[metric][method] = value
            columns = [Column(metric, data, metric, overlap, theirs[metric]) for metric in metrics]
            named = f"overlap convention `{overlap}`" if overlapping else "no test pair is a training pair"
            cells = measured(plan.real_results, _rows(plan), columns)
            corner = f"method ({counted(len(plan.seeds(data)), 'seed', 'seeds')})"
            footer = improvements(cells, columns)
            titles = tuple(metrics)
            tables.append(Table(f"{data}-{overlap}", f"{TITLES[data]}, {named}", corner, titles, cells, footer))
            differences += [Column(f"{one.metric} {overlap}", data, one.metric, overlap) for one in columns[:2]]
        tables += _differences(f"{data}-differences", TITLES[data], plan.real_results, differences, "on the same data")
    missing = (*plan.sources.missing(plan.real), *plan.left_out.values(), *failures(plan.real_results))
    return Chapter(name, title, (plan.description(), *about, LEGEND), tuple(tables), missing=missing)


def _rows(plan: Plan) -> list[Row]:
    return [Row(label, label, paper.row_of(label)) for label in plan.rows]


def _differences(
    name: str, where: str, results: Sequence[RunResult], columns: Sequence[Column], whose: str
) -> list[Table]:
    """DPAA's rows minus LightGCN, paired by seed; nothing for a single seed."""
    rows, seeds = [], 0
    for label in PRESETS:
        paired = [_paired(results, label, column) for column in columns]
        seeds = max(seeds, *map(len, paired))
        rows.append((f"{label} − {BASE}", tuple(Cell(text=interval_text(values)) for values in paired)))
    if seeds < 2:
        return []
    title = f"{where}: DPAA against LightGCN, {counted(seeds, 'seed', 'seeds')} {whose}"
    note = "Mean of the paired differences and its 95% interval (Student's t); *: 0 is not in it."
    return [Table(name, title, "difference", tuple(one.title for one in columns), tuple(rows), notes=(note,))]


def _paired(results: Sequence[RunResult], label: str, column: Column) -> list[float]:
    """Differences to LightGCN, seed by seed."""
    on_data = [one for one in results if one.data == column.data]
    values = {(one.label, one.seed): one.value(column.metric, column.overlap) for one in on_data}
    pairs = [(value, values.get((BASE, seed))) for (row, seed), value in sorted(values.items()) if row == label]
    return [own - base for own, base in pairs if own is not None and base is not None]


def interval_text(differences: Sequence[float]) -> str:
    """`+0.0021 [+0.0007, +0.0035] *`: the mean with Student's 95% interval, and a star if that excludes 0."""
    if not differences:
        return "–"
    mean, n = float(np.mean(differences)), len(differences)
    if n < 2:
        return minus(f"{mean:+.4f}")
    half = float(stats.t.ppf(0.975, n - 1) * np.std(differences, ddof=1) / math.sqrt(n))
    return minus(f"{mean:+.4f} [{mean - half:+.4f}, {mean + half:+.4f}]" + (" *" if abs(mean) > half else ""))


# ---------------------------------------------------------------------- growing severity


def _severity(plan: Plan) -> Chapter:
    """All methods on KuaiRec's full exposure, biased with a severity."""
    results, rows = plan.severity_results, _rows(plan)
    first, *others = _severity_tables(plan, "", "", results, rows, plan.severities, paper.SEVERITY)
    whose = "of training on the same data" if plan.budget.one_draw else "that draw the data too"
    columns = _columns(plan.severities, RECALL)
    differences = _differences("differences", f"{RECALL} by severity", results, columns, whose)
    drawn = "A seed draws the data, too: most of the deviation is the data's, which all rows share."
    about = (
        plan.description(),
        "Training pairs are drawn from KuaiRec's fully observed matrix with P ∝ rank^(−s); validation and test are "
        "unbiased. Overlap convention `drop` (no test pair is a training pair, so the conventions are one).",
        f"{LEGEND} {'Seeds are of training alone.' if plan.budget.one_draw else drawn}",
    )
    figure = _curves(
        "severity",
        "Recall@20 as the bias grows",
        "To the right the training log shows less and less besides the most popular items. Thick: DPAA, LightGCN and "
        "most-popular; the shade is one deviation over seeds.",
        plan.severities,
        first.rows,
        main=[row.name for row in rows if row.name.split()[0] in ("most-popular", BASE, *PRESETS)],
    )
    missing = (*plan.left_out.values(), *failures(results))
    return Chapter("severity", "Growing bias severity", about, (first, *differences, *others), (figure,), missing)


def _ablation(plan: Plan) -> Chapter:
    """Variants of DPAA over severities, for both interpretations of the paper."""
    printed_levels = plan.given_severities or plan.budget.as_printed_severities
    levels = {preset: [s for s in plan.severities if preset == "dpaa" or s in printed_levels] for preset in PRESETS}
    specs = [
        plan.severity_spec(preset, f"{preset}: {variant}", severity, seed, WHOLE | change)
        for preset in PRESETS
        for severity in levels[preset]
        for variant, change in VARIANTS.items()
        for seed in plan.seeds()
    ]
    results = plan.runner.run(specs, "severity")
    tables, figures = [], []
    for preset in [preset for preset in PRESETS if levels[preset]]:
        rows = [Row(variant, f"{preset}: {variant}", variant) for variant in VARIANTS]
        of_preset = _severity_tables(
            plan, f"{preset} ", f"Ablation of {preset}: ", results, rows, levels[preset], paper.ABLATION
        )
        explanation = (
            "A variant below the line of DPAA lacks a part that helped; the shade is one deviation over seeds."
        )
        title = f"What the parts of {preset} do"
        figures.append(
            _curves(f"ablation-{preset}", title, explanation, levels[preset], of_preset[0].rows, main=["DPAA"])
        )
        tables += of_preset
    about = (
        plan.description(),
        "γ0 weights the messages of all layers; w/o c, w/o m: without the current, the pre-trained estimate; w/o IIW: "
        "no interaction weights; w/o LW: all layers alike. Overlap convention `drop`. Variants keep the "
        "hyperparameters of the whole method.",
        LEGEND,
        "The paper's columns w/o IIW and w/o LW are equal to four digits at s = 5, 7, 8 and 9, and its DPAA column "
        "differs from its own severity table.",
    )
    return Chapter("ablation", "Ablation", about, tuple(tables), tuple(figures), tuple(failures(results)))


def _severity_tables(
    plan: Plan,
    name: str,
    title: str,
    results: Sequence[RunResult],
    rows: Sequence[Row],
    severities: Sequence[float],
    printed: dict[str, list[float]],
) -> list[Table]:
    """A table of rows by severities for each metric, recall first; the paper has recall only."""
    tables = []
    for metric in SEVERITY_METRICS:
        columns = _columns(severities, metric, printed if metric == RECALL else {})
        cells = measured(results, rows, columns)
        table = Table(
            f"{name}{metric}",
            f"{title}{metric} by severity, overlap convention `drop`",
            f"row ({counted(len(plan.seeds()), 'seed', 'seeds')})",
            tuple(column.title for column in columns),
            cells,
            improvements(cells, columns) if metric in (RECALL, "ndcg@20") else (),
            _agreement(columns, cells) if metric == RECALL else (),
            on_screen=metric == RECALL,
        )
        tables.append(table)
    return tables


def _columns(severities: Sequence[float], metric: str, printed: dict[str, list[float]] | None = None) -> list[Column]:
    return [Column(f"s = {s:g}", f"s={s:g}", metric, "drop", paper.at_severity(printed or {}, s)) for s in severities]


def _agreement(columns: Sequence[Column], rows: Rows) -> tuple[str, ...]:
    """Spearman's ρ between our order of the methods and the paper's, for each interpretation of DPAA."""
    notes = []
    for preset in PRESETS:
        compared = [cells for label, cells in rows if label == preset or label in paper.BASELINES]
        if preset not in dict(rows) or len(compared) < 3:
            continue
        values = []
        for index, column in enumerate(columns):
            known = [cells[index] for cells in compared if cells[index].values and cells[index].paper is not None]
            ours, theirs = [cell.mean for cell in known], [cell.paper or 0.0 for cell in known]
            if len(set(ours)) > 1:  # without an order there is no correlation
                values.append(f"{stats.spearmanr(ours, theirs).statistic:.2f} at {column.title}")
        whose = f"Spearman's ρ over {len(compared)} methods, {preset} as DPAA"
        notes += [f"Rank agreement with the paper ({whose}): {', '.join(values)}."] if values else []
    return tuple(notes)


# ---------------------------------------------------------------------- hyperparameters


def _settings(plan: Plan) -> Chapter:
    """The hyperparameters of every row on each real dataset and tuned severity, DPAA's beside the paper's."""
    tables = [_settings_table(plan, name, TITLES[name], plan.runner.prepared(d, name)) for name, d in plan.real.items()]
    if plan.sources.kuairec is not None:
        levels = {plan.budget.tuned_severity(severity) for severity in plan.severities}
        for level in sorted(one for one in levels if one is not None) or plan.severities[:1]:
            title = f"KuaiRec, severity {level:g}" if plan.budget.tuning else "KuaiRec, every severity"
            tables.append(_settings_table(plan, f"s={level:g}", title, plan.severity_folder(level)))
    how = "Nothing is tuned in this budget: these are the methods' defaults and what the rows set."
    if plan.budget.tuning is not None:
        how = "Chosen by validation recall@20; the test split was not opened. Every trial is stored with them."
    missing = (*plan.sources.missing(plan.real), *plan.left_out.values())
    return Chapter("settings", "Best hyperparameters", (plan.description(), how), tuple(tables), missing=missing)


def _settings_table(plan: Plan, data: str, title: str, folder: Path) -> Table:
    printed = paper.BEST_SETTINGS.get(data, paper.BEST_SETTINGS["kuairec"])
    theirs = ", ".join(f"{symbol} {value:g}" for symbol, value in zip(SYMBOLS.values(), printed, strict=True))
    hidden = {*GraphMethod.hyperparameters.model_fields} - {"learning_rate", "l2"}
    rows = []
    for label in plan.rows:
        method, settings = plan.settings_of(label, data, folder)
        every = known_settings(plan.common(data), method) | settings
        values = find_method(method)(**every).get_params(hidden)
        numbers = {name: f"{value:g}" if isinstance(value, float) else value for name, value in values.items()}
        shown = [f"{SYMBOLS.get(name, name)} {value}" for name, value in numbers.items() if value is not None]
        study = plan.study(label, data, folder) if plan.is_tuned(label) else None
        chosen = (Cell((study.valid,)), *_counts(study.trials)) if study else (Cell(), Cell())
        beside = Cell(text=theirs if paper.row_of(label) == "dpaa" else "")
        rows.append((label, (Cell(text=", ".join(shown) or "none"), beside, *chosen)))
    columns = ("hyperparameters", "the paper's", "validation recall@20", "trials")
    return Table(f"settings {data}", f"Hyperparameters on {title}", "method", columns, tuple(rows))


CHAPTERS: dict[str, Callable[[Plan], Chapter]] = {
    "datasets": _datasets,
    "overall": _overall,
    "groups": _groups,
    "severity": _severity,
    "ablation": _ablation,
    "settings": _settings,
}


# ---------------------------------------------------------------------- figures


def _curves(
    name: str, title: str, explanation: str, severities: Sequence[float], rows: Rows, main: Sequence[str]
) -> Figure:
    """Recall@20 over severity: our rows with a band of one deviation, then the paper's on the same scale."""
    points = []
    for label, cells in rows:
        for severity, cell in zip(severities, cells, strict=True):
            spread = cell.deviation if len(cell.values) > 1 else 0.0
            points += [(label, "ours", severity, cell.mean, spread)] if cell.values else []
            points += [(label, "the paper", severity, cell.paper, 0.0)] if cell.paper is not None else []
    schema = {"name": pl.String, "panel": pl.String, "severity": pl.Float64, "recall": pl.Float64, "spread": pl.Float64}
    table = pl.DataFrame(points, schema=schema, orient="row").with_columns(
        low=(pl.col("recall") - pl.col("spread")).clip(0),
        high=pl.col("recall") + pl.col("spread"),
        main=pl.col("name").is_in(list(main)),
    )
    description = "A line per row: recall@20 of the unbiased test over the severity of the bias, ours and the paper's."
    return Figure(name, title, description, partial(_draw, table), reading=explanation)


def _draw(table: pl.DataFrame, theme: Theme) -> Chart:
    """A panel each for ours and the paper's; a row has the same colour and dash in both."""
    alt = altair()
    names = list(table.sort("main", descending=True, maintain_order=True)["name"].unique(maintain_order=True))
    cycles = [index // len(theme.palette) for index in range(len(names))]  # beyond the palette: another dash
    columns = max(1, int(theme.width // (7.2 * max(map(len, names), default=0) + 60)))
    lines = {"symbolType": "stroke", "symbolSize": 300, "symbolOpacity": 1}
    legend = alt.Legend(orient="bottom", columns=columns, labelLimit=0, **lines)
    colour = by_name("Color", "name", names, [theme.colour(index) for index in range(len(names))], legend)
    dash = by_name("StrokeDash", "name", names, [([1, 0], [5, 3], [2, 2])[cycle % 3] for cycle in cycles], legend)

    def thick(main: float, other: float) -> Any:
        return alt.condition("datum.main", alt.value(main), alt.value(other))

    axis = alt.Axis(values=sorted(set(table["severity"])), format="~g", grid=False)
    x = alt.X("severity:Q", title="severity of the bias", axis=axis, scale=alt.Scale(nice=False, padding=8))
    base = alt.Chart(table).encode(x=x, y=alt.Y("recall:Q", title=RECALL, axis=alt.Axis(format=".2f")), color=colour)
    band = base.transform_filter("datum.main").mark_area(opacity=0.16).encode(y="low:Q", y2="high:Q")
    lines = base.mark_line().encode(strokeWidth=thick(3.2, 1.2), strokeDash=dash)
    dots = base.mark_point(filled=True, opacity=1).encode(size=thick(54, 16))
    across = 1 if theme.narrow else max(1, table["panel"].n_unique())
    panel = alt.layer(band, lines, dots).properties(width=(theme.width - 80) // across - 14, height=theme.height - 90)
    by_origin = alt.Facet("panel:N", title=None, sort=["ours", "the paper"])
    return styled(panel.facet(by_origin, columns=across), theme, padding=6)
