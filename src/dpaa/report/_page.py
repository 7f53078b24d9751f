"""The page: one HTML file that needs no network, made of sections; the same figures as files.

Sections on JSON files are made here: frontiers (`dpaa debias`), comparisons (`dpaa compare`), audits (`dpaa audit`).
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup

import dpaa
from dpaa._io import check_file_target, write_file
from dpaa._text import finite
from dpaa.auditing import Audit
from dpaa.evaluation.metrics import at_k, explain
from dpaa.report import _runs
from dpaa.report._charts import EQUAL, PALETTE, Dot, Line, altair, bars, check_figures, grid, line, save_figure, scatter
from dpaa.report._html import Cell, Figure, Heads, Section, minus, number, render, signed, suffix, table
from dpaa.report._inputs import Audited, Colours, Comparison, Delta, Frontier, Goal, Inputs, gather
from dpaa.report._runs import LOG, by_decile
from dpaa.runs.folder import now
from dpaa.simulation import Simulation

DEEPEST = -0.3
"""Points that lose more of the accuracy are no trade-off, and left out of the figure."""
VERDICTS = {"not shown": "not significant", "not tested": "not tested: no average over users"}


def frontier(content: Frontier, colours: Colours, suffix: str = "") -> Section:
    """Accuracy against each goal over models and re-rankers, and the point that was chosen."""
    drawn = [_goal(content, goal, colours, f"{suffix}-{i}" if i else suffix) for i, goal in enumerate(content.goals)]
    figures = [figure for figure in drawn if figure is not None]
    rendered = render("frontier.html", frontier=content, figures=figures)
    title = "The best trade-off between accuracy and popularity"
    return Section(f"trade{suffix}", title, "Trade-off", rendered, figures)


def _goal(content: Frontier, goal: Goal, colours: Colours, suffix: str) -> Figure | None:
    marks = {content.base.name: "baseline"} | {content.chosen.name: "chosen"}
    dots = []
    for point in content.points:
        change, value = point.accuracy_change, point.metrics.get(goal.metric)
        if change is not None and value is not None and change >= DEEPEST:
            tip = f"{point.name}: accuracy {signed(change)}, {goal.metric} {value:.4g}"
            about = (tip, point.plain, point.on_frontier, marks.get(point.name, ""))
            dots.append(Dot(point.model, colours[point.model], change, value, *about))
    if len(dots) < 2:
        return None
    label = goal.metric if goal.name == goal.metric else f"{goal.name} ({goal.metric})"
    return Figure(
        f"frontier{suffix}",
        f"Accuracy against {goal.name}",
        f"Accuracy against the baseline and {goal.metric} of every point; the chosen one and the baseline are marked.",
        scatter(dots, "accuracy against the baseline", label, relative=True, falling=goal.better == "low"),
        _frontier_table(content, marks),
    )


def _frontier_table(content: Frontier, marks: dict[str, str]) -> Markup:
    rows = []
    forms = {metric: _runs.FORMS.get(metric.partition("@")[0], ",.4f") for metric in content.chosen.metrics}
    for point in sorted(content.points, key=lambda point: -(point.accuracy_change or 0.0)):
        if point.on_frontier or point.plain:
            words = filter(None, [marks.get(point.name), "" if point.on_frontier else "beaten by another point"])
            mark = ", ".join(words)
            rows.append(
                [
                    f"{point.name} ({mark})" if mark else point.name,
                    number(point.accuracy_change, "+.1%"),
                    *(number(point.metrics.get(metric), form) for metric, form in forms.items()),
                ]
            )
    heads = ["point", "accuracy against the baseline", *content.chosen.metrics]
    return table("The frontier, and the models alone", heads, rows)


def comparison(content: Comparison, colours: Colours, suffix: str = "") -> Section:
    """Differences with intervals, and whether popular items are harmed."""
    figure = _differences(content, colours, suffix)
    rendered = render("comparison.html", comparison=content, figure=figure, deltas=_deltas(content))
    entries = ", ".join(dict.fromkeys(delta.entry for delta in content.deltas))
    title = f"Significance: {entries[:60]}{'…' * (len(entries) > 60)} against {content.baseline}"
    return Section(f"comparison{suffix}", title, "Comparison", rendered, [figure] if figure else [])


def _differences(content: Comparison, colours: Colours, suffix: str) -> Figure | None:
    """Relative changes; those against a baseline near 0 are in the table alone."""
    rows: list[dict[str, Any]] = []
    for delta in content.deltas:
        if delta.interval is not None and delta.relative is not None and delta.baseline:
            low, high = (edge / abs(delta.baseline) for edge in delta.interval)
            tip = f"{delta.entry}, {delta.metric}: {signed(delta.relative)} ({signed(low)} to {signed(high)})"
            edges = {"value": delta.relative, "low": low, "high": high}
            rows.append({"label": delta.metric, "name": delta.entry, "tip": tip} | edges)
    if not rows:
        return None
    return Figure(
        f"differences{suffix}",
        f"Change against {content.baseline}",
        f"Relative change of each metric with its interval. {'; '.join(row['tip'] for row in rows[:12])}.",
        bars(rows, f"change relative to {content.baseline}", colours),
    )


def _deltas(content: Comparison) -> Markup:
    def row(delta: Delta) -> list[object]:
        known, edges, p = explain(delta.metric), delta.interval, delta.p_holm
        return [
            delta.entry,
            Cell(delta.metric, note=known.words if known else ""),
            *map(number, (delta.baseline, delta.value, delta.delta)),
            number(delta.relative, "+.1%"),
            Cell(minus(f"{edges[0]:.4f} to {edges[1]:.4f}"), edges[0]) if edges else number(None),
            Cell("< 0.001", p) if p is not None and p < 0.001 else number(p, ".3f"),
            VERDICTS.get(delta.verdict, f"{delta.verdict}, significant"),
        ]

    relative = ("relative", "difference / baseline; – where the baseline is 0 or near it")
    corrected = ("p (Holm)", "corrected p-value: probability of a difference at least this large if there were none")
    before = ("entry", "metric", content.baseline, "value", "difference")
    heads: Heads = [*before, relative, "interval", corrected, "verdict"]
    return table(f"Differences from {content.baseline}", heads, list(map(row, content.deltas)))


def audit(content: Audited, suffix: str = "") -> Section:
    """How skewed a log is, and whether recommendations amplify it."""
    figures, lists = [_lorenz(content, suffix)], content.recommendations
    if lists and len(lists.deciles) == len(content.log.deciles) == 10:
        shares = ((LOG, content.log.deciles, None), ("recommendations", lists.deciles, 0))
        lines = [Line(name, range(1, 11), values, index) for name, values, index in shares]
        figures.append(by_decile(f"audit-exposure{suffix}", lines, content.source))
    rows = [
        [name, number(value, ",.0f" if value == int(value or 0) else ",.4f"), content.meanings.get(name, "")]
        for name, value in content.numbers.items()
    ]
    numbers = table("Numbers of the audit", ["name", "value", "meaning"], rows)
    rendered = render("audit.html", audit=content, figures=figures, numbers=numbers)
    return Section(f"audit{suffix}", f"Audit of {content.source}", "Audit", rendered, figures)


KEPT = {"kept, confirmed": PALETTE[2], "kept": PALETTE[5], "missed": PALETTE[4], "missed, confirmed": PALETTE[1]}
"""Whether a promise was kept → colour."""


def backtest(content: Mapping[str, Any]) -> Section:
    """What was chosen at each origin, and whether it was kept in that period and in later ones."""
    cells, rows = [], []
    origins = [period["origin"] for period in content["periods"]]
    for origin, period in zip(origins, content["periods"], strict=True):
        results = [*period["earlier"], period["chosen"], period["never_updated"]]
        chosen = [f"chosen {earlier}" for earlier in origins[: len(period["earlier"]) + 1]]
        for name, result in zip([*chosen, "first, never updated"], results, strict=True):
            if result and result["verdict"]:
                change, least = (signed(result["change"][key]) for key in ("estimate", "low"))
                tip = f"{name}, in the period from {origin}: {result['name']}, {change} (at least {least})"
                cells.append({"row": name, "column": origin, "text": change, "name": result["verdict"], "tip": tip})
                rows.append([name, origin, result["name"], change, least, result["verdict"]])
    chart = grid(cells, KEPT, f"NDCG@{content['call']['k']} against the baseline, in the period from")
    numbers = table("Every choice in every period", ["row", "from", "choice", "NDCG", "at least", "promise"], rows)
    description = "What each choice did to accuracy in the periods after it, and whether the promise was kept."
    figure = Figure("backtest", "Promise kept per choice and period", description, chart, numbers)
    rendered = render("backtest.html", backtest=content, figure=figure)
    return Section("backtest", f"{len(origins)} choices, measured afterwards", "Backtest", rendered, [figure])


def _lorenz(content: Audited, suffix: str) -> Figure:
    parts = {"interactions of the log": content.log, "recommendations": content.recommendations}
    lines = [
        Line(name, [1 - x for x, _ in part.lorenz], [1 - y for _, y in part.lorenz], index)
        for index, (name, part) in enumerate(parts.items())
        if part and part.lorenz
    ]
    axes = ("share of items, most popular first", "share of the total")
    return Figure(
        f"audit-concentration{suffix}",
        "Concentration",
        "Cumulative share of interactions and recommendations against share of items, most popular first.",
        line([*lines, EQUAL], *axes, x_axis="percent", y_axis="percent", top=1.0),
    )


TRAJECTORIES = {
    "satisfaction": ("Liked items found so far", "share of liked items", "percent"),
    "satisfaction_worst": ("Liked items found by the worst-off taste group", "share of liked items", "percent"),
    "click_rate": ("Clicks", "clicks per place", "percent"),
    "recall/niche": ("Niche recall", "recall on niche items", ""),
    "coverage": ("Coverage of the round's lists", "share of the catalogue", "percent"),
    "never_shown": ("Never shown so far", "share of the catalogue", "percent"),
    "log_gini": ("Concentration of the log", "Gini coefficient", ""),
    "exposure": ("Worst-off group of items", "exposure over merit", ""),
}
"""Metric → title, axis and its kind."""


def simulation(result: Simulation) -> Section:
    """Trajectories of every policy, and where they end."""
    k, by = result.about["k"], result.about["group_by"]
    figures, ends = [], []
    for metric, (title, axis, kind) in TRAJECTORIES.items():
        key = at_k(f"exposure/{by}" if metric == "exposure" else metric, k)
        name = metric if metric in result.frame.columns else key
        if name in result.frame.columns:
            means = {policy: result.over_seeds(name, policy) for policy in result.policies}
            lines = [
                Line(policy, list(range(len(each))), [mean for mean, _ in each], index)
                for index, (policy, each) in enumerate(means.items())
            ]
            chart = line(lines, "round", axis, x_axis="steps", y_axis=kind)
            about = f"{axis} by round, a line for each of {len(lines)} policies"
            figures.append(Figure(f"loop-{metric.replace('/', '-').replace('_', '-')}", title, about, chart))
            ends.append((title, means))
    rows = [[policy, *(_with_range(*means[policy][-1]) for _, means in ends)] for policy in result.policies]
    ending = table(f"After {result.about['rounds']} rounds", ["policy", *(title for title, _ in ends)], rows)
    rendered = render("simulation.html", result=result, figures=figures, ending=ending)
    return Section("simulation", "The feedback loop", "Feedback loop", rendered, figures)


def _with_range(mean: float, wide: float) -> Cell:
    """Show a mean over seeds, with its interval where there is one."""
    return Cell(f"{mean:.3f}" if wide != wide else f"{mean:.3f} ± {wide:.3f}", mean)


REMEDY = "free some space or choose another file with --out"
BACKGROUND = (_runs.dial, _runs.training, _runs.provenance)
CSP = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src '{script}'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
"""What the page may do: show itself and run its own script, known by its hash; nothing is ever loaded."""


def write_page(
    paths: Iterable[str | Path], file: str | Path, *, k: int = 20, title: str | None = None, figures: Path | None = None
) -> Inputs:
    """Write one page from datasets, runs, comparisons and audits.

    Parameters
    ----------
    paths : as `gather` reads them
    file : the page, `.html`
    k : length of the lists that exposure is counted in
    title : heading; names the datasets unless given
    figures : folder to which each figure is also written, as SVG and PNG

    Returns
    -------
    what the page was made of; its notes say what is missing
    """
    check_page(file)
    if figures is not None:
        check_figures(figures)
    inputs = gather(paths, k)
    sections = _sections(inputs)
    names = ", ".join(dict.fromkeys(family.name for family in inputs.families))
    html = page(title or (f"Popularity bias: {names}" if names else "Popularity bias report"), sections)
    if figures is not None:
        for figure in [figure for section in sections for figure in section.figures]:
            save_figure(figure.chart, figures, figure.name)
    write_file(file, html, REMEDY, make_folders=True)
    return inputs


def audit_page(audited: Audit, file: str | Path) -> None:
    """Write an audit as an HTML page.

    Parameters
    ----------
    audited : result of `dpaa.audit`
    file : the page, `.html`
    """
    check_page(file)
    section = audit(Audited.model_validate(finite(audited.as_json())))
    write_file(file, page("Popularity audit", [section]), REMEDY, make_folders=True)


def backtest_page(content: Mapping[str, Any], file: str | Path) -> None:
    """Write a backtest as an HTML page.

    Parameters
    ----------
    content : `Backtest.as_json()`
    file : the page, `.html`
    """
    check_page(file)
    title = f"Backtest of {Path(content['source']).name}"
    write_file(file, page(title, [backtest(content)]), REMEDY, make_folders=True)


def simulation_page(result: Simulation, file: str | Path) -> None:
    """Write the trajectories of a simulation as an HTML page.

    Parameters
    ----------
    result : of `dpaa.simulate`
    file : the page, `.html`
    """
    check_page(file)
    write_file(file, page("The feedback loop", [simulation(result)]), REMEDY, make_folders=True)


def _sections(inputs: Inputs) -> list[Section]:
    """Order the non-empty sections: the verdict first, details for specialists last."""
    sections = [
        _runs.summary(inputs),
        *(frontier(content, inputs.colours, suffix(index)) for index, content in enumerate(inputs.of(Frontier))),
        *(section(inputs) for section in (_runs.exposure, _runs.metrics, _runs.groups)),
        *(comparison(content, inputs.colours, suffix(index)) for index, content in enumerate(inputs.of(Comparison))),
        *(section(inputs) for section in (_runs.data, _runs.items)),
        *(audit(content, suffix(index)) for index, content in enumerate(inputs.of(Audited))),
        *(section(inputs) for section in BACKGROUND),
    ]
    return [section for section in sections if section.content.strip()]


def page(title: str, sections: Sequence[Section]) -> str:
    """Make a whole document.

    Parameters
    ----------
    title : its heading
    sections : in the order of the page

    Returns
    -------
    HTML that loads nothing
    """
    assets = resources.files("dpaa.report").joinpath("assets")
    style, script = (assets.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    # Allowed by its hash: whatever else got into the page as a script would not run.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render(
        "page.html",
        title=title,
        policy=CSP.format(script=f"sha256-{digest}"),
        version=dpaa.__version__,
        made=now().replace("T", " ").replace("+00:00", " UTC"),
        style=Markup(style),
        script=Markup(script),
        sections=sections,
    )


def check_page(file: str | Path) -> None:
    """Refuse, before anything is computed, what cannot become a page.

    Parameters
    ----------
    file : must end in `.html` or `.htm`
    """
    altair()
    check_file_target(file, (".html", ".htm"), "a page", make_folders=True)
