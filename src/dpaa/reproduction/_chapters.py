"""The paper's experiments, a chapter each: tables and figures from stored or new trainings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpaa.errors import InputError
from dpaa.evaluation.evaluator import OVERLAPS
from dpaa.methods import find_method
from dpaa.methods._options import known
from dpaa.methods.graph_method import PAPER_TRAINING, GraphMethod
from dpaa.reproduction import _paper as paper
from dpaa.reproduction._plan import TITLES, Plan
from dpaa.reproduction._results import RunResult
from dpaa.reproduction._tables import Cell, Chapter, Column, Rows, Table, improvements, measured

Printed = Mapping[str, Mapping[str, Sequence[float]]]
"""Dataset → method → the paper's values."""
LEGEND = "★ best of a column, ☆ second best; ± deviation over seeds; below: the paper's number, difference."
RECALL = "recall@20"
SEVERITY_METRICS = (RECALL, "ndcg@20", "hit@20", "recall@20/popular", "recall@20/niche", "arp@20")
SYMBOLS = {"half_trust_shift": "C", "layer_emphasis": "η", "initial_residual": "δ"}
WHOLE: dict[str, Any] = {"iiw": True, "estimate": "blend", "first_layer_only": 1.0}
VARIANTS: dict[str, dict[str, Any]] = {
    "DPAA": {},
    "γ0": {"first_layer_only": 0.0},
    "w/o c": {"estimate": "pretrained"},
    "γ0 w/o c": {"first_layer_only": 0.0, "estimate": "pretrained"},
    "w/o m": {"estimate": "current"},
    "γ0 w/o m": {"first_layer_only": 0.0, "estimate": "current"},
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
    plan : budget, data and results

    Returns
    -------
    the chapters, lazily: asking for the next one trains it
    """
    if name != ALL and name not in CHAPTERS:
        known = [*("hyperparameters" if chapter == "settings" else chapter for chapter in CHAPTERS), ALL, "field"]
        raise InputError(f"there is no table {name!r}; use one of {', '.join(known)}")
    if not plan.folders:
        raise InputError("there is no data to run on; name a folder with --data coat=DIR, yahoo-r3=DIR or kuairec=DIR")
    plan.rows  # noqa: B018  # unknown methods are refused before anything is computed
    for chapter in CHAPTERS if name == ALL else [name]:
        needs_real, needs_kuairec = chapter in ("overall", "groups"), chapter in ("severity", "ablation")
        if name == ALL and ((needs_real and not plan.real) or (needs_kuairec and "kuairec" not in plan.folders)):
            plan.say(f"{chapter} is left out: its data are not there")
        else:
            yield CHAPTERS[chapter](plan)


def _datasets(plan: Plan) -> Chapter:
    """Sizes of the real datasets beside the paper's."""
    rows = []
    for name, data in plan.real.items():
        splits = [len(data.train), len(data.valid), len(data.test)]
        sizes = (data.n_users, data.n_items, sum(splits), sum(splits) / (data.n_users * data.n_items))
        compared = zip(sizes, paper.DATASETS[name], (",.0f", ",.0f", ",.0f", ".5f"), strict=True)
        cells = [Cell((float(own),), theirs, form) for own, theirs, form in compared]
        cells += [Cell((float(n),), form=",.0f") for n in (*splits, len(data.overlap("train", "test")))]
        rows.append((TITLES[name], cells))
    columns = ("users", "items", "interactions", "density", "train", "valid", "test", "in train and test")
    table = Table("sizes", "Datasets, ours and the paper's", "dataset", columns, rows)
    about = "Interactions are positives of training, validation and test; density = interactions / (users × items)."
    return Chapter("datasets", "Datasets", (about,), (table,), missing=plan.missing)


# ---------------------------------------------------------------------- real data with unbiased tests


def _overall(plan: Plan) -> Chapter:
    """Compare all methods on the real datasets."""
    others = ("recall@20/popular", "recall@20/niche", "arp@20", "coverage@20")
    return _real_chapter(plan, "overall", "Overall performance", paper.OVERALL_METRICS, paper.OVERALL, others)


def _groups(plan: Plan) -> Chapter:
    """Compare the same trainings by popular and niche items."""
    about = (
        "Popular items are the fewest that have 80% of the training pairs; the ranking is over all items, and only "
        "what counts as relevant is restricted to the group."
    )
    others = ("aplt@20", "arp@20")
    return _real_chapter(plan, "groups", "Popular and niche items", paper.GROUP_METRICS, paper.GROUPS, others, about)


def _real_chapter(
    plan: Plan, name: str, title: str, compared: Sequence[str], printed: Printed, others: Sequence[str], *about: str
) -> Chapter:
    """A table per dataset and overlap convention; `printed` has the paper's values of `compared`."""
    if not plan.real:
        raise InputError("there is nothing to run on: " + "; ".join(plan.missing))
    tables, metrics = [], (*compared, *others)
    for data, dataset in plan.real.items():
        overlapping = len(dataset.overlap("train", "test")) > 0  # else the conventions are one
        theirs = {
            metric: {method: values[index] for method, values in printed[data].items()}
            for index, metric in enumerate(compared)
        }
        for overlap in OVERLAPS if overlapping else ("drop",):
            columns = [Column(metric, data, metric, overlap, theirs.get(metric, {})) for metric in metrics]
            heading = f"{TITLES[data]}, overlap convention `{overlap}`"
            rows = measured(plan.real_results, {row: row for row in plan.rows}, columns)
            rows += improvements(rows, columns)
            corner = f"method (seeds: {len(plan.seeds(data))})"
            tables.append(Table(f"{data}-{overlap}", heading, corner, metrics, rows))
    return Chapter(name, title, (*about, LEGEND), tables, missing=[*plan.missing, *_failures(plan.real_results)])


def _failures(results: Sequence[RunResult]) -> list[str]:
    failed = [(result, result.details["failed"]) for result in results if "failed" in result.details]
    return [f"{one.data} {one.label} seed {one.seed}: {why}" for one, why in failed]


# ---------------------------------------------------------------------- growing severity


def _severity(plan: Plan) -> Chapter:
    """All methods on KuaiRec's full exposure, biased with a severity."""
    results = plan.severity_results
    tables = _severity_tables(plan, "", "", results, {row: row for row in plan.rows}, plan.severities, paper.SEVERITY)
    drawn = "Seeds are of training alone." if plan.budget.one_draw else "A seed draws the data, too."
    about = (
        "Training pairs are drawn from KuaiRec's fully observed matrix with P ∝ rank^(−s); validation and test are "
        "unbiased. Overlap convention `drop` (no test pair is a training pair, so the conventions are one).",
        f"{LEGEND} {drawn}",
    )
    figures = {"severity": (plan.severities, tables[0].rows)}
    return Chapter("severity", "Growing bias severity", about, tables, figures, _failures(results))


def _ablation(plan: Plan) -> Chapter:
    """Variants of DPAA over severities, for every interpretation of the paper."""
    some = plan.given_severities or plan.budget.preset_severities
    levels = {preset: [s for s in plan.severities if preset == "dpaa" or s in some] for preset in paper.PRESETS}
    specs = [
        plan.severity_spec(preset, f"{preset}: {variant}", severity, seed, WHOLE | change)
        for preset in paper.PRESETS
        for severity in levels[preset]
        for variant, change in VARIANTS.items()
        for seed in plan.seeds()
    ]
    results = plan.run(specs, "severity")
    tables: list[Table] = []
    drawn: dict[str, tuple[Sequence[float], Rows]] = {}
    for preset in [preset for preset in paper.PRESETS if levels[preset]]:
        labels, title = {variant: f"{preset}: {variant}" for variant in VARIANTS}, f"Ablation of {preset}: "
        of_preset = _severity_tables(plan, f"{preset} ", title, results, labels, levels[preset], paper.ABLATION)
        drawn[f"ablation-{preset}"] = (levels[preset], of_preset[0].rows)
        tables += of_preset
    about = (
        "γ0 weights the messages of all layers; w/o c, w/o m: without the current, the pre-trained estimate; w/o IIW: "
        "no interaction weights; w/o LW: all layers alike. Overlap convention `drop`. Variants keep the "
        "hyperparameters of the whole method.",
        LEGEND,
    )
    return Chapter("ablation", "Ablation", about, tables, drawn, _failures(results))


def _severity_tables(
    plan: Plan,
    name: str,
    title: str,
    results: Sequence[RunResult],
    labels: Mapping[str, str],
    severities: Sequence[float],
    printed: dict[str, list[float]],
) -> list[Table]:
    """A table of rows by severities for each metric, recall first; the paper has recall only."""
    tables = []
    for metric in SEVERITY_METRICS:
        theirs = printed if metric == RECALL else {}
        columns = [Column(f"s = {s:g}", f"s={s:g}", metric, "drop", paper.at_severity(theirs, s)) for s in severities]
        rows = measured(results, labels, columns)
        rows += improvements(rows, columns) if metric in (RECALL, "ndcg@20") else []
        heading, corner = f"{title}{metric} by severity", f"row (seeds: {len(plan.seeds())})"
        headings = [column.title for column in columns]
        tables.append(Table(f"{name}{metric}", heading, corner, headings, rows, on_screen=metric == RECALL))
    return tables


# ---------------------------------------------------------------------- hyperparameters


def _hyperparameters(plan: Plan) -> Chapter:
    """The hyperparameters of every row on each real dataset and tuned severity, DPAA's beside the paper's."""
    where = [(name, TITLES[name], plan.prepared(data, name)) for name, data in plan.real.items()]
    if "kuairec" in plan.folders:
        tuned = [level for level in map(plan.tuned_severity, plan.severities) if level is not None]
        levels = sorted(set(tuned)) or plan.severities[:1]
        where += [(f"s={level:g}", f"KuaiRec, severity {level:g}", plan.severity_folder(level)) for level in levels]
    tables = [_hyperparameter_table(plan, *place) for place in where]
    how = "Chosen by validation recall@20 where the budget tunes, else defaults; the test split was not opened."
    return Chapter("settings", "Best hyperparameters", (how,), tables, missing=plan.missing)


def _hyperparameter_table(plan: Plan, data: str, title: str, folder: Path) -> Table:
    theirs = ", ".join(f"{SYMBOLS[name]} {value:g}" for name, value in paper.reported(data).items())
    hidden = {*GraphMethod.hyperparameters.model_fields} - {"learning_rate", "l2"}
    rows = []
    for method in plan.rows:
        study = plan.study(method, data, folder) if plan.is_tuned(method) else None
        every = known(PAPER_TRAINING | plan.fixed(data), method) | plan.chosen(method, data, folder)
        values = find_method(method)(**every).get_params(hidden)
        numbers = {name: f"{value:g}" if isinstance(value, float) else value for name, value in values.items()}
        shown = [f"{SYMBOLS.get(name, name)} {value}" for name, value in numbers.items() if value is not None]
        chosen = [Cell((study.valid,)), Cell((float(study.trials),), form=".0f")] if study else [Cell(), Cell()]
        beside = Cell(text=theirs if paper.row_of(method) == "dpaa" else "")
        rows.append((method, [Cell(text=", ".join(shown) or "none"), beside, *chosen]))
    columns = ("hyperparameters", "the paper's", "validation recall@20", "trials")
    return Table(f"settings {data}", f"Hyperparameters on {title}", "method", columns, rows)


CHAPTERS: dict[str, Callable[[Plan], Chapter]] = {
    "datasets": _datasets,
    "overall": _overall,
    "groups": _groups,
    "severity": _severity,
    "ablation": _ablation,
    "settings": _hyperparameters,
}
